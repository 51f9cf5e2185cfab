"""A test run ends with what it skipped and what brings it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from .skipped import lines


def test_kinds_and_commands() -> None:
    assert lines([]) == []
    said = lines(
        [
            "the fairshare layer is not built: run `make layers`, which needs Rust's cargo",
            "cachevol is not built (make layers builds it)",
            "no environment of DLIO with torch (`make dlio-torch` makes one)",
            "strace is not installed (Debian: strace)", "no chromium on PATH",
            "no virtual Slurm here: slurmctld is not installed (Debian: apt-get install slurm-wlm munge)",
            "no virtual Slurm here: needs root (namespaces, mounts)", "root may write everywhere",
            "this machine's disk syncs as fast as memory: nothing to move",
        ]
    )  # fmt: skip
    assert said == [
        "skipped, not built here: 3 tests; make layers (2), make dlio-torch (1)",
        "skipped, not installed: 3 tests; apt-get install strace (1), apt-get install chromium (1), "
        "apt-get install slurm-wlm munge iproute2 (1)",
        "skipped, not possible here: 3 tests; as root (1), as an ordinary user (1), "
        "on another machine (the reasons are listed above) (1)",
    ]


def test_they_are_the_last_of_a_run(tmp_path: Path, checkout: Path) -> None:
    """With the hook that this suite has, on two processes as `make test` runs it."""
    (tmp_path / "test_it.py").write_text(
        "import pytest\n"
        "def test_one(): pytest.skip('cachevol is not built (make layers builds it)')\n"
        "@pytest.mark.skip(reason='no chromium on PATH')\ndef test_two(): pass\n"
        "def test_three(): pass\n"
    )
    (tmp_path / "conftest.py").write_text(
        f"import sys; sys.path.insert(0, {str(checkout)!r})\n"
        "from tests.conftest import pytest_terminal_summary\n"
    )
    answer = subprocess.run(
        [sys.executable, "-m", "pytest", "-ra", "-n", "2", "-p", "no:cacheprovider", str(tmp_path)],
        capture_output=True, text=True, timeout=120, check=False, cwd=tmp_path,
        env={k: v for k, v in os.environ.items() if k != "TIERCEL_PROCESSOR_TIME"},
    )  # fmt: skip
    assert answer.returncode == 0, answer.stdout
    *_, first, second, _count = answer.stdout.strip().splitlines()
    assert first == "skipped, not built here: 1 tests; make layers (1)"
    assert second == "skipped, not installed: 1 tests; apt-get install chromium (1)"
