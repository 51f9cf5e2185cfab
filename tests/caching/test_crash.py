"""Programs that are killed: what was acknowledged is in the file after a replay, and never anything else."""

from __future__ import annotations

import os
import random
import shutil
import struct
import subprocess
import sys
import time
from pathlib import Path

import h5py
import numpy as np
import pytest

from tiercel.caching.logs import logs

from .conftest import Node, needs_connector
from .kills import PROGRAMS, check, end_with_kill, kill_at_random, slow

pytestmark = needs_connector

#: Writes datasets until it is killed; each acknowledged one is told on standard output.
WRITER = """
with h5py.File("f.h5", "w") as f:
    for i in range(400):
        f.create_dataset(f"d{i}", data=np.full(20_000, i, "<i8"))
        print(i, flush=True)
"""


def killed(
    node: Node, program: str, after_lines: int, delay: float, monkeypatch: pytest.MonkeyPatch
) -> list[str]:
    """Run `program` on a slow base storage and kill it; return what it had acknowledged."""
    with monkeypatch.context() as patch:
        for name, value in slow(node, 2_000_000).items():
            patch.setenv(name, value)
        child = node.start(program)
    return end_with_kill(child, after_lines, delay)


@pytest.mark.parametrize("round", range(4))
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


def whole_after_kill(node: Node, name: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    told = kill_at_random(node, name, seed, monkeypatch)
    assert all(log["state"] == "replayed" for log in logs("replay", node.local))
    assert not node.logs and not node.markers
    check(node.base / "f.h5", told)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_file_opens_whole_whenever_its_program_was_killed(
    node: Node, monkeypatch: pytest.MonkeyPatch, name: str, seed: int
) -> None:
    whole_after_kill(node, name, seed, monkeypatch)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(100, 160))
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_file_opens_whole_whenever_its_program_was_killed_many_times(
    node: Node, monkeypatch: pytest.MonkeyPatch, name: str, seed: int
) -> None:
    whole_after_kill(node, name, seed, monkeypatch)


#: Ends by itself with metadata in the log that no point has followed: HDF5's own cache has overflowed.
UNFINISHED = """
f = h5py.File("f.h5", "w", libver=LIBVER)
f["x"] = np.arange(100_000)
for i in range(2000):
    f.create_group(f"g{i}").attrs["long"] = np.full(7000, i, "<i8")
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_what_was_written_behind_the_last_point_is_left_out(node: Node, libver: str) -> None:
    """A newest-format file also carries HDF5's mark of files open for writing, which the replay takes off."""
    node.run(UNFINISHED.replace("LIBVER", repr(libver)))
    found = logs("inspect", node.local)[0]
    assert found["left_out"] > 0
    assert logs("replay", node.local)[0]["state"] == "replayed"
    with h5py.File(node.base / "f.h5", "r+") as file:
        assert np.array_equal(file["x"][...], np.arange(100_000))
        for name, group in file.items():
            if name != "x":
                assert (group.attrs["long"] == int(name[1:])).all()


def test_without_points_all_that_was_written_is_replayed(node: Node) -> None:
    node.run(UNFINISHED.replace("LIBVER", "'earliest'"), checkpoint=False)
    assert logs("inspect", node.local)[0]["left_out"] == 0


def test_space_that_is_used_again_keeps_its_last_whole_contents(node: Node) -> None:
    """What takes the place of a deleted dataset must not reach the file before the deletion does."""
    node.run("""
        f = h5py.File("f.h5", "w")
        f["old"] = np.full(1_000_000, 1, "<i8")
        f.flush()
        del f["old"]
        new = f.create_dataset("new", (400, 500), "<i8", chunks=(1, 500), compression="gzip")
        plain = f.create_dataset("plain", (400_000,), "<i8", chunks=(1000,))
        plain[...] = 2
        for i in range(400):
            new[i] = np.random.default_rng(i).integers(0, 2**60, 500)
        os.kill(os.getpid(), signal.SIGKILL)
        """)
    logs("replay", node.local)
    with h5py.File(node.base / "f.h5", "r") as file:
        if "old" in file:  # no point was made after the deletion
            assert (file["old"][...] == 1).all()
        else:
            assert (file["plain"][...] == 2).all()


