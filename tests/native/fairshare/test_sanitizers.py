"""The preload library under the address and undefined-behaviour sanitizers, on conformance checks."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from . import conformance
from .conftest import Share
from .test_policy import SOURCE

CHECKED = (
    "each_write_moves_the_position_once", "positions_are_shared_with_copies_and_children",
    "descriptors_are_numbers_of_the_kernel", "many_threads_use_one_file", "what_one_writes_another_reads",
)  # fmt: skip


@pytest.fixture(scope="module")
def sanitized(tmp_path_factory: pytest.TempPathFactory, programs: object) -> str:
    """Build the library with the sanitizers; what LD_PRELOAD has to be for it."""
    folder = tmp_path_factory.mktemp("sanitized")
    flags = "-O1 -g -fsanitize=address,undefined -fno-omit-frame-pointer"
    settings = [f"OUTPUT={folder}", "WARN=-std=c11", f"CFLAGS={flags}", "CC=gcc"]
    argv = ["make", "-s", "-C", str(SOURCE / "client"), *settings]
    made = subprocess.run(argv, capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"the compiler has no sanitizers: {made.stderr.strip().splitlines()[-1:]}")
    libraries = []
    for name in ("libasan.so", "libubsan.so"):
        found = subprocess.run(
            ["gcc", f"-print-file-name={name}"], capture_output=True, text=True, check=True
        )
        libraries.append(found.stdout.strip())
    if not all(Path(library).is_absolute() for library in libraries):
        pytest.skip("the compiler's sanitizer libraries are not installed")
    return " ".join([*libraries, str(folder / "libfairshare_client.so")])


@pytest.mark.parametrize("name", CHECKED)
def test_sanitized(serve: Callable[..., Share], sanitized: str, name: str) -> None:
    share = serve()
    environment = {
        **share.environment(), "LD_PRELOAD": sanitized, "FAIRSHARE_MOUNT": str(share.root),
        "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1", "UBSAN_OPTIONS": "halt_on_error=1",
    }  # fmt: skip
    done = share.run(
        sys.executable, conformance.__file__, name, str(share.root), env=environment, timeout=120
    )
    assert done.returncode == 0, done.stderr[-3000:]
