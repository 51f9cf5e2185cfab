"""The workflow as a user runs it, with the real engine on a small study: whole, again, killed, refused."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import psutil
import pytest
import xarray as xr
import yaml

from tiercel.results.raw import RawStore, read_json
from tiercel.runs.stamps import stamps_folder
from tiercel.study.looks import read_looks, write_look

from ..conftest import ONE, Project, needs_iokernel
from .at_once import Call, at_once

pytestmark = needs_iokernel

SNAKEMAKE = [sys.executable, "-m", "snakemake", "--profile", "local", "--config", "study=tiny"]
EVALUATE = [sys.executable, "-m", "tiercel", "evaluate", "--study", "tiny"]

DECIDING = """
    study: deciding
    title: Which of two folders
    stacks: all
    repetitions: {minimum: 5, maximum: 5}
    decide: 6s
    experiments:
      data:
        workloads:
          write:
            operation: write
            transfer_size: 64KiB
            data_per_process: 4MiB
            fsync: phase
"""


def snakemake(project: Project, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*SNAKEMAKE, *arguments], cwd=project.root, capture_output=True, text=True, timeout=300, check=False
    )


def started(project: Project) -> dict[str, float]:
    """Return when each finished run of the project began."""
    return {raw.run["run"]: raw.record["started"] for raw in RawStore(project.results)}


def test_whole_again_and_with_a_further_look(new_project: Callable[..., Project]) -> None:
    project = new_project("scratch", "auto")  # as this machine would have it: by MPI
    first = project.tiercel("evaluate", "--study", "tiny")
    assert first.returncode == 0, first.stderr
    report = project.results / "report" / "index.html"
    assert str(report) in "".join(first.stdout.split())
    observations = pd.read_parquet(project.results / "observations.parquet")
    runs = pd.read_parquet(project.results / "runs.parquet")
    assert set(runs["status"]) == {"ok"}
    # 2 workloads x 2 scales + 1 workload, 2 repetitions at least, and a twin of each workload's largest
    # scale in both: 10 + 6 runs.
    assert len(runs) >= 16
    assert set(observations["operation"]) >= {"write", "read", "file-create", "file-stat", "directory-remove"}
    dataset = xr.open_dataset(project.results / "dataset.nc")
    assert dataset["bandwidth"].attrs["units"] == "B/s"
    assert dataset["bandwidth"].sel(workload="scaling/cold-read", operation="read", twin="a").notnull().any()

    before = started(project)
    second = project.tiercel("evaluate", "--study", "tiny")
    assert second.returncode == 0, second.stderr
    assert started(project) == before
    assert str(report) in "".join(second.stdout.split())

    # Killed after a further look was planned, `evaluate` goes on with it; asked again, nothing is left to do.
    assert set(observations["look"]) == {0}
    key = observations.loc[observations["operation"] == "write", "configuration"].iloc[0]
    write_look(project.results, "tiny", 50, {key: 2})
    done = project.tiercel("evaluate", "--study", "tiny")
    assert done.returncode == 0, done.stderr
    after = pd.read_parquet(project.results / "observations.parquet")
    more = after[after["look"] == 1]
    assert set(more["configuration"]) == {key} and set(more["repetition"]) == {50, 51}
    assert len(after) == len(observations) + len(more)
    # One storage: there is nothing to compare, so nothing to decide.
    asked = project.tiercel("evaluate", "--study", "tiny", "--decide", "--minutes", "1")
    assert asked.returncode == 0 and "nothing is undecided" in asked.stdout
    assert len(read_looks(project.results, "tiny")) == 1


def test_a_study_decides_by_itself_within_its_time(project: Project) -> None:
    """Two folders of one disk under two names: whatever is undecided, looks end within their time."""
    other = project.root.parent / "other"
    other.mkdir()
    path = project.root / "site-configs" / "local" / "site.yaml"
    site = yaml.safe_load(path.read_text())
    (one,) = site["storages"].values()
    site["storages"]["other"] = {**one, "label": "Other folder", "scratch": str(other)}
    project.site(yaml.safe_dump(site))
    project.study("deciding", DECIDING)
    told = " ".join(project.tiercel("plan", "--study", "deciding").stdout.split())
    assert "Then at most 6 s of extra repetitions" in told and "noisy results get" not in told
    done = project.tiercel("evaluate", "--study", "deciding")
    assert done.returncode == 0, done.stderr
    looks = read_looks(project.results, "deciding")
    runs = pd.read_parquet(project.results / "runs.parquet")
    assert len(looks) <= 3 and set(runs["look"]) <= {0, *(look.number for look in looks)}
    for look in looks:
        of = runs[runs["look"] == look.number]
        assert 0 < len(of) <= sum(look.repetitions.values())
        assert of["duration"].sum() - of["duration"].max() <= look.seconds
    assert runs.loc[runs["look"] > 0, "duration"].sum() <= 6 + len(looks) * runs["duration"].max()
    again = project.tiercel("evaluate", "--study", "deciding", "--minutes", "1")
    assert again.returncode == 2 and "--minutes needs --decide" in again.stderr


def test_the_plan_is_shown_and_nothing_is_done(project: Project) -> None:
    answer = snakemake(project, "-n")
    assert answer.returncode == 0, answer.stderr
    assert "16 runs, at most 21" in answer.stderr  # 5 configurations more than measured at least
    assert not (project.results / "raw").exists()


def test_what_is_missing_is_measured_where_tables_were_made_by_hand(project: Project) -> None:
    """As after an interruption of which somebody wanted to see what there is."""
    project.study("tiny", ONE.replace("minimum: 1, maximum: 1", "minimum: 2, maximum: 2"))
    assert project.tiercel("evaluate", "--study", "tiny").returncode == 0
    store = RawStore(project.results)
    (lost, kept) = store.ids()
    shutil.rmtree(store.path(lost))
    shutil.rmtree(stamps_folder(project.results, "tiny"))
    shutil.rmtree(project.root / ".snakemake")
    for command in ("collect", "report"):
        assert project.tiercel(command, "--study", "tiny").returncode == 0
    done = project.tiercel("evaluate", "--study", "tiny")
    assert done.returncode == 0 and "2 runs succeeded" in done.stdout, done.stderr
    assert set(store.ids()) == {lost, kept}


@pytest.mark.parametrize(
    "how",
    ["Ctrl-C", "kill -9 tiercel evaluate",
     *(pytest.param(how, marks=pytest.mark.nightly) for how in ("kill -9", "kill tiercel evaluate"))],
)  # fmt: skip
def test_killed_and_resumed(project: Project, how: str) -> None:
    """No run is lost, none done twice, whatever kills the workflow."""
    store = RawStore(project.results)
    said = project.root / "said"
    with said.open("w") as errors:
        process = subprocess.Popen(
            EVALUATE if "evaluate" in how else SNAKEMAKE, cwd=project.root, start_new_session=True,
            stdout=subprocess.DEVNULL, stderr=errors,
        )  # fmt: skip
    deadline = time.monotonic() + 120
    while len(store.ids()) < 4 and time.monotonic() < deadline:
        time.sleep(0.01)
    if how == "kill -9 tiercel evaluate":
        process.kill()  # it alone: its Snakemake and what that started hear of it by the kernel
    elif "evaluate" in how:
        process.terminate()
    else:
        os.killpg(process.pid, signal.SIGKILL if how == "kill -9" else signal.SIGINT)
    process.wait(60)
    if how == "kill tiercel evaluate":
        assert process.returncode == 130
        assert "tiercel: interrupted: run the same command again to resume" in said.read_text()
    survivors = [
        p for p in psutil.process_iter(["cmdline"]) if str(project.root.parent) in str(p.info["cmdline"])
    ]
    _, still = psutil.wait_procs(survivors, timeout=20)
    assert not still, [p.cmdline() for p in still]
    before = started(project)
    assert len(before) >= 4

    answer = snakemake(project)
    assert answer.returncode == 0, answer.stderr
    after = started(project)
    assert before.items() <= after.items()  # what was finished was not done again
    assert (project.results / "report" / "index.html").exists()
    attempts = [read_json(store.path(i) / "record.json")["attempts"] for i in after]
    assert sum(a - 1 for a in attempts) <= 1  # at most the run that was cut off went twice
    scratch = project.root.parent / "scratch"
    assert list(scratch.iterdir()) == []


def test_failed_runs_are_reported_and_can_be_retried(project: Project) -> None:
    project.study(
        "tiny",
        """
        study: tiny
        title: A run too long for its limit
        repetitions: {minimum: 1, maximum: 1}
        twins: false
        timeout: 300ms
        experiments:
          fsync:
            workloads:
              slow: {operation: write, transfer_size: 4KiB, data_per_process: 1GiB, fsync: write}
        """,
    )
    answer = project.tiercel("evaluate", "--study", "tiny")
    assert answer.returncode == 0, answer.stderr  # the study went through; the report says what failed
    runs = pd.read_parquet(project.results / "runs.parquet")
    assert runs["status"].tolist() == ["failed"]
    assert "the study's timeout" in runs["reason"][0]
    assert "timeout" in (project.results / "report" / "index.html").read_text()
    before = started(project)
    project.tiercel("evaluate", "--study", "tiny")
    assert started(project) == before
    # Interrupted when what failed has been set aside, it is as if that had never run.
    (raw,) = (path for path in (project.results / "raw").iterdir() if path.name != "interrupted")
    set_aside = (
        "from pathlib import Path; from tiercel.runs.batch import retry_failed; "
        "from tiercel.runs.planning import make_plan; "
        "assert retry_failed(make_plan('local', 'tiny', Path.cwd()), Path('results/local')) == 1"
    )
    subprocess.run([sys.executable, "-c", set_aside], cwd=project.root, check=True)
    assert not raw.exists()
    project.tiercel("evaluate", "--study", "tiny")
    (once_more,) = started(project).values()
    assert once_more > before.popitem()[1]
    project.tiercel("evaluate", "--study", "tiny", "--retry-failed")
    (again,) = started(project).values()
    assert again > once_more
    assert len(list((project.results / "raw" / "interrupted").iterdir())) == 2


BAD = [
    (
        "site.yaml",
        "launcher: fork",
        "launcher: mpirun9",
        "no launcher named 'mpirun9': did you mean ibrun? (allowed: aprun,",
    ),
    ("site.yaml", "site: local", "site: local\nnode: 3", "node: unknown key: did you mean nodes?"),
    ("site.yaml", "medium: ", "medum: ", "storages.main.medum: unknown key: did you mean medium?"),
    ("site.yaml", 'mount: "', 'mount: "/absent', "is /absent"),
    ("tiny.yaml", "64KiB", "64KB", "ambiguous (1000 or 1024?): write 64KiB"),
    ("tiny.yaml", "data_per_process: 1MiB", "data_per_process: 900TiB", "free and a run needs"),
    (
        "tiny.yaml",
        "processes_per_node: [1, 2]",
        "processes_per_node: [99]",
        "99 is more than the 4 of site local",
    ),
    ("tiny.yaml", "study: tiny", "study: tiny\nengines: [elbencho]", "no engine named 'elbencho'"),
    ("tiny.yaml", "study: tiny", "study: tiny\nstacks: [nvme]", "no storage named 'nvme' on site local"),
]


def with_mistake(project: Project, folder: Path, file: str, old: str, new: str) -> Project:
    """Return a copy of the project, in `folder`, with a word of a file replaced."""
    shutil.copytree(project.root, folder, symlinks=True)
    where = "site-configs/local" if file == "site.yaml" else "workflows/studies"
    path = folder / where / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    return Project(folder)


def test_mistakes_are_found_before_anything_runs(project: Project, tmp_path: Path) -> None:
    wrong = [with_mistake(project, tmp_path / f"wrong-{n}", *b[:3]) for n, b in enumerate(BAD)]
    started = at_once([Call(str(one.root), SNAKEMAKE[3:]) for one in wrong], tmp_path / "said")
    for one, (_, _, _, message), (code, _, errors) in zip(wrong, BAD, started, strict=True):
        evaluated = one.tiercel("evaluate", "--study", "tiny")
        for ended, said in ((code, errors), (evaluated.returncode, evaluated.stderr)):
            assert ended == 2, (message, said)
            lines = [line for line in said.splitlines() if line.startswith("tiercel: ")]
            assert len(lines) == 1, (message, said)
            assert message in lines[0]
            assert "Traceback" not in said
        assert not one.results.exists()


def test_an_mpi_that_does_not_start(project: Project, tmp_path: Path) -> None:
    broken = tmp_path / "bin"
    broken.mkdir()
    for name in ("mpiexec", "iokernel", "iokernel-mpi"):
        (broken / name).write_text("#!/bin/sh\necho 'error: no fabric' >&2\nexit 7\n")
        (broken / name).chmod(0o755)
    # The virtual environment's own mpiexec comes first, so this project's Python is one that has none.
    code = (
        "import sys, tiercel.programs as p; sys.executable = '/nowhere/python'; p.program.cache_clear();"
        "from tiercel.cli.main import main; sys.argv = ['tiercel', 'check', '--study', 'tiny']; main()"
    )
    path = project.root / "site-configs" / "local" / "site.yaml"
    path.write_text(path.read_text().replace("launcher: fork", "launcher: mpiexec"))
    answer = subprocess.run(
        [sys.executable, "-c", code], cwd=project.root, capture_output=True, text=True, check=False,
        env={**os.environ, "PATH": f"{broken}:{os.environ['PATH']}"},
    )  # fmt: skip
    assert answer.returncode == 2, answer.stderr
    assert "launcher mpiexec: does not start: error: no fabric" in answer.stderr
    assert "set launcher: fork" in answer.stderr


def test_an_unknown_profile_or_study(project: Project) -> None:
    answer = project.tiercel("evaluate", "--study", "tny")
    assert answer.returncode == 2
    assert "no study named 'tny' under workflows/studies/: did you mean tiny?" in answer.stderr
    answer = project.tiercel("evaluate", "--site", "lasen")
    assert answer.returncode == 2


def test_a_scratch_folder_with_an_odd_name(new_project: Callable[[str], Project]) -> None:
    project = new_project("with blank, 'quote\" and a new\nline")
    project.study("tiny", ONE)
    answer = project.tiercel("evaluate", "--study", "tiny")
    assert answer.returncode == 0, answer.stderr
    runs = pd.read_parquet(project.results / "runs.parquet")
    assert set(runs["status"]) == {"ok"}
