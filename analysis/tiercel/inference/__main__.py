"""Entry point of one process (or of all of a node, with --processes): see ``--help``."""

from __future__ import annotations

import argparse
import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

from tiercel.clock import now
from tiercel.dl.kernel.comm import MPI, Comm, forked, launched
from tiercel.dl.kernel.failure import Failure, OtherRankFailed
from tiercel.dl.kernel.makers import makers_of
from tiercel.inference import kv_cache, vector_search
from tiercel.inference.tally import row
from tiercel.pagecache import memory_backed

RESULT = "inference.json"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="inferkernel", description="Does the I/O of inference.")
    parser.add_argument("--spec", required=True, help="JSON: operation, seed, and the workload's values")
    parser.add_argument("--data", required=True, type=Path, help="folder on the storage under test")
    parser.add_argument("--output", required=True, type=Path, help="folder of results")
    started = parser.add_mutually_exclusive_group()
    started.add_argument("--processes", type=int, default=1, help="fork so many on this node")
    started.add_argument("--mpi", action="store_true", help="be one process of an MPI launcher")
    return parser.parse_args()


def run(spec: dict[str, Any], data: Path, output: Path, comm: Comm) -> None:
    """Do what `spec` says on one process; process 0 writes the results of all."""
    given = dict(spec)
    operation, seed = given.pop("operation"), given.pop("seed")
    rows = []
    if operation == "vector-search":
        path, makers = data / "index", makers_of(data, comm)
        began = now()
        made = vector_search.make_index(
            vector_search.Settings(**given), path, makers.index, makers.count, f"{seed}:{comm.rank}"
        )
        made_bytes = sum(comm.gather(made))
        rows.append({"operation": "generate", "began": began, "total_time": now() - began,
                     "bytes": made_bytes, "operations": 1, "hit_share": None, "latency": {}})  # fmt: skip
        work = partial(vector_search.search, given, path)
    else:
        work = partial(kv_cache.serve, given, data / f"process{comm.rank}")
    comm.barrier()
    began = now()
    done = work(f"{seed}:{comm.rank}")
    spans = comm.gather((began, now()))
    for name in done:
        tallies = comm.to_root(done[name])
        if tallies:
            rows.append(row(name, tallies, min(s[0] for s in spans), max(s[1] for s in spans)))
    if comm.rank == 0:
        content = {"operation": operation, "processes": comm.size, "nodes": comm.nodes, "rows": rows,
                   "memory_backed": memory_backed(str(data))}  # fmt: skip
        part = output / f"{RESULT}.part"
        part.write_text(json.dumps(content))
        part.rename(output / RESULT)


def _work(spec: dict[str, Any], data: Path, output: Path, comm: Comm) -> int:
    """Run on one process; what goes wrong is said once, and the others are stopped."""
    code = 1
    try:
        run(spec, data, output, comm)
        return 0
    except Failure as failure:
        print(f"inferkernel: error: {failure}", file=sys.stderr, flush=True)
        code = 2
    except OSError as error:
        print(f"inferkernel: error: {error.filename or data}: {error.strerror}", file=sys.stderr, flush=True)
        code = 2
    except OtherRankFailed:
        pass
    comm.fail()
    return code


def main() -> int:
    given = _arguments()
    work = partial(_work, json.loads(given.spec), given.data, given.output)
    if given.mpi:
        return work(MPI())
    if launched() > 1:
        print("inferkernel: error: started by a launcher of parallel programs: add --mpi", file=sys.stderr)
        return 2
    return forked(given.processes, work)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
