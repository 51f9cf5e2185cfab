"""``python -m benchmarks.findings.make``: run the programs of a labelled set again, each under its tracer.

The table of the set (`labels.yaml`) says which program, how many ranks, which tracer and which storage; this
runs them and replaces the traces beside it. Nothing is built here but the two small C programs: Darshan,
DFTracer, IOR, mdtest, an MPI with its compiler, mpi4py and strace have to be there; what is missing is said.

Logs tell where they were made. Run it where there is nothing to tell: a neutral folder (``--study``) and,
as root, a namespace of its own (``unshare --uts --mount``, ``hostname node1``).
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.findings.halves import write_halves
from benchmarks.findings.labels import SET, read_set
from benchmarks.findings.workshop import Missing, Workshop


def main(argv: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(argv)
    if options.split:
        write_halves(options.set)
        return 0
    traces = [t for t in read_set(options.set) if not options.only or t.name in options.only]
    workshop = Workshop(options)
    failed = 0
    for trace in traces:
        try:
            print(f"{trace.name:32s} {workshop.make(trace, options.set) / 1024:8.1f} KiB", flush=True)
        except (Missing, subprocess.SubprocessError, OSError) as error:
            print(f"{trace.name:32s} {error}", file=sys.stderr, flush=True)
            failed += 1
    return 1 if failed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.findings.make", description=__doc__)
    parser.add_argument("--set", type=Path, default=SET, help="the folder of the labelled set")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="only these traces")
    parser.add_argument(
        "--study", type=Path, default=Path("/tmp/study"), help="where the programs run (disk)"
    )
    said = "a folder for traces of that `storage` (NAME=FOLDER; may be given again): network=/mnt/shared"
    parser.add_argument("--place", action="append", default=[], metavar="NAME=FOLDER", help=said)
    parser.add_argument(
        "--darshan", type=Path, help="libdarshan.so, built with MPI and log path by DARSHAN_LOG_DIR"
    )
    parser.add_argument("--dftracer", type=Path, help="libdftracer_preload.so")
    parser.add_argument("--split", action="store_true", help="only draw the halves anew, in labels.yaml")
    return parser


if __name__ == "__main__":
    sys.exit(main())
