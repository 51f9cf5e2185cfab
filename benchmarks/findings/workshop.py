"""Runs the programs of a labelled set, each under its tracer and on its storage."""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks.findings.labels import Trace
from tiercel.units import parse_size

_PROGRAMS = Path(__file__).parent / "programs"
#: What calls take on the storages that `storage.c` stands for.
DELAYS: Mapping[str, Mapping[str, str]] = {
    "near": {
        "STORAGE_CALL_US": "200", "STORAGE_META_US": "500",
        "STORAGE_SYNC_US": "3000", "STORAGE_MBPS": "1000",
    },
    "far": {
        "STORAGE_CALL_US": "1000", "STORAGE_META_US": "3000",
        "STORAGE_SYNC_US": "10000", "STORAGE_MBPS": "300",
    },
}  # fmt: skip
#: What strace writes down, and what it holds up.
_CALLS = "trace=%file,%desc"
_TRANSFERS = "read,write,pread64,pwrite64"
_METADATA = "openat,newfstatat,statx,unlink,unlinkat,rename,mkdir"
_SYNCS = "fsync,fdatasync"
_LIMIT = 300  # seconds for one program


class Missing(Exception):
    """A program or library that a trace needs is not here."""


class Workshop:
    """A folder in which programs run one after the other, each in an empty data folder."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._study: Path = options.study
        self._places = dict(place.split("=", 1) for place in options.place)
        self._libraries = {"--darshan": options.darshan, "--dftracer": options.dftracer}
        self._bin = self._study / "bin"
        self._bin.mkdir(parents=True, exist_ok=True)
        self._built: set[str] = set()

    def make(self, trace: Trace, folder: Path) -> int:
        """Run the program of `trace` and put the trace into `folder`; return its bytes."""
        data, logs = self._data(trace.storage), self._study / "logs"
        for place in (data, logs):
            if place.exists():
                raise Missing(f"{place} is in the way: what is in it would be removed")
        data.mkdir()
        logs.mkdir()
        try:
            for program in ("patterns.py", "streams"):
                if program in trace.program:
                    self._build(program)
            self._prepare(trace, data)
            words = shlex.split(trace.program.format(data=data, bin=self._bin))
            environment = {"PATH": os.environ["PATH"], "HOME": str(self._study), "LC_ALL": "C",
                           "USER": "user", "LOGNAME": "user"}  # fmt: skip
            tracer, preload = self._tracer(trace, data, logs)
            if trace.storage in DELAYS and trace.tracer != "strace":
                preload += [self._build("libstorage.so")]
                tracer |= {**DELAYS[trace.storage], "STORAGE_UNDER": str(data)}
                tracer |= {"STORAGE_SLOW": trace.slow} if trace.slow else {}
            command = self._command(trace, words, {**tracer, "LD_PRELOAD": " ".join(preload)}, logs)
            _run(command, cwd=data, env=environment)
            return _keep(logs, folder / trace.file)
        finally:
            shutil.rmtree(data)
            shutil.rmtree(logs)

    def _build(self, program: str) -> str:
        """Return the path of one of our programs, built in this session."""
        target = self._bin / program
        if program not in self._built:
            if target.suffix == ".py":
                shutil.copy(_PROGRAMS / program, target)
            elif target.suffix == ".so":
                words = ["-O2", "-shared", "-fPIC", str(_PROGRAMS / "storage.c"), "-ldl"]
                _run([_tool("cc"), *words, "-o", str(target)])
            else:
                _run([_tool("mpicc"), "-O2", str(_PROGRAMS / f"{program}.c"), "-o", str(target)])
            self._built.add(program)
        return str(target)

    def _data(self, storage: str) -> Path:
        if storage in ("disk", *DELAYS):
            return self._study / "data"
        if storage not in self._places:
            raise Missing(f"needs --place {storage}=FOLDER")
        return Path(self._places[storage]) / "study-data"

    def _prepare(self, trace: Trace, data: Path) -> None:
        """Make the inputs, and see that none is in the page cache."""
        for name, size in trace.inputs.items():
            left = parse_size(size)
            with (data / name).open("wb") as stream:
                while left > 0:
                    left -= stream.write(os.urandom(min(left, 1 << 22)))
        if trace.prepare:
            _run(["sh", "-c", trace.prepare.format(data=data, bin=self._bin)], cwd=data)
        for path in data.rglob("*"):
            if path.is_file():
                descriptor = os.open(path, os.O_RDONLY)
                os.fsync(descriptor)
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
                os.close(descriptor)

    def _tracer(self, trace: Trace, data: Path, logs: Path) -> tuple[dict[str, str], list[str]]:
        """Return the variables that turn the tracer on, and the libraries to load before the program."""
        if trace.tracer in ("darshan", "dxt"):
            variables = {"DARSHAN_LOG_DIR": str(logs), "DARSHAN_JOBID": "1", "DARSHAN_MODMEM": "64"}
            if trace.tracer == "dxt":
                variables["DXT_ENABLE_IO_TRACE"] = "1"
            if not trace.mpi:
                variables["DARSHAN_ENABLE_NONMPI"] = "1"
            return variables, [self._library("--darshan")]
        if trace.tracer == "dftracer":
            variables = {"DFTRACER_ENABLE": "1", "DFTRACER_INIT": "PRELOAD", "DFTRACER_INC_METADATA": "1",
                         "DFTRACER_LOG_FILE": str(logs / "run"), "DFTRACER_DATA_DIR": str(data)}  # fmt: skip
            return variables, [self._library("--dftracer")]
        return {}, []

    def _library(self, option: str) -> str:
        path: Path | None = self._libraries[option]
        if path is None or not path.exists():
            raise Missing(f"needs {option} PATH of the library")
        return str(path)

    def _command(self, trace: Trace, words: list[str], variables: Mapping[str, str], logs: Path) -> list[str]:
        """The variables go to the program alone: neither launcher nor strace is to be traced or delayed."""
        named = ["env", *(f"{k}={v}" for k, v in variables.items() if v), *words]
        if trace.tracer == "strace":
            log = ["-f", "-ttt", "-T", "-y", "-s", "0", "-e", _CALLS, "-o", str(logs / "run")]
            return [_tool("strace"), *log, *_injected(trace.storage), *words]
        if trace.mpi:
            return [_tool("mpiexec"), "-n", str(trace.ranks), *named]
        return named


def _injected(storage: str) -> Iterator[str]:
    """Yield the options that make strace hold system calls up as `storage.c` does library calls.

    It does so for all files alike; the programs do little with others than those below the data folder.
    """
    waits = {_TRANSFERS: "STORAGE_CALL_US", _METADATA: "STORAGE_META_US", _SYNCS: "STORAGE_SYNC_US"}
    for calls, delay in waits.items():
        if storage in DELAYS:
            yield from ("-e", f"inject={calls}:delay_enter={DELAYS[storage][delay]}")


def _keep(logs: Path, target: Path) -> int:
    """Move what the tracer wrote to `target`: one file as it is (text compressed), several as a tar."""
    found = sorted(p for p in logs.iterdir() if p.is_file())
    if not found:
        raise Missing("the tracer wrote nothing")
    if target.suffix == ".tar":
        with tarfile.open(target, "w") as tar:
            for path in found:
                tar.add(path, path.name, filter=_nobody)
    elif target.suffix == ".gz" and found[0].suffix != ".gz":
        with target.open("wb") as packed:
            subprocess.run([_tool("gzip"), "-9nc", str(found[0])], stdout=packed, check=True)
    else:
        # Several programs under one tracer (a shell and its children) leave several logs: take the longest.
        shutil.copyfile(max(found, key=lambda p: p.stat().st_size), target)
    return target.stat().st_size


def _nobody(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


def _tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise Missing(f"{name} is not on PATH")
    return found


def _run(command: Sequence[str], cwd: Path | None = None, env: Mapping[str, str] | None = None) -> None:
    done = subprocess.run(
        command, cwd=cwd, env=env, capture_output=True, text=True, timeout=_LIMIT, check=False
    )
    if done.returncode:
        said = list(_last(done.stderr or done.stdout))
        raise OSError(f"{shlex.join(command)[:300]} ended with {done.returncode}: {' | '.join(said)}")


def _last(text: str, lines: int = 3) -> Iterator[str]:
    yield from text.strip().splitlines()[-lines:]
