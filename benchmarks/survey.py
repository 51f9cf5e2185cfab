"""What `tiercel trace survey` costs for each log: `python -m benchmarks.survey [FOLDER] [--logs 1000]`.

CPU time of all processes, children included, over the number of logs, because a site's machine is never
quiet. The same survey is made again from nothing three times: how much these differ is the noise floor, and
nothing below it is a difference. Logs are copies, under names of their own, of those in FOLDER (default: the
small ones of the tests; the project's public darshan-logs are a better measure). What starting and finding
the logs cost is told by a survey of as few logs as there are children.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from benchmarks.growth.traced import LOGS, copied_logs
from tiercel.traces.survey import survey

_REPETITIONS = 3


def main(arguments: Sequence[str] = ()) -> int:
    parser = argparse.ArgumentParser(description="CPU time of a survey for each log.")
    parser.add_argument("folder", nargs="?", type=Path, default=LOGS)
    parser.add_argument("--logs", type=int, default=300)
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="tiercel-survey-bench-") as name:
        few, many = (copied_logs(Path(name) / str(n), n, asked.folder) for n in (asked.jobs, asked.logs))
        start = median(_seconds(few, Path(name), asked.jobs) for _ in range(_REPETITIONS))
        whole = [_seconds(many, Path(name), asked.jobs) for _ in range(_REPETITIONS)]
    each = [1e3 * (seconds - start) / (asked.logs - asked.jobs) for seconds in whole]
    print(f"{asked.logs:,} logs, {asked.jobs} at a time: CPU {median(whole):.1f} s, {start:.1f} s to start")
    print(f"each log: CPU {median(each):.1f} ms ({min(each):.1f} to {max(each):.1f} in {_REPETITIONS} runs)")
    print(f"10,000 logs on 2 cores: {(start + 10 * median(each)) / 2 / 60:.1f} min")
    return 0


def _seconds(folder: Path, scratch: Path, jobs: int) -> float:
    """Return the CPU seconds of a survey from nothing, in this process and those that it started."""
    output = scratch / "survey.parquet"
    output.unlink(missing_ok=True)
    before = _used()
    survey(folder, output, jobs=jobs)
    return _used() - before


def _used() -> float:
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in both)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
