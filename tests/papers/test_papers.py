"""The five papers: no item is missing, and every command of theirs is one of tiercel's and plans."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.exceptions

from tiercel.errors import UserError
from tiercel.papers.load import load_papers
from tiercel.papers.model import Item
from tiercel.runs.planning import Project, make_plan
from tiercel.site.load import load_site
from tiercel.site.simulated import simulated_name
from tiercel.study.load import load_study

from ..cli.test_bad_input import COMMAND, asked

#: Counted in the papers from their first to their last page: figures, numbered listings and equations; tables
#: and what has no number: a formula, applications measured without a figure, listings outside of figures.
COUNTED = {
    "000": (15, 0, 0, ["Equation of V.B", "Application 7", "Application 8"]),
    "001": (14, 1, 1, []),
    "002": (5, 0, 1, ["Table I", "Table II", "Table III", "Listings of III.D"]),
    "003": (17, 0, 0, ["Table I"]),
    "004": (6, 0, 0, ["Table I"]),
}
#: Statements of each paper: 69 in all.
STATEMENTS = {"000": 12, "001": 17, "002": 12, "003": 10, "004": 18}


def items() -> Iterator[tuple[str, Item]]:
    for paper in load_papers():
        for item in paper.items:
            yield paper.paper, item


def all_commands() -> list[str]:
    found = [c for _, i in items() for c in (*i.paper_size, *i.quick, *i.simulated)]
    found += [c for p in load_papers() for s in p.statements for c in (*s.answer.first, *s.answer.command)]
    return sorted({part for command in found for part in (command, *started_by(command))})


def started_by(command: str) -> Iterator[str]:
    """Yield the commands of tiercel that a command starts: behind `--`, and quoted as --prepare's."""
    words = shlex.split(command)
    if "--" in words:
        yield shlex.join(words[words.index("--") + 1 :])
    yield from (words[n + 1] for n, word in enumerate(words) if word == "--prepare")


def parsed(command: str) -> tuple[list[str], dict[str, Any]] | None:
    """Return the path and the options of a command, as tiercel's own parser reads it; nothing is carried out.

    None where the parser does not know it.
    """
    words = shlex.split(command)
    assert words[0] == "tiercel"
    current: Any = COMMAND
    context, rest, path = None, words[1:], ["tiercel"]
    try:
        while hasattr(current, "commands"):
            context = current.make_context(path[-1], rest[:1], parent=context)
            name, current, rest = current.resolve_command(context, rest)
            path.append(name)
        return path[1:], current.make_context(path[-1], rest, parent=context).params
    except typer.exceptions.TyperException:
        return None


def test_no_item_of_a_paper_is_missing() -> None:
    for paper in load_papers():
        figures, listings, equations, named = COUNTED[paper.paper]
        wanted = {f"Figure {n}" for n in range(1, figures + 1)} | set(named)
        wanted |= {f"Listing {n}" for n in range(1, listings + 1)}
        wanted |= {f"Equation {n}" for n in range(1, equations + 1)}
        assert {i.item for i in paper.items} == wanted, paper.paper
        assert len(paper.statements) == STATEMENTS[paper.paper]
    assert {p.paper for p in load_papers()} == set(COUNTED)


def planned_or_skipped(site: str, study: str, root: Path) -> Project:
    """Return the plan of a study; skip the test where a layer or an engine of it is not built."""
    try:
        return make_plan(site, study, root)
    except UserError as error:
        if "not installed" in str(error):
            pytest.skip(str(error))
        raise


@pytest.mark.parametrize("command", all_commands())
def test_a_command_parses_and_plans(command: str, checkout: Path) -> None:
    if not command.startswith("tiercel "):
        assert command.split(maxsplit=1)[0] == "dd"  # a program of the system that `share experiment` runs
        return
    known = parsed(command)
    assert known is not None, "tiercel has no such command, or it lacks an option"
    path, options = known
    if options.get("site"):
        assert (checkout / "site-configs" / options["site"] / "site.yaml").is_file()
    if path == ["evaluate"]:
        site = simulated_name(options["site"]) if options["simulate"] else options["site"]
        assert planned_or_skipped(site, options["study"], checkout).plan.runs


def test_the_parser_knows_no_command_that_is_not_there() -> None:
    """Else the test above could not fail."""
    for wrong in (
        "tiercel no-such",
        "tiercel site no-such",
        "tiercel evaluate --no-such",
        "tiercel place apps -r x",
    ):
        assert parsed(wrong) is None, wrong
    assert parsed("tiercel plan --study vast-2024 --site wombat") == (
        ["plan"],
        {
            "site": "wombat",
            "study": "vast-2024",
            "as_json": False,
            "cost": False,
            "probing": False,
            "jobs": False,
        },
    )


def test_a_study_at_paper_size_is_on_the_papers_site(checkout: Path) -> None:
    for _, item in items():
        for command in item.paper_size:
            if command.startswith("tiercel evaluate"):
                assert "--site" in command, command
        for command in item.quick:
            assert "--site" not in command, command
        for command in item.simulated:
            assert command.endswith(" --simulate"), command
        if item.site:
            assert (checkout / "site-configs" / item.site / "site.yaml").is_file()


