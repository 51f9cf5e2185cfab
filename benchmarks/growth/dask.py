"""``python -m benchmarks.growth.dask FOLDER --output FILE``: a trace survey on a local Dask cluster."""

from __future__ import annotations

import subprocess
import sys

from distributed import LocalCluster


def main() -> int:
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        command = [sys.executable, "-m", "tiercel", "trace", "survey", *sys.argv[1:]]
        return subprocess.run([*command, "--dask", cluster.scheduler_address], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
