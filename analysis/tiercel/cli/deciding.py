"""`tiercel evaluate` beyond a study's plan: more repetitions for what is undecided, where they decide it.

Asked for by `--decide --minutes`, once, or by the study (`decide:`): then up to three times, within its time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

from tiercel.project import results_folder
from tiercel.report.classes import classes
from tiercel.report.data import Results
from tiercel.report.deciding import Further, Open, causes, further, open_answers
from tiercel.results.validity import FLAGS
from tiercel.runs.planning import Project
from tiercel.study.looks import first_after, read_looks, write_look
from tiercel.units import format_duration

#: Looks that a study takes of itself: each further one may spend half of what error rate the one before had.
MOST_LOOKS = 3
#: A part of `decide:` that is too little to begin with again.
_LITTLE = 0.1


def further_looks(project: Project, root: Path, seconds: float | None) -> Iterator[None]:
    """Plan further looks, and yield for each to be carried out before the next is planned.

    `seconds`: what a person gives one look; None: the study's own, within what is left of its time.
    """
    if seconds is not None:
        if look_further(project, root, seconds, asked=True):
            yield
        return
    while (left := left_to_decide(project, root)) and look_further(project, root, left, asked=False):
        yield


def left_to_decide(project: Project, root: Path) -> float:
    """Return how many seconds of the study's `decide:` are not used; 0 where it has none, or looked thrice.

    Used is what runs of further looks took, whoever asked for them.
    """
    study = project.plan.study
    folder = results_folder(root, project.plan.site.site)
    if study.decide is None or len(read_looks(folder, study.study)) >= MOST_LOOKS:
        return 0.0
    runs = Results.from_folder(folder, study, FLAGS).runs
    used = float(runs.loc[runs["look"].fillna(0) > 0, "duration"].sum())
    left = study.decide - used
    return left if left > _LITTLE * study.decide else 0.0


def look_further(project: Project, root: Path, seconds: float, asked: bool) -> bool:
    """Plan what `seconds` of further repetitions decide, and say so; return whether there are any.

    `asked`: by a person, who is told as well why there are none.
    """
    study = project.plan.study
    folder = results_folder(root, project.plan.site.site)
    results = Results.from_folder(folder, study, FLAGS).named()
    answers = open_answers(results, classes(results))
    chosen = further(answers, results, seconds)
    if not chosen.answers:
        if asked:
            print(f"tiercel: {_why_none(answers)}")
        return False
    planned = max(study.repetitions_of(c.experiment).maximum for c in project.plan.configurations)
    looks = read_looks(folder, study.study)
    write_look(folder, study.study, first_after(planned, looks), chosen.repetitions, seconds)
    print("\n".join(_said(chosen, len(answers), results)))
    return True


def _why_none(answers: Sequence[Open]) -> str:
    if not answers:
        return "nothing is undecided"
    seconds = [each.seconds for each in answers]
    why = (
        f"the quickest of them takes about {format_duration(min(seconds))} (--minutes)"
        if math.isfinite(min(seconds))
        else f"more repetitions would decide none of them: {causes(answers)}"
    )
    return f"{_undecided(len(seconds))}; {why}"


def _said(chosen: Further, undecided: int, results: Results) -> list[str]:
    get = "gets" if len(chosen.answers) == 1 else "get"
    heading = (
        f"tiercel: {_undecided(undecided)}; {len(chosen.answers)} of them {get} "
        f"{sum(chosen.repetitions.values())} more runs, about {format_duration(chosen.seconds)}:"
    )
    return [heading] + [
        f"  {each.workload}: {results.name(each.stack)} against {results.name(each.against)}, "
        f"{each.repetitions} more on each side"
        for each in chosen.answers
    ]


def _undecided(count: int) -> str:
    return f"{count} {'answer is' if count == 1 else 'answers are'} undecided"
