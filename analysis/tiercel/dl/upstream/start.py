"""Starts upstream DLIO in its own environment: ``python start.py OVERRIDE...``.

``python start.py --versions`` says what is there instead. Runs with the interpreter of that environment,
where tiercel is not installed: imports nothing of tiercel. It mends what keeps DLIO 2.0.0 from doing what its
workload file says with the packages of today:

- pydftracer 2 has no module ``dftracer.logger``; the same names are in ``dftracer.python``. That imports a
  part for PyTorch's compiler, which DLIO does not use and which refuses to be traced with PyTorch 1.
- TensorFlow is imported even where nothing of it is used: without it, its profiler is a stand-in.
- ``compression``, ``file_shuffle`` and ``read_type`` are left as texts and then compared with enumerations,
  which makes ``off`` mean on and loses the compression level: they become what they are compared with.
- A rank that fails leaves the others in a barrier for ever: all end with it.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import json
import os
import re
import sys
import time
import traceback
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

#: After an abort mpiexec reads no more of what a rank has written: so long it has to read why (s).
_TOLD_S = 0.5


def versions() -> dict[str, Any]:
    """Return the versions of DLIO and of what it may use; empty for what is not there. Imports none of it."""
    found: dict[str, Any] = {
        name: _version(module)
        for name, module in (("dlio", "dlio_benchmark"), ("tensorflow", "tensorflow"), ("torch", "torch"),
                             ("dftracer", "dftracer"))
    }  # fmt: skip
    dlio = importlib.util.find_spec("dlio_benchmark")
    places = dlio.submodule_search_locations if dlio else None
    config = Path(next(iter(places))) / "utils" / "config.py" if places else None
    found["renamed_keys"] = bool(config and config.is_file() and "record_length_bytes" in config.read_text())
    return found


def _version(module: str) -> str:
    spec = importlib.util.find_spec(module)
    if spec is None:
        return ""
    for name in (module, module.replace("_", "-"), f"{module}-cpu"):
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    # Distributions' packages often lack Python's metadata.
    for place in spec.submodule_search_locations or ():
        file = Path(place) / "version.py"
        match = re.search(r"__version__\s*=\s*['\"]([^'\"]+)", file.read_text()) if file.is_file() else None
        if match:
            return match[1]
    return "unknown"


def trace_spans_too() -> None:
    """Under DFTracer's preload library: start again with DFTracer inside Python.

    The preload library logs system calls only, and forgets to which rank a loader's worker belongs.
    """
    if os.environ.get("DFTRACER_ENABLE") != "1" or os.environ.get("DFTRACER_INIT") != "PRELOAD":
        return
    if importlib.util.find_spec("dftracer") is None:
        return
    environment = {**os.environ, "DFTRACER_INIT": "FUNCTION"}
    preloaded = environment.pop("LD_PRELOAD", "").split(":")
    if others := [library for library in preloaded if library and "libdftracer" not in library]:
        environment["LD_PRELOAD"] = ":".join(others)
    os.execve(sys.executable, [sys.executable, *sys.argv], environment)


def keep_traces_together() -> None:
    """Let DLIO write its traces where DFTRACER_LOG_FILE says, not among its results."""
    log = os.environ.get("DFTRACER_LOG_FILE")
    if os.environ.get("DFTRACER_ENABLE") != "1" or not log:
        return
    utility = importlib.import_module("dlio_benchmark.utils.utility")
    name = utility.get_trace_name
    utility.get_trace_name = lambda _folder, use_pid=False: name(str(Path(log).parent), use_pid)  # type: ignore[attr-defined]
    drop_empty_traces()


def drop_empty_traces() -> None:
    """Remove what the preload library opened, and never wrote to, before this process started again."""
    log = Path(os.environ["DFTRACER_LOG_FILE"])
    for trace in log.parent.glob(f"{log.name}-*-preload.pfw.gz"):
        try:
            if trace.stat().st_size == 0:
                trace.unlink()
        except FileNotFoundError:  # another rank was quicker
            continue


def alias_dftracer() -> None:
    """Offer ``dftracer.python`` under the name that DLIO 2.0.0 imports."""
    if importlib.util.find_spec("dftracer") is None or importlib.util.find_spec("dftracer.logger"):
        return
    sys.modules["dftracer.python.dynamo"] = types.ModuleType("dftracer.python.dynamo")
    sys.modules["dftracer.logger"] = importlib.import_module("dftracer.python")


def stand_in_for_tensorflow() -> None:
    """Let DLIO's profiler factory be imported without TensorFlow; the profiler itself then says why not."""
    if importlib.util.find_spec("tensorflow"):
        return

    class TFProfiler:
        @staticmethod
        def get_instance() -> TFProfiler:
            raise SystemExit("dlio: the tensorboard profiler needs TensorFlow, which is not installed here")

    module = types.ModuleType("dlio_benchmark.profiler.tf_profiler")
    module.TFProfiler = TFProfiler  # type: ignore[attr-defined]
    sys.modules[module.__name__] = module


def mend_enumerations() -> None:
    """Let DLIO turn three settings into the enumerations that it compares them with."""
    kinds = importlib.import_module("dlio_benchmark.common.enumerations")
    config = importlib.import_module("dlio_benchmark.utils.config")
    load = config.LoadConfig
    settings = {"compression": kinds.Compression, "file_shuffle": kinds.Shuffle, "read_type": kinds.ReadType}

    def loaded(args: Any, content: Any) -> Any:
        answer = load(args, content)
        for name, kind in settings.items():
            value = getattr(args, name, None)
            if isinstance(value, str):
                setattr(args, name, kind(value))
        return answer

    config.LoadConfig = loaded  # type: ignore[attr-defined]


@contextlib.contextmanager
def all_or_none() -> Iterator[None]:
    """End all ranks where this one fails: the others would wait for it in a barrier, for ever."""
    try:
        yield
    except BaseException as error:
        mpi: Any = sys.modules.get("mpi4py.MPI")
        failed = not (isinstance(error, SystemExit) and error.code in (0, None))
        if failed and mpi and mpi.Is_initialized() and not mpi.Is_finalized() and mpi.COMM_WORLD.size > 1:
            if not isinstance(error, SystemExit):  # Hydra has told it already
                traceback.print_exc()
            sys.stdout.flush()
            sys.stderr.flush()
            time.sleep(_TOLD_S)
            mpi.COMM_WORLD.Abort(1)
        raise


def main() -> None:
    if sys.argv[1:] == ["--versions"]:
        print(json.dumps(versions()))
        return
    trace_spans_too()
    alias_dftracer()
    stand_in_for_tensorflow()
    keep_traces_together()
    mend_enumerations()
    with all_or_none():
        importlib.import_module("dlio_benchmark.main").main()


if __name__ == "__main__":
    main()