def planned() -> list[tuple[str, str]]:
    """Return the pairs of site and study that the papers' commands at their size name."""
    found = [parsed(c) for _, item in items() for c in item.paper_size if c.startswith("tiercel evaluate")]
    return sorted({(options["site"], options["study"]) for known in found if known for _, options in [known]})


#: Scales of the papers that a site has not, and what a plan says of them.
LEFT_OUT = {
    ("wombat", "vast-2024"): ["scaling goes on without 16, 32, 64, 128 nodes"],
    ("theta", "dlio-2021-scaling"): ["frnn is left out on 1024 x"],
    ("thetagpu", "cachevol-2022"): [
        "checkpoint is left out: it needs 16 processes",
        "vpic is left out: it needs 16 processes",
    ],
}


@pytest.mark.parametrize(("site", "study"), planned())
def test_scales_that_a_site_lacks_are_left_out_and_named(site: str, study: str, checkout: Path) -> None:
    found = planned_or_skipped(site, study, checkout)
    assert found.plan.runs
    assert len(found.notes) < 10  # a sweep of 2,967 configurations once had a line for half of them
    for said in LEFT_OUT.get((site, study), []):
        assert any(said in note for note in found.notes), found.notes


@pytest.mark.nightly
@pytest.mark.parametrize(("site", "study"), planned())
def test_snakemake_plans_it_as_written(site: str, study: str, checkout: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "snakemake", "--profile", site, "--config", f"study={study}", "-n"],
        cwd=checkout, capture_output=True, text=True, timeout=300, check=False,
        env={k: v for k, v in os.environ.items() if not k.startswith("TIERCEL_")},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert " runs" in done.stderr


def test_a_figure_of_the_section_placement_ends_in_its_report() -> None:
    """The section is of what `place` made, so the page that `evaluate` wrote before is without it."""
    seen = 0
    for _, item in items():
        if "report, section Placement" in item.figure:
            for commands in (item.paper_size, item.quick):
                paths = [parsed(command) for command in commands]
                verbs = [" ".join(found[0]) for found in paths if found]
                studies = {found[1]["study"] for found in paths if found and "study" in found[1]}
                assert verbs[:2] == ["evaluate", "place sweep"] and verbs[-1] == "report", item.item
                assert len(studies) == 1, item.item
                seen += 1
    assert seen == 12  # figures 1, 11 and 14 to 17, at both sizes


def test_the_command_prints_one_paper_all_of_them_and_no_other() -> None:
    code, out, _ = asked(["papers"])
    assert code == 0 and out.count("Start: ") == 5
    code, out, _ = asked(["papers", "vast"])
    assert code == 0 and "tiercel evaluate --site wombat --study vast-2024\n" in out
    assert "simulated   tiercel evaluate --site lassen --study vast-2024 --simulate\n" in out
    code, out, err = asked(["papers", "005"])
    assert code == 2 and out == "" and err.count("\n") == 1 and "004" in err


def test_commands_within_words_are_tiercels_too() -> None:
    """Those in backquotes: where an item is drawn, what it lacks, and why a statement has its answer."""
    texts = [text for _, item in items() for text in (item.figure, item.lacks)]
    texts += [s.answer.why for p in load_papers() for s in p.statements]
    found = sorted({c for text in texts for c in re.findall(r"`(tiercel [^`]+)`", text)})
    assert len(found) > 10
    for command in found:
        stated = command.replace("--real", "imagenet --real")  # an option is named, not a whole command
        known = parsed(stated) or parsed(f"{stated} -- true")
        assert known is not None, command


def test_prose_is_as_wide_as_the_terminal_and_commands_stay_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "72")
    for words in (["claims"], ["claims", "themis"]):
        _, out, _ = asked(words)
        assert all(len(line) <= 72 for line in out.splitlines()[:-1])  # how to go on ends it
    for words in (["papers", "dlio"], ["claims", "dlio-06", "vast-20"]):
        _, out, _ = asked(words)
        long = [line for line in out.splitlines() if len(line) > 72]
        assert long and all(re.match(r"  [a-z ]+ tiercel ", line) for line in long), long
        starts = [re.match(r" +(tiercel .*)", line) for line in out.splitlines()]
        assert not any(starts)  # no command is broken at its name


def test_a_study_is_on_the_file_system_that_its_paper_measured(checkout: Path) -> None:
    """Theta had several: DLIO's peak of 240 GB/s is theta-fs0's, Cache VOL's 650 GB/s are Eagle's."""
    theta = load_site("theta", checkout)
    peaks = {name: storage.topology[0].bandwidth for name, storage in theta.storages.items() if name != "ssd"}
    assert peaks == {"fs0": 240e9, "lustre": 650e9}
    for name in ("dlio-2021", "dlio-2021-optimise", "dlio-2021-scaling"):
        study = load_study(name, checkout)
        assert {str(s) for each in study.experiments for s in study.stacks_of(each)} == {"fs0"}, name
