"""Snakemake as its users expect: what shows the workflow does nothing, and needs nothing of the site."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tiercel.workflow.plan import read_plan

from ..conftest import CHECKOUT, SHIPPED, Project, needs_iokernel
from .at_once import Call, at_once

pytestmark = needs_iokernel

STUDY = """
study: tiny
title: One workload
repetitions: {minimum: 1, maximum: 2}
twins: false
experiments:
  scaling:
    processes_per_node: [2]
    workloads:
      write: {operation: write, transfer_size: 64KiB, data_per_process: 1MiB}
"""


@pytest.fixture
def sites(tmp_path: Path) -> Path:
    """A project with all sites that come with tiercel, and nothing of their schedulers or variables."""
    root = tmp_path / "project"
    (root / "workflows" / "studies").mkdir(parents=True)
    (root / "Snakefile").symlink_to(CHECKOUT / "Snakefile")
    (root / "site-configs").symlink_to(CHECKOUT / "site-configs")
    for path in (CHECKOUT / "workflows").iterdir():
        if path.name != "studies":
            (root / "workflows" / path.name).symlink_to(path)
    (root / "workflows" / "studies" / "tiny.yaml").write_text(STUDY)
    for name in SHIPPED:
        (root / name).symlink_to(f"site-configs/{name}")
    return root


def snakemake(root: Path, site: str, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("TIERCEL_")}
    return subprocess.run(
        [sys.executable, "-m", "snakemake", "--profile", site, *words, "--config", "study=tiny"],
        cwd=root, env=environment, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


#: One of each launcher and scheduler: of the others each has those of one of these.
TOLD_APART = ("frontera", "lassen", "local", "polaris", "slurm-virtual", "theta", "thetagpu", "tuolumne")


@pytest.mark.parametrize(
    "site",
    [site if site in TOLD_APART else pytest.param(site, marks=pytest.mark.nightly) for site in SHIPPED],
)
def test_showing_a_workflow_does_nothing(sites: Path, site: str) -> None:
    views = ("--dag", "--rulegraph", "--summary", "--unlock", "-n")
    words = [["--profile", site, view, "--config", "study=tiny"] for view in views]
    graph, rules, summary, unlocked, dry = at_once(
        [Call(str(sites), each) for each in words], sites.parent / "said"
    )
    assert [graph[0], rules[0], summary[0], unlocked[0], dry[0]] == [0] * 5, (graph, rules, summary, dry)
    assert graph[1].startswith("digraph") and "collect" in graph[1]
    assert "batch" in rules[1] and "batch" in summary[1]
    assert "(noisy results get more repetitions)" in dry[2]
    assert "Warning" not in dry[2]
    assert not (sites / "results").exists()


def test_another_view_of_a_site_that_is_not_here(sites: Path) -> None:
    answer = snakemake(sites, "lassen", "--d3dag")
    assert answer.returncode == 0, answer.stderr
    assert "batch" in answer.stdout
    assert not (sites / "results").exists()


def test_a_dry_run_may_stand_in_a_profile(project: Project) -> None:
    profile = project.root / "site-configs" / "local" / "config.yaml"
    text = profile.read_text()
    profile.unlink()
    profile.write_text(text + "dry-run: true\n")
    answer = snakemake(project.root, "local")
    assert answer.returncode == 0, answer.stderr
    assert "16 runs, at most 21" in answer.stderr
    assert not project.results.exists()


def test_lint_has_one_thing_to_say(sites: Path) -> None:
    """Where the programs come from: the site's stack by Spack, which Snakemake does not know of."""
    answer = snakemake(sites, "local", "--lint")
    said = [line.strip() for line in answer.stderr.splitlines() if line.strip().startswith("* ")]
    rules = {"concretize", "install", "batch", "traces", "collect", "report"}
    assert said == ["* Specify a conda environment or container for each rule.:"] * len(rules)
    assert set(re.findall(r"^Lints for rule (\w+)", answer.stderr, re.MULTILINE)) == rules
    assert answer.returncode == 1


def test_rules_say_what_they_do_and_where_they_say_it(project: Project) -> None:
    """Each rule has a log and a message; Snakemake's own report carries tiercel's with its caption."""
    project.study("tiny", STUDY)
    (project.root / "workflows" / "captions").symlink_to(CHECKOUT / "workflows" / "captions")
    answer = snakemake(project.root, "local")
    assert answer.returncode == 0, answer.stderr
    logs = project.results / "logs"
    assert {p.name for p in logs.iterdir()} == {"collect.log", "report.log", "tiny"}
    (first, *_) = sorted((logs / "tiny").iterdir())
    assert "write" in first.read_text()  # what was measured
    assert [batch.round for batch in read_plan("local", "tiny", project.root).batches] == [0, 1]
    made = snakemake(project.root, "local", "--report", "own.html")
    assert made.returncode == 0, made.stderr
    assert "which storage serves which workload" in (project.root / "own.html").read_text()


def test_no_rule_outlives_a_killed_snakemake() -> None:
    """Else tables are written beside those of the next one."""
    for path in (CHECKOUT / "workflows").glob("*.smk"):
        for command in re.findall(r'^ +"(.*\{params\.call:q\}.*)"$', path.read_text(), re.MULTILINE):
            assert re.match(r"exec .* --parent \$PPID |TIERCEL_PARENT=\$PPID exec ", command), (path, command)


def test_a_command_ends_with_its_parent(tmp_path: Path) -> None:
    """Here with one that is gone already."""
    ended = subprocess.run(
        [sys.executable, "-m", "tiercel", "site", "list"],
        cwd=tmp_path, env={**os.environ, "TIERCEL_PARENT": "4194303"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ended.returncode == 130 and "interrupted" in ended.stderr and ended.stdout == ""
