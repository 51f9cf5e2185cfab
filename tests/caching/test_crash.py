"""Programs that are killed: what was acknowledged is in the file after a replay, and never anything else."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import h5py
import numpy as np
import pytest

from tiercel.caching.logs import logs
from tiercel.layers.cachevol import throttle

from .conftest import Node, needs_connector

pytestmark = needs_connector

#: Writes datasets until it is killed; each acknowledged one is told on standard output.
WRITER = """
with h5py.File("f.h5", "w") as f:
    for i in range(400):
        f.create_dataset(f"d{i}", data=np.full(20_000, i, "<i8"))
        print(i, flush=True)
"""


def slow(node: Node, rate: int) -> dict[str, str]:
    """Environment that makes the base storage slow, so that data are still staged when the kill comes."""
    library = throttle()
    assert library is not None
    return {
        "LD_PRELOAD": str(library),
        "CACHEVOL_THROTTLE_FOLDER": str(node.base),
        "CACHEVOL_THROTTLE_RATE": str(rate),
    }


def killed(
    node: Node, program: str, after_lines: int, delay: float, monkeypatch: pytest.MonkeyPatch
) -> list[str]:
    """Run `program` on a slow base storage and kill it; return what it had acknowledged."""
    with monkeypatch.context() as patch:
        for name, value in slow(node, 20_000_000).items():
            patch.setenv(name, value)
        child = node.start(program)
    assert child.stdout is not None
    seen = [child.stdout.readline() for _ in range(after_lines)]
    time.sleep(delay)
    child.send_signal(signal.SIGKILL)
    rest = child.stdout.read()
    child.wait()
    whole = ("".join(seen) + rest).split("\n")[:-1]  # a line cut off by the kill was not told
    return [line for line in whole if line]


@pytest.mark.xfail(
    strict=False,
    reason="open fault (docs/caching.md, Limits): a kill within HDF5's own metadata update can leave a "
    "file that does not open after the replay",
)
@pytest.mark.parametrize("round", range(6))
def test_all_that_was_acknowledged_is_there_after_a_replay(
    node: Node, monkeypatch: pytest.MonkeyPatch, round: int
) -> None:
    chance = random.Random(round)
    told = killed(node, WRITER, chance.randint(2, 120), chance.random() * 0.05, monkeypatch)
    assert len(node.logs) == 1
    assert len(node.markers) == 1
    found = logs("inspect", node.local)
    assert [log["state"] for log in found] == ["left"]
    assert found[0]["bytes"] > 0

    assert [log["state"] for log in logs("replay", node.local)] == ["replayed"]
    assert not node.logs
    assert not node.markers
    with h5py.File(node.base / "f.h5", "r") as file:
        for i in map(int, told):
            assert np.array_equal(file[f"d{i}"][...], np.full(20_000, i, "<i8"))


def test_opening_the_file_again_replays_by_itself(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    told = killed(node, WRITER, 40, 0, monkeypatch)
    out = node.good("print(sum(int(d[0]) == int(n[1:]) for n, d in h5py.File('f.h5').items()))")
    assert int(out) >= len(told)
    assert node.counts()["replayed_logs"] == 1
    assert not node.logs


def test_a_file_that_is_emptied_needs_no_replay(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    killed(node, WRITER, 40, 0, monkeypatch)
    node.good("with h5py.File('f.h5', 'w') as f: f['x'] = 1")
    assert not node.logs
    assert not node.markers
    with h5py.File(node.base / "f.h5") as file:
        assert list(file) == ["x"]


def test_a_file_written_anew_by_another_program_is_never_overwritten(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed(node, WRITER, 40, 0, monkeypatch)
    path = node.base / "f.h5"
    with h5py.File(path, "w") as file:  # plain HDF5: same inode, other contents
        file["mine"] = np.arange(100)
    later = time.time() + 700  # beyond the longest write that the kill may have cut off
    os.utime(path, (later, later))
    before = path.read_bytes()
    found = logs("replay", node.local)
    assert found[0]["state"] == "refused"
    assert "was changed after the program ended" in found[0]["reason"]
    assert path.read_bytes() == before
    again = node.run("h5py.File('f.h5', 'r')")
    assert "tiercel cache inspect" in again.stderr


def test_another_file_in_its_place_is_never_overwritten(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    killed(node, WRITER, 40, 0, monkeypatch)
    path = node.base / "f.h5"
    path.rename(node.base / "old.h5")
    with h5py.File(path, "w") as file:
        file["mine"] = np.arange(100)
    before = path.read_bytes()
    assert logs("replay", node.local)[0]["state"] == "refused"
    assert path.read_bytes() == before


def test_drop_throws_the_log_away(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    killed(node, WRITER, 40, 0, monkeypatch)
    assert [log["state"] for log in logs("drop", node.local)] == ["dropped"]
    assert not node.logs
    assert not node.markers


def test_a_log_of_a_running_program_is_left_alone(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        for name, value in slow(node, 20_000_000).items():
            patch.setenv(name, value)
        child = node.start(WRITER)
    assert child.stdout is not None
    for _ in range(30):
        child.stdout.readline()
    try:
        assert [log["state"] for log in logs("replay", node.local)] == ["alive"]
        assert [log["state"] for log in logs("drop", node.local)] == ["alive"]
    finally:
        child.kill()
        child.communicate()


def test_a_damaged_record_is_found(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    killed(node, WRITER, 60, 0, monkeypatch)
    found = logs("inspect", node.local)[0]
    segment = next(node.logs[0].glob("segment-0"))
    with segment.open("r+b") as file:
        file.seek(segment.stat().st_size // 4)
        block = file.read(1 << 20)
        file.seek(segment.stat().st_size // 4)
        file.write(bytes(b ^ 1 for b in block))
    before = (node.base / "f.h5").read_bytes()
    damaged = logs("replay", node.local)[0]
    assert damaged["state"] == "refused"
    assert "damaged" in damaged["reason"]
    assert damaged["records"] < found["records"]
    assert (node.base / "f.h5").read_bytes() == before


def test_a_torn_last_record_was_never_acknowledged(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """A record whose data do not match and that the log does not count as appended is no damage."""
    told = killed(node, WRITER, 30, 0, monkeypatch)
    log = node.logs[0]
    control = bytearray((log / "control").read_bytes())
    appended = int.from_bytes(control[64:72], "little")  # see struct cv_control
    control[64:72] = (appended - 1).to_bytes(8, "little")
    (log / "control").write_bytes(control)
    assert logs("inspect", node.local)[0]["state"] == "left"
    assert logs("replay", node.local)[0]["state"] == "replayed"
    with h5py.File(node.base / "f.h5") as file:
        assert len(file) >= len(told) - 1


def test_killed_while_it_only_reads(node: Node) -> None:
    with h5py.File(node.base / "f.h5", "w") as file:
        file["x"] = np.arange(3_000_000)
    child = node.start("""
        with h5py.File("f.h5") as f:
            print("reading", flush=True)
            for _ in range(100000):
                f["x"][...]
        """)
    assert child.stdout is not None
    child.stdout.readline()
    time.sleep(0.05)
    child.kill()
    child.communicate()
    out = node.good(
        "f = h5py.File('f.h5'); print(all((f['x'][...] == np.arange(3_000_000)).all() for _ in range(3)))"
    )
    assert out.strip() == "True"


def test_replay_by_command_line(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    killed(node, WRITER, 40, 0, monkeypatch)
    base = [sys.executable, "-m", "tiercel", "cache"]
    shown = subprocess.run(
        [*base, "inspect", "--storage", str(node.local)], capture_output=True, text=True, check=True
    )
    assert "left" in shown.stdout and str(Path(node.base) / "f.h5") in shown.stdout
    subprocess.run(
        [*base, "replay", "--storage", str(node.local)], capture_output=True, text=True, check=True
    )
    after = subprocess.run(
        [*base, "inspect", "--storage", str(node.local)], capture_output=True, text=True, check=True
    )
    assert after.stdout.strip() == "nothing is staged"
