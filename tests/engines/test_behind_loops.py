"""A cold read from loop devices: with the backing file in the page cache, in part, or not at all."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import pytest
from benchmarks.loops import forget, loop_mounted, missing, page_time, remember

from tiercel.engines.behind import fields
from tiercel.programs import program
from tiercel.results.validity import AS_MEMORY
from tiercel.runs.context import surroundings
from tiercel.site.model import Stack, Storage

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())

MIB = 1 << 20


def on_loop(folder: Path, direct: bool) -> Iterator[Path]:
    try:
        with loop_mounted(folder / "image", folder / "mount", 256 * MIB, direct=direct) as mount:
            run("-w", "-e", mount=mount)
            yield mount
    except subprocess.CalledProcessError as error:
        pytest.skip(f"no loop device here: {error.cmd[0]} failed: {error.stderr}")


@pytest.fixture
def buffered(tmp_path: Path) -> Iterator[Path]:
    yield from on_loop(tmp_path, False)


@pytest.fixture
def direct(tmp_path: Path) -> Iterator[Path]:
    yield from on_loop(tmp_path, True)


def run(*options: str, mount: Path) -> dict[str, object]:
    argv = [
        program("iokernel"),
        "-n",
        "2",
        "-F",
        "-t",
        "1m",
        "-b",
        "64m",
        "-k",
        "-o",
        mount / "data",
        *options,
    ]
    answer = subprocess.run(argv, capture_output=True, check=True)
    found: dict[str, object] = json.loads(answer.stdout)["tests"][0]["Results"][0]
    return found


def seen(mount: Path) -> dict[str, float]:
    result = run("-r", "-E", "--evict", "--behind", mount=mount)
    assert result["residency"]["fraction"] == 0  # type: ignore[index]
    return fields([result])


def fast(mount: Path) -> object:
    return surroundings(Stack("s", Storage(type="ext4", mount=str(mount), scratch=str(mount))))["fast_medium"]


def test_a_warm_cache_behind_is_seen_by_its_speed(buffered: Path) -> None:
    slow = []
    for _ in range(8):
        remember(buffered.parent / "image")  # a machine that is short of memory has dropped some of it
        found = seen(buffered)
        if found["behind_alike"] == 1 and found["behind_hit_time"] < AS_MEMORY:
            break
        # A loop device wakes a thread for each page: on a busy virtual machine that alone takes longer.
        slow.append(page_time(buffered / "data.00000000"))
    else:
        took = median(slow)
        assert took > AS_MEMORY  # others are as slow as we are: then nobody can tell
        pytest.skip(f"a page of memory takes {took * 1e6:.0f} us through this machine's loop devices")
    assert fast(buffered) is False  # so nothing but a cache is so fast


def need_a_disk(mount: Path) -> None:
    """Skip where this machine's own disk answers like memory (one of a virtual machine whose host keeps it):
    what lies on it is never cold."""
    if (took := page_time(mount / "data.00000000")) < 1.5 * AS_MEMORY:
        pytest.skip(f"a page of this machine's disk takes {took * 1e6:.0f} us: its host keeps it in memory")


def test_no_cache_behind_is_not_taken_for_one(direct: Path) -> None:
    need_a_disk(direct)
    for _ in range(2):  # a second read finds nothing warm either
        found = seen(direct)
        assert found["behind_miss_time"] is None or found["behind_alike"] < 0.1
        assert found["behind_hit_time"] > AS_MEMORY


def test_what_the_cache_behind_forgot_is_read_cold(buffered: Path) -> None:
    forget(buffered.parent / "image")
    found = seen(buffered)
    assert found["behind_alike"] < 0.1
    assert found["behind_miss_time"] > 2 * found["behind_hit_time"]


@pytest.mark.parametrize(("part", "share"), [(2, 1 / 2), (4, 3 / 4)])
def test_the_share_that_the_cache_behind_kept_is_told(buffered: Path, part: int, share: float) -> None:
    image = buffered.parent / "image"
    forget(image)
    need_a_disk(buffered)
    remember(image)
    forget(image, part)
    # 256 touches: 3 % is the standard deviation of a half, were it not for other programs.
    assert seen(buffered)["behind_alike"] == pytest.approx(share, abs=0.18)
