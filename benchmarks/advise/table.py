"""The judged cases as a table in Markdown, with the totals below it."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.advise.judge import Case, Totals

_HEADS = (
    *("program", "home", "advice", "at home s", "as advised s", "copying s", "saved: stated s", "measured s"),
    *("inside", "best single", "lost s", "slower", "would live on", "best", "regret living"),
)


def table(judged: Sequence[Case]) -> str:
    lines = [_line(_HEADS), _line(["---"] * len(_HEADS))]
    lines += [_line(_row(case)) for case in judged]
    return "\n".join(lines) + "\n"


def summary(total: Totals) -> str:
    """Return the totals in lines, each with its goal."""
    found = [
        f"{total.cases} cases, {total.moved} of them move something"
        + (f"; {total.without_answer} got no answer" if total.without_answer else "")
        + (f"; {total.failing} more left out: the program fails there by itself" if total.failing else ""),
        f"measured gain inside the stated interval: {total.inside} of {total.stated} "
        f"({_percent(total.coverage)}; goal 90 %), {total.inside_moved} of the {total.moved} that move",
        f"regret against the best single storage, copying counted for both: {_percent(total.lost)} of run "
        f"time at home (goal 2 %); of run time on that storage {_percent(total.regret)}, median of the cases "
        f"{_percent(total.regret_median)}, over 2 % in {total.over}",
        f"slower than at home beyond noise, copying counted: {total.slower} (goal 0)",
        f"wrong outputs: {total.wrong} (goal 0)",
        f"where files would best live ({total.living} cases): regret {_percent(total.living_regret)} of run "
        f"time, over 2 % in {total.living_over}; stated gain right in {total.living_inside} of "
        f"{total.living_stated}",
    ]
    return "\n".join(f"* {line}" for line in found) + "\n"


def _row(case: Case) -> list[str]:
    stated = "–" if case.stated is None else "{:.2f} ({:.2f} to {:.2f})".format(*case.stated)
    living = case.living
    return [
        case.program, case.home, case.way + ("" if case.decided or case.stated is None else ", undecided"),
        f"{case.at_home:.2f}", f"{case.as_advised:.2f}", f"{case.staging:.2f}" if case.moves else "–", stated,
        f"{case.saved:.2f}", _yes(case.inside), case.best, f"{case.lost:.2f}",
        _harm(case), living.storage if living else "–",
        living.best if living else "–", _percent(living.regret) if living else "–",
    ]  # fmt: skip


def _harm(case: Case) -> str:
    if case.fails_there:
        return "fails there by itself"
    return "WRONG: " + case.wrong[0] if case.wrong else _yes(case.slower)


def _yes(answer: bool | None) -> str:
    return "–" if answer is None else "yes" if answer else "no"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{share * 100:.1f} %"
