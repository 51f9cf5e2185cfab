"""Snakemake as its users expect: what shows the workflow does nothing, and needs nothing of the site."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ..conftest import CHECKOUT, SHIPPED, Project, needs_iokernel

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


@pytest.mark.parametrize("site", SHIPPED)
def test_showing_a_workflow_does_nothing(sites: Path, site: str) -> None:
    graph = snakemake(sites, site, "--dag")
    assert graph.returncode == 0, graph.stderr
    assert graph.stdout.startswith("digraph") and "collect" in graph.stdout
    assert snakemake(sites, site, "--unlock").returncode == 0
    dry = snakemake(sites, site, "-n")
    assert dry.returncode == 0, dry.stderr
    assert "at most (repetitions follow the spread)" in dry.stderr
    assert "Warning" not in dry.stderr
    assert not (sites / "results").exists()


@pytest.mark.parametrize("mode", ["--rulegraph", "--summary", "--d3dag"])
def test_other_views_of_a_site_that_is_not_here(sites: Path, mode: str) -> None:
    answer = snakemake(sites, "lassen", mode)
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
    assert "16 runs, 21 at most" in answer.stderr
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
    kept = json.loads((project.root / ".snakemake" / "tiercel" / "local.tiny.json").read_text())
    assert [batch["round"] for batch in kept["batches"]] == [0, 1]
    made = snakemake(project.root, "local", "--report", "own.html")
    assert made.returncode == 0, made.stderr
    assert "which storage serves which workload" in (project.root / "own.html").read_text()
