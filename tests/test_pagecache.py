"""What Python reports of the page cache, on a disk, on an overlay and in memory."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.private_mounts import require_mount, run_script
from tiercel import pagecache
from tiercel.pagecache import residency, upper_in_memory

#: Prints (fraction, method, memory_backed) of a file just written, and after its eviction.
ON_OVERLAY = """
mkdir -p low up work m
mount -t overlay overlay -o "lowerdir=$PWD/low,upperdir=$PWD/up,workdir=$PWD/work" m
head -c 1000000 /dev/urandom >m/f
%s
"$PYTHON" -c '
import json
from pathlib import Path
from tiercel.pagecache import evict, memory_backed, residency
from tiercel.site.mounts import read_mounts
for do in (lambda f: None, evict):
    do(["m/f"])
    r = residency(["m/f"])
    print(json.dumps([r.fraction, r.method, r.memory_backed]))
(medium,) = [m.medium for m in read_mounts() if m.point == Path("m").resolve()]
print(json.dumps([memory_backed("m/f"), medium]))
'
"""


def reported(folder: Path, script: str) -> list[list[object]]:
    return [json.loads(line) for line in run_script(script, folder, PYTHON=sys.executable).splitlines()]


def test_an_overlay_shows_the_pages_of_its_upper_layer(tmp_path: Path) -> None:
    require_mount("overlay")
    if pagecache.memory_backed(str(tmp_path)):
        pytest.skip("the temporary folder is in memory")
    warm, cold, kinds = reported(tmp_path, ON_OVERLAY % "")
    assert (warm, cold) == ([1.0, "mincore", False], [0.0, "mincore", False])
    assert kinds == [False, "disk"]


@pytest.mark.parametrize("hidden", [False, True], ids=["seen", "hidden"])
def test_an_overlay_on_memory_is_memory(tmp_path: Path, hidden: bool) -> None:
    """Hidden: in a container the folder of the upper layer is not visible; then only a file can tell."""
    require_mount("overlay")
    hide = (
        "mkdir $B/again; mount --rbind $B/in $B/again; mount -t tmpfs tmpfs $B/in; cd $B/again"
        if hidden
        else ""
    )
    before = "mkdir in; mount -t tmpfs tmpfs in; B=$PWD; cd in"
    warm, evicted, kinds = reported(tmp_path, f"{before}; {ON_OVERLAY % hide}")
    assert warm == evicted == [1.0, "mincore", True]
    assert kinds == [True, "disk" if hidden else "memory"]


def test_the_upper_layer_is_read_from_mount_options() -> None:
    assert upper_in_memory("rw,lowerdir=/l,upperdir=/dev/shm,workdir=/w") in (True, False)
    assert upper_in_memory("rw,lowerdir=/l") is None
    assert upper_in_memory("rw,upperdir=/no such folder\\, at all,workdir=/w") is None


@pytest.mark.parametrize(
    ("number", "reason"), [(0x65735546, "FUSE"), (0x47504653, "of its own"), (1, "not known")]
)
def test_where_data_is_kept_elsewhere_residency_is_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, reason: str
) -> None:
    (tmp_path / "f").write_bytes(b"x" * 10000)
    monkeypatch.setattr(pagecache, "_type_of", lambda descriptor: number)
    found = residency([str(tmp_path / "f")])
    assert found.fraction is None and found.method == "none" and reason in found.unknown
