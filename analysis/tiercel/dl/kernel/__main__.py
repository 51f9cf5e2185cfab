"""Entry point of one process (or of all of a node, with --processes): see ``--help``."""

from __future__ import annotations

import argparse
import json
import os
import sys
from functools import partial
from pathlib import Path

from tiercel.dl.kernel.checkpoint import prepare
from tiercel.dl.kernel.comm import MPI, Comm, forked, launched
from tiercel.dl.kernel.failure import Failure, OtherRankFailed
from tiercel.dl.kernel.folder import Files, Folder
from tiercel.dl.kernel.formats import format_of
from tiercel.dl.kernel.run import Places, run
from tiercel.dl.kernel.spec import Spec, read_spec
from tiercel.s3.endpoint import Endpoint, Location, endpoint_of, is_url
from tiercel.s3.errors import S3Error


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="dlkernel", description="Runs a deep-learning workload.")
    parser.add_argument("--spec", required=True, help="values of the workload, as JSON")
    parser.add_argument("--data", required=True, help="folder of the dataset, or s3://BUCKET/PREFIX")
    parser.add_argument("--checkpoints", help="folder of checkpoints (default: beside the dataset)")
    parser.add_argument("--endpoint", help="server of s3://, as JSON (see tiercel.s3.endpoint)")
    parser.add_argument("--output", required=True, type=Path, help="folder of results")
    parser.add_argument("--cold", choices=("none", "first", "every"), default="first", help="cold epochs")
    parser.add_argument("--trace", action="store_true", help="write a DFTracer-schema trace")
    parser.add_argument("--say-started", action="store_true", help="say when all processes have met")
    started = parser.add_mutually_exclusive_group()
    started.add_argument("--processes", type=int, default=1, help="fork so many on this node")
    started.add_argument("--mpi", action="store_true", help="be one process of an MPI launcher")
    return parser.parse_args()


def _folder(name: str, endpoint: str | None) -> Folder:
    """Return a place of data by its name; Failure for objects on no server."""
    if not is_url(name):
        return Files(name.rstrip("/") or "/")
    from tiercel.dl.kernel.objects import Objects  # noqa: PLC0415 (TLS and XML take a while to import)

    try:
        server = Endpoint(**json.loads(endpoint)) if endpoint else endpoint_of()
        return Objects(Location.parse(name, server))
    except (ValueError, TypeError) as error:
        raise Failure(f"{name}: {error}") from None


def _complain(what: object) -> None:
    """Say what is wrong, in one write: several processes may do so at once, and each has its line."""
    sys.stderr.flush()
    os.write(2, f"dlkernel: error: {what}\n".encode(errors="replace"))


def _work(spec: Spec, places: Places, comm: Comm) -> int:
    """Run on one process; what goes wrong is said once, and the others are stopped."""
    code = 1
    try:
        run(spec, places, comm)
        return 0
    except Failure as failure:
        _complain(failure)
        code = 2
    except S3Error as error:
        _complain(error.strerror)
        code = 2
    except OtherRankFailed:
        pass
    except MemoryError:
        _complain("out of memory")
    except RuntimeError as error:
        if "new thread" not in str(error):
            raise
        _complain(
            "no more threads can be started here: reader.read_threads, or prefetch_workers, are too many"
        )
        code = 2
    comm.fail()
    return code


def main() -> int:
    given = _arguments()
    checkpoints = given.checkpoints or f"{given.data.rstrip('/').rpartition('/')[0] or '.'}/checkpoints"
    try:
        spec = read_spec(given.spec)
        data, kept = (_folder(name, given.endpoint) for name in (given.data, checkpoints))
    except Failure as failure:
        _complain(failure)
        return 2
    trace = given.trace or os.environ.get("TIERCEL_TRACE", "") == "1"
    places = Places(data, kept, given.output, given.cold, trace)
    if given.mpi:
        comm = MPI()
        if comm.size == 1 < launched():  # each would do all of the work, on the same files
            _complain(
                f"the launcher started {launched()} processes and MPI knows of one: give it the way of "
                "starting that this MPI knows (Slurm: srun --mpi=pmi2 or --mpi=pmix)"
            )
            return 2
        if given.say_started:
            comm.barrier()
            if comm.rank == 0:
                print("started", flush=True)
        return _work(spec, places, comm)
    if launched() > 1:
        _complain(
            f"a launcher started {launched()} processes that know nothing of each other: add --mpi, or start "
            "one with --processes"
        )
        return 2
    try:
        format_of(spec.format).prepare()  # once, before the others are forked
        prepare(spec)
    except Failure as failure:
        _complain(failure)
        return 2
    return forked(given.processes, partial(_work, spec, places))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
