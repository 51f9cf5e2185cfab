"""The programs that are compared: dlkernel, upstream DLIO, and real trainings.

Each trains on a dataset that is already there and leaves its trace: DFTracer's, in whose schema dlkernel
writes its own, or strace's (see `tracer_for`).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tiercel.children import killed_with_parent
from tiercel.dl.engine import DLKernel
from tiercel.dl.files.spec import spec_of
from tiercel.dl.generating import crew, generate_only
from tiercel.dl.study_workload import DeepLearningWorkload
from tiercel.dl.upstream.engine import DLIO
from tiercel.dl.upstream.environment import FOLDERS, environment_for
from tiercel.dl.workload import DLWorkload, Scale
from tiercel.engines import Task, engines
from tiercel.errors import RunFailed, UserError
from tiercel.launchers import resolve
from tiercel.runs.strace import no_strace, under_strace
from tiercel.runs.tracing import preload_library, tracing_environment

TRAINING = Path(__file__).parent / "training"
_TIMEOUT_S = 1800


@dataclass(frozen=True)
class Setting:
    """One comparison: everybody gets this workload, as is, and this dataset. Times in seconds."""

    workload: DeepLearningWorkload
    found: DLWorkload
    folder: Path
    """Holds ``dataset/``."""
    processes: int
    tracer: str = "dftracer"
    training: tuple[str, ...] = ()
    """Options of the training alone."""
    made: Path | None = None
    """The dataset, where it lies elsewhere."""

    @property
    def dataset(self) -> Path:
        return self.made or self.folder / "dataset"


def make_dataset(setting: Setting) -> None:
    """Make the files of the workload in ``dataset/`` of the setting's folder."""
    made = setting.folder / "made"
    made.mkdir(parents=True, exist_ok=True)
    setting.dataset.mkdir()
    if setting.found.dataset.format != "synthetic":
        generate_only(setting.workload, setting.dataset, made, crew(1, setting.processes, None))


class Program(ABC):
    """One of the programs."""

    name: str

    @abstractmethod
    def missing(self, found: DLWorkload) -> str | None:
        """Return why it cannot take part, or None."""

    @abstractmethod
    def command(self, setting: Setting, output: Path) -> tuple[list[str], bool]:
        """Return the command line, and whether an MPI launcher starts it on every process."""

    def since(self, _output: Path) -> float | None:
        """Return when its training began, seconds since 1970; None: all that it does counts."""
        return None

    def tracing(self, setting: Setting, output: Path) -> Mapping[str, str]:
        """Return the variables that make it leave ``trace/`` in `output`, without strace."""
        environment = tracing_environment(output, setting.dataset)
        if not environment:
            raise UserError("dl verify: DFTracer is not installed: there is no wheel of it for this machine")
        return environment


class Kernel(Program):
    """dlkernel, the embedded engine."""

    name = "dlkernel"

    def missing(self, found: DLWorkload) -> str | None:
        return None

    def since(self, output: Path) -> float | None:
        # It looks into the dataset before it trains, and drops it from the page cache then.
        rows = json.loads((output / "dlkernel.json").read_text())["rows"]
        return min(float(row["began"]) for row in rows if row["kind"] == "train")

    def command(self, setting: Setting, output: Path) -> tuple[list[str], bool]:
        work = setting.found.workflow.model_copy(update={"generate_data": False})
        spec = spec_of(setting.found.model_copy(update={"workflow": work}), Scale())
        return [
            sys.executable, "-m", "tiercel.dl.kernel", "--spec", json.dumps(spec),
            "--data", str(setting.dataset), "--output", str(output), "--cold", "first",
            "--processes", str(setting.processes),
        ], False  # fmt: skip

    def tracing(self, setting: Setting, output: Path) -> Mapping[str, str]:
        # Its own log, in DFTracer's schema: DFTracer does not see preadv, by which dlkernel reads.
        return DLKernel().tracing(output)


class Upstream(Program):
    """Upstream DLIO."""

    name = "dlio"

    def missing(self, found: DLWorkload) -> str | None:
        if found.dataset.format == "synthetic":
            return "for samples that are made in memory it makes files of its own, which nobody reads"
        engine = engines.get(self.name)()
        content = {"operation": "deep-learning", "workload": "", "content": found.model_dump(mode="json")}
        return engine.unsupported(DeepLearningWorkload.model_validate(content), 1)

    def command(self, setting: Setting, output: Path) -> tuple[list[str], bool]:
        task = Task(
            setting.workload,
            1,
            setting.processes,
            setting.folder,
            output,
            setting.found.train.seed,
            "mpiexec",
        )
        return list(DLIO().step(task, setting.found).argv), True