def test_a_log_of_another_version_stays(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    killed(node, WRITER, 40, 0, monkeypatch)
    with (node.logs[0] / "control").open("r+b") as control:
        control.write(b"CVOLLOG1")
    for verb in ("replay", "drop"):
        answer = logs(verb, node.local)[0]
        assert answer["state"] == "refused"
        assert "another version" in answer["reason"]
    assert len(node.logs) == 1


def test_opening_the_file_again_replays_by_itself(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    told = killed(node, WRITER, 40, 0, monkeypatch)
    out = node.good("print(sum(int(d[0]) == int(n[1:]) for n, d in h5py.File('f.h5').items()))")
    assert int(out) >= len(told)
    assert node.counts()["replayed_logs"] == 1
    assert not node.logs


def test_another_program_with_the_number_of_the_killed_one_replays(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a container the next program often has the number that the last one had."""
    told = killed(node, WRITER, 40, 0, monkeypatch)
    out = node.good("""
        lines = open(".f.h5.cachevol").read().splitlines()
        lines[2] = str(os.getpid())
        open(".f.h5.cachevol", "w").write("\\n".join(lines) + "\\n")
        print(sum(int(d[0]) == int(n[1:]) for n, d in h5py.File('f.h5').items()))
        """)
    assert int(out) >= len(told)
    assert node.counts()["replayed_logs"] == 1


@pytest.mark.parametrize("gone", [False, True])
def test_a_file_that_is_open_already_is_not_replayed(node: Node, gone: bool) -> None:
    """Also where a cleaner of temporary folders took what tells that its log is alive."""
    node.good(f"""
        gone = {gone}
        f = h5py.File("f.h5", "w")
        for i in range(20):
            f.create_dataset(f"d{{i}}", data=np.full(20_000, i, "<i8"))
        (control,) = glob.glob(os.environ["HDF5_CACHE_STORAGE_PATH"] + "/*/logs/*/control")
        if gone:
            os.unlink(control)
        g = h5py.File("f.h5", "a")
        assert all((g[f"d{{i}}"][...] == i).all() for i in range(20))
        """)
    assert node.counts()["replayed_logs"] == 0


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


def test_drop_of_a_file_whose_log_is_gone(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """The node was set up anew: opening names the command, which takes the marker away."""
    killed(node, WRITER, 40, 0, monkeypatch)
    shutil.rmtree(node.logs[0])
    refused = node.run("h5py.File('f.h5')")
    assert "which is gone" in refused.stderr and "tiercel cache drop --file" in refused.stderr
    answer = logs("drop", node.local, file=node.base / "f.h5")
    assert [log["state"] for log in answer] == ["dropped"]
    assert not node.markers
    assert logs("drop", node.local, file=node.base / "f.h5") == []


def test_a_file_whose_time_of_change_is_still_to_come_is_replayed(node: Node) -> None:
    """It had that time before, by a clock that was ahead, and nobody changed it since."""
    path = node.base / "f.h5"
    with h5py.File(path, "w") as file:
        file["x"] = np.arange(100)
    later = time.time() + 86400
    os.utime(path, (later, later))
    slowly = {
        **slow(node, 10_000),
        "CACHEVOL_THROTTLE_LATE": "yes",
    }  # the first write does not come to its end
    node.run("""
        f = h5py.File("f.h5", "r+")
        f["y"] = np.arange(100_000)
        os.kill(os.getpid(), signal.SIGKILL)
        """, extra=slowly)  # fmt: skip
    assert path.stat().st_mtime == pytest.approx(later)
    assert logs("replay", node.local)[0]["state"] == "replayed"
    with h5py.File(path) as file:
        assert (file["x"][99], file["y"][99_999]) == (99, 99_999)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes folders that even root cannot change")
def test_a_marker_that_cannot_be_removed_keeps_nobody_from_the_file(node: Node) -> None:
    """As where the base storage became read-only meanwhile: the log stays with it, without anything to do."""

    def immutable(sign: str) -> int:
        done = subprocess.run(["chattr", f"{sign}i", node.base], capture_output=True, check=False)
        return done.returncode

    if immutable("+"):
        pytest.skip("this file system has no immutable folders")
    immutable("-")
    try:
        node.good("""
            import subprocess
            f = h5py.File("f.h5", "w")
            f["x"] = np.arange(1_000_000)
            f.flush()
            subprocess.run(["chattr", "+i", "."], check=True)
            f.close()
            """)
        assert len(node.markers) == 1
        for _ in range(2):
            assert node.good('print(h5py.File("f.h5")["x"][-1])') == "999999\n"
    finally:
        immutable("-")
    assert node.good('print(h5py.File("f.h5")["x"][-1])') == "999999\n"
    assert not node.markers and not node.logs


def test_a_pipe_in_the_place_of_a_logs_segment_keeps_nobody_waiting(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed(node, WRITER, 20, 0.01, monkeypatch)
    (segment,) = node.logs[0].glob("segment-*")
    segment.unlink()
    os.mkfifo(segment)
    assert [log["state"] for log in logs("inspect", node.local)] == ["damaged"]


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


def records(log: Path) -> list[tuple[Path, int, int, int, int]]:
    """Return segment, offset of the head, offset of the data, their size and checksum, for each record that
    its file may lack (struct cv_record)."""
    done = int.from_bytes((log / "control").read_bytes()[56:64], "little")
    found = []
    for segment in sorted(log.glob("segment-*")):
        at, content, last = 0, segment.read_bytes(), 0
        while content[at : at + 8] == b"CVCVREC1":
            sequence, _, size, _, checksum = struct.unpack_from("<5Q", content, at + 16)
            if sequence <= last:  # of an earlier use
                break
            data = at + 64
            if size > 128 * 1024:  # on the next page
                data = (data + 4095) // 4096 * 4096
            if sequence > done:
                found.append((segment, at, data, size, checksum))
            at, last = (data + size + 7) // 8 * 8, sequence
    return found


def overwrite(path: Path, at: int, content: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(content)


def test_a_damaged_record_is_found(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    killed(node, WRITER, 60, 0, monkeypatch)
    found = logs("inspect", node.local)[0]
    summed = [record for record in records(node.logs[0]) if record[4]]
    segment, _, data, _, _ = summed[len(summed) // 2]
    byte = segment.read_bytes()[data]
    overwrite(segment, data, bytes([byte ^ 1]))
    before = (node.base / "f.h5").read_bytes()
    damaged = logs("replay", node.local)[0]
    assert damaged["state"] == "refused"
    assert "damaged" in damaged["reason"]
    assert damaged["records"] < found["records"]
    assert (node.base / "f.h5").read_bytes() == before


@pytest.mark.parametrize("crash", ["of the program", "of the node"])
def test_data_without_a_checksum_count_unless_the_node_crashed(
    node: Node, monkeypatch: pytest.MonkeyPatch, crash: str
) -> None:
    """A thread makes the checksums; a kill may come first. The data are there then, since their head is; but
    what a node had not written to its disk when it crashed cannot be told."""
    told = killed(node, WRITER, 60, 0, monkeypatch)
    for segment, head, _, size, _ in records(node.logs[0]):
        if size > 128 * 1024:
            overwrite(segment, head + 48, bytes(8))
    if crash == "of the node":
        overwrite(node.logs[0] / "control", 304, b"another boot\0")
        refused = logs("replay", node.local)[0]
        assert refused["state"] == "refused" and "damaged" in refused["reason"]
        assert len(node.logs) == 1
    else:
        assert logs("replay", node.local)[0]["state"] == "replayed"
        with h5py.File(node.base / "f.h5", "r") as file:
            for i in map(int, told):
                assert np.array_equal(file[f"d{i}"][...], np.full(20_000, i, "<i8"))


def test_checksums_of_large_data_are_made_and_match(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program waits for them; a node that crashed after that has lost nothing that its disk holds."""
    program = WRITER + "    time.sleep(600)\n"
    with monkeypatch.context() as patch:
        for name, value in slow(node, 100_000).items():  # so slow that nothing large arrives
            patch.setenv(name, value)
        child = node.start(program.replace("400", "20"))
    try:
        assert child.stdout is not None
        told = [child.stdout.readline() for _ in range(20)]
        for _ in range(6000):
            if all(record[4] for record in records(node.logs[0])):
                break
            time.sleep(0.01)
    finally:
        child.kill()
        child.communicate()
    overwrite(node.logs[0] / "control", 304, b"another boot\0")
    assert logs("replay", node.local)[0]["state"] == "replayed"  # not where a checksum is missing or wrong
    with h5py.File(node.base / "f.h5", "r") as file:
        assert all((file[f"d{int(i)}"][...] == int(i)).all() for i in told)


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
