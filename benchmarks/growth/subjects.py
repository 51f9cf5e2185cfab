"""The subjects: each writes the input of a size and names the command that is measured."""
# A process hands its peak memory on to the commands that it measures: each function imports its own.
# ruff: noqa: PLC0415

from __future__ import annotations

import importlib.util
import shutil
import sys
from functools import partial
from pathlib import Path

from benchmarks.cost import CHECKOUT, measure
from benchmarks.growth.fit import Subject, Trial
from benchmarks.growth.studies import (
    Size,
    later_session,
    make_results,
    make_study,
    measured_template,
    simulated_study,
)
from benchmarks.growth.traced import copied_logs, every_rank_opens_every_file, one_shared_file

_TIERCEL = [sys.executable, "-m", "tiercel"]
_TRIAL = ["--study", "trial"]


def _plan_size(runs: int) -> Size:
    """Ten repetitions of each of two scales on one storage."""
    return Size(max(1, runs // 20), 10, 1, replicates=False)


def _size_of_runs(runs: int) -> Size:
    """Repetitions grow: 20 workloads, three storages, three sessions of two scales."""
    return Size(20, runs // 180) if runs >= 720 else Size(max(1, runs // 36), 4)


def _size_of_workloads(workloads: int) -> Size:
    """Workloads grow: four repetitions, each with a replicate, on two storages."""
    return Size(workloads, 4, 2, (2,))


_SIZES = {"runs": _size_of_runs, "workloads": _size_of_workloads}


def _measured_study(root: Path, unit: str, size: int) -> Path:
    """Return a project with a measured study of that many runs or workloads; made once."""
    project = root / f"measured-{unit}-{size}"
    if not project.exists():
        template = root / "template"
        if not (template / "record.json").exists():
            shutil.copytree(measured_template(root / "measured-template"), template)
        make_results(project, _SIZES[unit](size), template)
    return project


def _plan(command: list[str], root: Path, runs: int) -> Trial:
    project = root / f"plan-{runs}"
    if not project.exists():
        make_study(project, _plan_size(runs))
    shutil.rmtree(project / ".snakemake", ignore_errors=True)
    return Trial(command, project, (project,))


def _evaluate(root: Path, runs: int) -> Trial:
    project = make_study(root / f"evaluate-{runs}", Size(max(1, runs // 10), 10, 1, (1,), replicates=False))
    return Trial([*_TIERCEL, "evaluate", *_TRIAL], project, (project / "results",))


def _show(unit: str, root: Path, size: int) -> Trial:
    project = _measured_study(root, unit, size)
    return Trial([*_TIERCEL, "show", *_TRIAL], project, (project / "results",))


def _status(root: Path, size: int) -> Trial:
    project = _measured_study(root, "runs", size)
    return Trial([*_TIERCEL, "status", *_TRIAL], project, (project / "results",))


def _report(unit: str, root: Path, size: int) -> Trial:
    project = _measured_study(root, unit, size)
    shutil.rmtree(project / "results/local/report", ignore_errors=True)
    return Trial([*_TIERCEL, "report", *_TRIAL], project, (project / "results",))


def _collect(root: Path, size: int, *, again: bool = False) -> Trial:
    project = _measured_study(root, "runs", size)
    if not again:
        for name in ("observations.parquet", "runs.parquet", "dataset.nc"):
            (project / "results/local" / name).unlink(missing_ok=True)
    return Trial([*_TIERCEL, "collect", *_TRIAL], project, (project / "results",))


def _compare(unit: str, root: Path, size: int) -> Trial:
    project = _measured_study(root, unit, size)
    other = root / f"copied-{unit}-{size}"
    if not other.exists():
        other.mkdir()
        later_session(project / "results/local", other)
    output = root / "comparison"
    shutil.rmtree(output, ignore_errors=True)
    return Trial([*_TIERCEL, "compare", str(other), "local", "-o", str(output)], project, (output,))


def _artifact(root: Path, size: int) -> Trial:
    project = _measured_study(root, "runs", size)
    archive = root / f"archive-{size}.tar.gz"
    archive.unlink(missing_ok=True)
    command = [
        *_TIERCEL,
        "artifact",
        *_TRIAL,
        "-o",
        str(archive),
        "--sources",
        str(CHECKOUT),
        "--author",
        "Doe, Jane",
        "--licence",
        "CC0-1.0",
    ]
    return Trial(command, project, (root,))


def _reproduce(root: Path, size: int) -> Trial:
    archive = root / f"archive-{size}.tar.gz"
    if not archive.exists():
        packing = _artifact(root, size)
        _run(packing)
    output = root / "again"
    shutil.rmtree(output, ignore_errors=True)
    return Trial([*_TIERCEL, "reproduce", str(archive), "-o", str(output)], root, (output,))


def _run(trial: Trial) -> None:
    measure(trial.command, folder=trial.folder)


def _trace(command: str, kind: str, root: Path, size: int) -> Trial:
    from benchmarks.traces.generate import generate

    folder = root / f"trace-{kind}-{size}"
    if not folder.exists():
        if kind == "events":
            generate(folder, size)
        elif kind == "ranks":
            generate(folder, 200_000, files=size)
        elif kind == "shared":
            one_shared_file(folder, size)
        else:
            every_rank_opens_every_file(folder, size)
    cache = root / "trace-cache"
    shutil.rmtree(cache, ignore_errors=True)
    page = ["-o", str(root / "trace.html")] if command == "report" else []
    words = [*_TIERCEL, "trace", command, str(folder), "--cache", str(cache), *page]
    return Trial(words, root, (cache, root / "trace.html"))


def _survey(dask: bool, root: Path, logs: int) -> Trial:
    folder = copied_logs(root / f"logs-{logs}", logs)
    output = root / "survey"
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir()
    words = [str(folder), "--output", str(output / "survey.parquet")]
    if dask:
        return Trial([sys.executable, "-m", "benchmarks.growth.dask", *words], CHECKOUT, (output,))
    return Trial([*_TIERCEL, "trace", "survey", *words], root, (output,))


def _without_dask() -> str:
    return "" if importlib.util.find_spec("distributed") else "the package distributed is not installed"


def _simulate(root: Path, nodes: int) -> Trial:
    project = simulated_study(root / f"simulate-{nodes}", nodes)
    shutil.rmtree(project / "results", ignore_errors=True)
    return Trial([*_TIERCEL, "evaluate", *_TRIAL, "--simulate"], project, (project / "results",))


def _share_simulate(root: Path, servers: int) -> Trial:
    words = ["share", "simulate", "--servers", str(servers), "--duration", "3s", "--json"]
    return Trial([*_TIERCEL, *words], root, ())


def _share_server(root: Path, jobs: int) -> Trial:
    return Trial([sys.executable, "-m", "benchmarks.growth.sharing", str(jobs)], CHECKOUT, ())


def _without_layers() -> str:
    from tiercel.layers.fairshare.programs import NOT_BUILT, find_programs

    return "" if find_programs() else NOT_BUILT


def _dl_run(root: Path, files: int) -> Trial:
    output = root / "dl"
    shutil.rmtree(output, ignore_errors=True)
    data = root / "dl-data"
    shutil.rmtree(data, ignore_errors=True)
    data.mkdir()
    options = {
        "dataset.num_files_train": files, "dataset.num_samples_per_file": 1,
        "dataset.record_length_bytes": 1024, "dataset.record_length_bytes_stdev": 0,
        "dataset.record_length_bytes_resize": 1024, "dataset.format": "npz", "train.epochs": 1,
        "train.computation_time": 0.0, "reader.batch_size": 64,
    }  # fmt: skip
    words = [word for key, value in options.items() for word in ("--set", f"{key}={value}")]
    command = ["dl", "run", "unet3d-h100", "--folder", str(data), "--cold", "none"]
    return Trial([*_TIERCEL, *command, "--output", str(output), *words], root, (output, data))


_RUNS = (1_000, 3_000, 10_000, 30_000)
_WORKLOADS = (10, 100, 500, 1_500, 3_000)
_EVENTS = (100_000, 1_000_000, 10_000_000)
_MANY = (10, 100, 1_000)

SUBJECTS = (
    Subject("plan", "runs", 20, (100, 1_000, 10_000, 100_000),
            partial(_plan, [*_TIERCEL, "plan", *_TRIAL])),
    Subject("snakemake -n", "runs", 20, (100, 1_000, 10_000, 100_000),
            partial(_plan, [sys.executable, "-m", "snakemake", "--profile", "local", "-n", "--config",
                            "study=trial"])),
    Subject("evaluate", "runs", 10, (40, 160, 640), _evaluate,
            "iokernel writes some KiB in each run; report included"),
    Subject("status", "runs", 36, _RUNS, _status),
    Subject("collect", "runs", 36, _RUNS, _collect),
    Subject("collect, again", "runs", 36, _RUNS, partial(_collect, again=True)),
    Subject("show", "runs", 36, _RUNS, partial(_show, "runs")),
    Subject("show", "workloads", 1, _WORKLOADS, partial(_show, "workloads"), "16 runs each"),
    Subject("report", "runs", 36, _RUNS, partial(_report, "runs")),
    Subject("report", "workloads", 1, _WORKLOADS, partial(_report, "workloads"), "16 runs each"),
    Subject("compare", "runs", 36, _RUNS, partial(_compare, "runs")),
    Subject("compare", "workloads", 1, _WORKLOADS, partial(_compare, "workloads"), "16 runs each"),
    *(Subject(f"trace {command}", unit, 1_000 if kind == "events" else 1, sizes,
              partial(_trace, command, kind), note)
      for command in ("summary", "explain", "report")
      for kind, unit, sizes, note in (
          ("events", "events", _EVENTS, "16 ranks"),
          ("ranks", "ranks", _MANY, "200,000 events, one file of the trace each"),
          ("shared", "ranks of one file", _MANY, "500 accesses each"),
          ("all", "ranks and files", (10, 30, 100, 300), "each rank opens each file"),
      )),
    Subject("trace survey", "logs", 10, (100, 1_000, 10_000), partial(_survey, False)),
    Subject("trace survey --dask", "logs", 10, (100, 1_000, 10_000), partial(_survey, True),
            "two local workers", _without_dask),
    Subject("evaluate --simulate", "nodes", 1, (8, 64, 256, 795), _simulate, "44 processes each"),
    Subject("share simulate", "servers", 1, (8, 64, 256, 1_024), _share_simulate, "3 s"),
    Subject("fairshare-server", "jobs", 1, (10, 100, 1_000), _share_server, "50 requests each",
            _without_layers),
    Subject("dl run", "files", 100, (1_000, 10_000, 100_000, 1_000_000), _dl_run, "1 KiB each"),
    Subject("artifact", "runs", 36, (1_000, 3_000, 10_000), _artifact),
    Subject("reproduce", "runs", 36, (1_000, 3_000, 10_000), _reproduce),
)  # fmt: skip


def _tiny(words: list[str], root: Path, _: int) -> Trial:
    project = _measured_study(root, "runs", 36)
    return Trial([*_TIERCEL, *words], project, ())


def _tiny_trace(again: bool, root: Path, _: int) -> Trial:
    log = CHECKOUT / "tests/data/traces/darshan/posix-counters.darshan"
    trial = Trial([*_TIERCEL, "trace", "summary", str(log), "--cache", str(root / "tiny")], root, ())
    if again:
        _run(trial)
    else:
        shutil.rmtree(root / "tiny", ignore_errors=True)
    return trial


#: Commands on tiny input: what starting costs.
STARTS = (
    Subject("--help", "", 1, (), partial(_tiny, ["--help"])),
    Subject("--version", "", 1, (), partial(_tiny, ["--version"])),
    Subject("status", "", 1, (), partial(_tiny, ["status", *_TRIAL])),
    Subject("show", "", 1, (), partial(_tiny, ["show", *_TRIAL])),
    Subject("trace summary", "", 1, (), partial(_tiny_trace, False)),
    Subject("trace summary, again", "", 1, (), partial(_tiny_trace, True)),
)