class Training(Program):
    """A real training: a 3D CNN on TFRecord files in TensorFlow; in PyTorch ResNet on images, and a small
    network on numbers in the other formats."""

    name = "training"
    _SCRIPTS: Mapping[tuple[str, str], str] = {
        ("tensorflow", "tfrecord"): "cnn3d_tensorflow.py",
        **{("pytorch", kind): "resnet_torch.py" for kind in ("jpeg", "png")},
        **{("pytorch", kind): "arrays_torch.py" for kind in (
            "npz", "npy", "hdf5", "csv", "indexed_binary", "mmap_indexed_binary", "parquet", "synthetic"
        )},
    }  # fmt: skip

    def missing(self, found: DLWorkload) -> str | None:
        pair = (found.framework, found.dataset.format)
        if pair not in self._SCRIPTS:
            return f"no real training reads {pair[1]} with {pair[0]}"
        if environment_for(found.framework) is None:
            command = list(FOLDERS.values())[found.framework == "pytorch"]
            return f"no environment with {found.framework}: run `{command}`"
        return None

    def command(self, setting: Setting, output: Path) -> tuple[list[str], bool]:
        found, reader = setting.found, setting.found.reader
        environment = environment_for(found.framework)
        assert environment is not None
        script = TRAINING / self._SCRIPTS[found.framework, found.dataset.format]
        argv = [
            str(environment.python), str(script), "--data", str(setting.dataset),
            "--format", found.dataset.format, "--files", str(found.dataset.num_files_train),
            "--samples-per-file", str(found.dataset.num_samples_per_file),
            "--report", str(output / "training.json"), "--epochs", str(found.train.epochs),
            "--batch-size", str(reader.batch_size), "--read-threads", str(reader.read_threads),
            "--computation-threads", str(reader.computation_threads),
            "--prefetch-size", str(reader.prefetch_size), "--transfer-size", str(reader.transfer_size or 0),
            "--shuffle-size", str(reader.shuffle_size), "--seed", str(found.train.seed),
        ]  # fmt: skip
        shuffle = ["--shuffle"] if reader.sample_shuffle != "off" else []
        # One file that all samples are in stays open, as in the applications that have one, and in dlkernel.
        keep_open = ["--keep-open"] if reader.file_access != "multi" else []
        return [*argv, *shuffle, *keep_open, *setting.training], True


PROGRAMS: Mapping[str, type[Program]] = {p.name: p for p in (Kernel, Upstream, Training)}


#: What is done to these is not in such a trace: HDF5 reads by itself, mapped files are not read by calls, and
#: numpy and pyarrow read through the C library, below what DFTracer sees.
_UNSEEN = ("hdf5", "hdf5_opt", "indexed_binary", "mmap_indexed_binary", "npy", "parquet")


def tracer_for(kind: str, wanted: str = "auto") -> tuple[str, str]:
    """Return which tracer shows what is done to files of a format, or why none does: (tracer, reason).

    strace shows the system calls of every program alike, but stops it for each: on a busy machine that takes
    longer than the call. So it is for what the other does not see, and where it is wanted. UserError for a
    name that is none.
    """
    if wanted not in ("auto", "dftracer", "strace"):
        raise UserError(f"--tracer {wanted}: allowed are auto, dftracer, strace")
    without_strace = no_strace()
    if preload_library() is None:
        without_dftracer = "not installed for this machine and Python"
    else:
        without_dftracer = f"does not show {kind}" if kind in _UNSEEN else ""
    if wanted != "strace" and not without_dftracer:
        return "dftracer", ""
    if wanted != "dftracer" and not without_strace:
        return "strace", ""
    return "", f"DFTracer: {without_dftracer or 'not asked for'}; strace: {without_strace or 'not asked for'}"


def compute_seconds(output: Path) -> float | None:
    """Return the median computation of a step of a training that ended, None for other programs."""
    try:
        seconds = json.loads((output / "training.json").read_text())["compute_seconds"]
    except FileNotFoundError:
        return None
    return float(seconds)


def traced(program: Program, setting: Setting, output: Path) -> Path:
    """Run `program` and return its trace: strace's file, or the folder of DFTracer's.

    RunFailed, with what it said last, for one that fails or outlives the time limit.
    """
    output.mkdir(parents=True)
    seen = setting.tracer == "strace"
    log = output / "run.strace"
    _launch(program, setting, output, {} if seen else program.tracing(setting, output), log if seen else None)
    return log if seen else output / "trace"


def untraced(program: Program, setting: Setting, output: Path) -> None:
    """Run `program` with nothing that slows it down; RunFailed as `traced`."""
    output.mkdir(parents=True)
    _launch(program, setting, output, {})


def _launch(
    program: Program, setting: Setting, output: Path, environment: Mapping[str, str], log: Path | None = None
) -> None:
    """Start `program` as it is started everywhere; `log`: where strace writes what it sees."""
    argv, parallel = program.command(setting, output)
    argv = ["env", *(f"{name}={value}" for name, value in environment.items()), *argv]
    launcher = resolve("mpiexec" if parallel else "fork")
    lacking = launcher.missing()
    if lacking:
        raise UserError(f"{program.name}: {lacking}")
    argv = launcher.command(argv, 1, setting.processes) if parallel else argv
    _start(
        under_strace(argv, log) if log else argv,
        {**os.environ, **launcher.environment(), "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONNOUSERSITE": "1"},
        output,
        program.name,
    )


def _start(argv: list[str], environment: Mapping[str, str], output: Path, name: str) -> None:
    with (output / "stdout").open("wb") as out, (output / "stderr").open("wb") as err:
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=environment, cwd=output,
            start_new_session=True, preexec_fn=killed_with_parent,  # noqa: PLW1509
        )  # fmt: skip
        try:
            code = process.wait(_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            raise RunFailed(f"{name}: stopped after {_TIMEOUT_S} s") from None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    if code:
        lines = [
            line for line in (output / "stderr").read_text(errors="replace").splitlines() if line.strip()
        ]
        telling = [line for line in lines if "Error" in line or "error" in line]
        raise RunFailed(
            f"{name}: exit code {code}: {(telling or lines or ['it said nothing'])[-1].strip()[:300]}"
        )
