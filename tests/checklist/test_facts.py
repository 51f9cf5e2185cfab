"""What the checklist makes of what nodes say, and how sure a site's facts then are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tiercel.checklist.processes import cores, spread
from tiercel.checklist.submit import jobs_of, merged, of_job, why_not
from tiercel.errors import UserError
from tiercel.report.sections.base import Context
from tiercel.report.sections.facts import facts as facts_section
from tiercel.results.raw import write_json
from tiercel.site import load_site
from tiercel.site.facts import Found, Measured, facts_of, read_facts, standing_of, summary, write_facts
from tiercel.site.model import Site

from ..conftest import CHECKOUT, SHIPPED, Project, needs_iokernel


def site(**keys: Any) -> Site:
    return Site.model_validate(
        {
            "site": "here",
            "launcher": "srun",
            "scheduler": {"name": "slurm"},
            "nodes": 8,
            "processes_per_node": 4,
            "memory_per_node": "8GiB",
            "storages": {"main": {"type": "lustre", "mount": "/l", "scratch": "/l/x", "medium": "network"}},
            **keys,
        }
    )


def answers(**hosts: list[list[int]]) -> list[dict[str, Any]]:
    return [{"host": host, "cores": each} for host, processes in hosts.items() for each in processes]


def test_processes_that_are_missing_or_pile_up_are_told() -> None:
    whole = [[0, 1, 2, 3]] * 2
    assert spread(answers(a=whole, b=whole), "", 2, 2, "srun").fits
    found = spread(answers(a=whole * 2), "", 2, 2, "srun")  # all four on one node
    assert found.problem == "started 4 processes on 1 node, where 4 on 2 were asked for"
    found = spread([], "srun: error: no PMI", 2, 2, "srun")
    assert (
        found.problem == "started 0 processes on 0 nodes, where 4 on 2 were asked for (srun: error: no PMI)"
    )


def test_bound_processes_are_told_from_a_job_with_few_cores() -> None:
    # Each process on a core of its own, all four together on all of them: bound.
    count, binding = cores(answers(a=[[0], [1], [2], [3]]), site())
    assert (count.found, count.fits) == ("4 cores", True)
    assert binding.problem.startswith("a process may use 1 of the 4 cores")
    # All on the same two cores: unbound, in a job that was given two of four.
    count, binding = cores(answers(a=[[0, 1]] * 4, b=[[0, 1, 2, 3]] * 4), site())
    assert binding.fits
    assert count.problem.startswith("the job may use 2 cores of a node, where the site file counts 4")
    # Hardware threads: more than the site file counts is well.
    assert all(each.fits for each in cores(answers(a=[list(range(16))] * 4), site()))


def test_of_two_jobs_what_does_not_fit_wins_and_what_is_known() -> None:
    one = [Found(fact="x", fits=False, problem="p"), Found(fact="y", problem="one node cannot tell")]
    two = [Found(fact="x", found="2", fits=True), Found(fact="y", found="2", fits=True)]
    assert [(f.fact, f.fits) for f in merged([one, two])] == [("x", False), ("y", True)]
    assert [(f.fact, f.fits) for f in merged([two, one])] == [("x", False), ("y", True)]


def test_one_node_or_a_launcher_of_one_gives_one_job() -> None:
    assert [job.nodes for job in jobs_of(site())] == [1, 2]
    assert [job.nodes for job in jobs_of(site(nodes=1))] == [1]
    assert [job.nodes for job in jobs_of(site(launcher="fork"))] == [1]


def test_standing_of_facts(tmp_path: Path) -> None:
    here = site(sources={"nodes": "data sheet"})
    (tmp_path / "site-configs" / "here").mkdir(parents=True)
    assert read_facts("here", tmp_path) is None
    measured = Measured(
        site="here", date="2026-11-23",
        facts=[
            Found(fact="memory_per_node", stated="8 GiB", found="4.00 GiB", fits=False, problem="less"),
            Found(fact="processes_per_node", stated="2", found="4 cores", fits=True),
            Found(fact="storages.main.eviction", found="0 %", fits=True),
            Found(fact="tracing", problem="not installed"),
        ],
    )  # fmt: skip
    write_facts(measured, tmp_path)
    assert read_facts("here", tmp_path) == measured
    facts = {fact.name: fact for fact in facts_of(here, measured)}
    assert (facts["memory_per_node"].standing, facts["memory_per_node"].problem) == ("measured", "less")
    assert facts["nodes"].standing == "source" and facts["nodes"].source == "data sheet"
    # The site file said two when it was measured, and says four now.
    assert facts["processes_per_node"].standing == "unverified"
    assert facts["storages.main.eviction"].standing == "measured"
    assert facts["tracing"].standing == "unverified"
    assert summary(facts.values()) == (
        f"2 measured, 1 from a source, {len(facts) - 3} unverified; does not fit: memory_per_node"
    )


def test_a_site_file_that_names_its_user_is_known_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What a job writes names no user, and the folder is the same one.
    monkeypatch.setenv("USER", "mklein")
    here = site(storages={"main": {"mount": "/", "type": "ext4", "scratch": "/scratch/mklein/io"}})
    left = {"fact": "storages.main.scratch", "found": "nothing left", "fits": True}
    write_json(tmp_path / "job.json", {**left, "stated": "/scratch/mklein/io"})
    seen = Found.model_validate_json((tmp_path / "job.json").read_text())
    assert "mklein" not in seen.stated
    measured = Measured(site="here", date="2026-11-26", facts=[seen])
    facts = {fact.name: fact for fact in facts_of(here, measured)}
    assert facts["storages.main.scratch"].standing == "measured"
    moved = site(storages={"main": {"mount": "/", "type": "ext4", "scratch": "/scratch/mklein/other"}})
    facts = {fact.name: fact for fact in facts_of(moved, measured)}
    assert facts["storages.main.scratch"].standing == "unverified"


def test_plan_and_report_say_how_sure_the_facts_are(tmp_path: Path) -> None:
    here = site(sources={"nodes": "data sheet"})
    (tmp_path / "site-configs" / "here").mkdir(parents=True)
    advice = "; `tiercel site check here --submit` measures what can be"
    assert standing_of(here, tmp_path).startswith("facts of the site: 0 measured, 1 from a source, ")
    assert standing_of(here, tmp_path).endswith(advice)
    context = Context(tmp_path / "results" / "here", tmp_path, here, results=None)  # type: ignore[arg-type]
    section = facts_section(context)
    assert section is not None and section.notes[0].startswith("Nothing was measured")

    seen = Found(fact="processes_per_node", stated="4", found="2 cores", fits=False, problem="two only")
    write_facts(Measured(site="here", date="2026-11-23", facts=[seen]), tmp_path)
    assert standing_of(here, tmp_path).endswith("unverified; does not fit: processes_per_node")
    section = facts_section(context)
    assert section is not None and section.notes[0].startswith("Measured on 2026-11-23")
    # A machine that is looked at as it is used has no such section until it is checked.
    local = site(scheduler=None, site="there")
    there = Context(tmp_path / "results" / "there", tmp_path, local, results=None)  # type: ignore[arg-type]
    assert facts_section(there) is None
    assert standing_of(local, tmp_path) == ""


@pytest.mark.parametrize("name", SHIPPED)
def test_sources_name_facts_of_their_site(name: str) -> None:
    loaded = load_site(name, CHECKOUT)
    facts = {fact.name: fact for fact in facts_of(loaded, None)}
    assert set(loaded.sources) <= set(facts)
    assert all(facts[name].standing == "source" for name in loaded.sources)


def test_a_source_of_nothing_is_refused(project: Project) -> None:
    path = project.root / "site-configs" / "local" / "site.yaml"
    path.write_text(path.read_text() + "sources: {node: a paper}\n")
    with pytest.raises(UserError, match=r"sources\.node: is no fact of this file \(facts: "):
        load_site("local", project.root)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("x\nSLURM sbatch failed. The error message was sbatch: error: Batch job submission failed: Bad\ny",
         "Batch job submission failed: Bad"),
        ("SLURM-job '3' failed, SLURM status is: 'TIMEOUT'. Logs: y", "TIMEOUT"),
        ("submit: bsub gave no job number: Queue closed", "bsub gave no job number: Queue closed"),
        ("OSError: no space\nmore", "OSError: no space"),
    ],
)  # fmt: skip
def test_why_a_job_did_not_end_well_is_one_line(said: str, why: str) -> None:
    assert why_not(said) == why


def test_of_two_jobs_each_has_its_own_reason() -> None:
    log = "x\nError in rule look:\n  status is: 'TIMEOUT'\n  output: b.json\n"
    log += "Error in rule look:\n  output: a.json\n  status is: 'CANCELLED'\n"
    assert why_not(of_job(log, "a.json")) == "CANCELLED"
    assert why_not(of_job(log, "b.json")) == "TIMEOUT"


@needs_iokernel
def test_a_machine_without_scheduler_is_checked_too(project: Project) -> None:
    answer = project.tiercel("site", "check", "local", "--submit", "--json")
    assert answer.returncode in (0, 1), answer.stderr
    written = read_facts("local", project.root)
    assert written is not None
    facts = {each.fact: each for each in written.facts}
    assert facts["storages.main.scratch"].found == "written, and nothing left"
    assert facts["engine"].found == "4 processes on 1 node worked together"
    assert list((project.root.parent / "scratch").iterdir()) == []
    # What it found is what is shown from then on.
    shown = project.tiercel("site", "show", "local")
    assert "8 facts: 8 measured" in shown.stdout
    # A storage that is not there is one line, and nothing is written elsewhere.
    path = project.root / "site-configs" / "local" / "site.yaml"
    path.write_text(path.read_text().replace("mount: ", "mount: /absent # "))
    answer = project.tiercel("site", "check", "local", "--submit")
    lines = [line for line in answer.stderr.splitlines() if "storages.main.mount" in line]
    assert answer.returncode == 1 and len(lines) == 1 and "is /absent mounted?" in lines[0]
