"""Writes by way of the staging log: the file ends up as plain HDF5 would have made it, whatever gives way."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from tiercel.caching.logs import logs
from tiercel.layers.cachevol import throttle

from .conftest import Node, needs_connector

pytestmark = needs_connector

MIB = 1024**2

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of 8 MiB."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("this container may not mount a tmpfs")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def whole(path: Path, count: int = 8, size: int = MIB) -> bool:
    with h5py.File(path) as file:
        return all(np.array_equal(file[f"d{i}"][...], np.full(size // 8, i, "<i8")) for i in range(count))


WRITE = """
with h5py.File("f.h5", "w") as f:
    for i in range(8):
        f[f"d{i}"] = np.full(131072, i, "<i8")
"""


def test_all_of_it_is_staged_and_arrives(node: Node) -> None:
    node.good(WRITE)
    assert whole(node.base / "f.h5")
    counts = node.counts()
    assert counts["staged_bytes"] >= 8 * MIB
    assert counts["migrated_bytes"] == counts["staged_bytes"]
    assert not node.logs and not node.markers


def test_small_writes_are_fused(node: Node) -> None:
    # A base storage that takes 50 ms for each call, so that the program is ahead of it on any machine.
    slow = (
        f"LD_PRELOAD={throttle()}",
        f"CACHEVOL_THROTTLE_FOLDER={node.base}",
        "CACHEVOL_THROTTLE_LATENCY=0.05",
    )
    node.good(
        """
        with h5py.File("f.h5", "w") as f:
            d = f.create_dataset("x", (64, 131072), "u1")
            for i in range(64):
                d[i] = i
        """,
        ("env", *slow, "CACHEVOL_THROTTLE_RATE=1e9"),
    )
    counts = node.counts()
    assert counts["migrated_writes"] < counts["staged_writes"] / 2


def test_a_read_sees_what_was_staged_before_it(node: Node) -> None:
    out = node.good("""
        with h5py.File("f.h5", "w") as f:
            d = f.create_dataset("x", (1000, 1000), "<f4")
            for i in range(20):
                d[i * 50 : i * 50 + 50] = i
                d[i * 50 + 7, 3:9] = -1
                assert (d[i * 50 + 7, 3:9] == -1).all() and d[i * 50 + 8, 0] == i
            print(float(d[...].sum()))
        """)
    expected = np.repeat(np.arange(20, dtype="<f4"), 50)[:, None] * np.ones((1, 1000), "<f4")
    for i in range(20):
        expected[i * 50 + 7, 3:9] = -1
    with h5py.File(node.base / "f.h5") as file:
        assert np.array_equal(file["x"][...], expected)
    assert float(out) == float(expected.sum())


def test_after_a_flush_others_see_the_data(node: Node) -> None:
    child = node.start("""
        f = h5py.File("f.h5", "w")
        f["x"] = np.arange(1_000_000)
        f.flush()
        print("flushed", flush=True)
        sys.stdin.readline()
        """)
    assert child.stdout is not None
    child.stdout.readline()
    with h5py.File(node.base / "f.h5", locking=False) as file:
        assert np.array_equal(file["x"][...], np.arange(1_000_000))
    child.kill()
    child.communicate()


def test_after_the_flush_of_one_object_others_see_all_of_the_file(node: Node) -> None:
    child = node.start("""
        f = h5py.File("f.h5", "w")
        f["x"] = np.arange(1_000_000)
        f["g/y"] = np.arange(50)
        f["g"].attrs["a"] = 1
        f["x"].flush()
        print("flushed", flush=True)
        sys.stdin.readline()
        """)
    assert child.stdout is not None
    child.stdout.readline()
    with h5py.File(node.base / "f.h5", locking=False) as file:
        assert np.array_equal(file["x"][...], np.arange(1_000_000))
        assert file["g/y"][7] == 7
    child.kill()
    child.communicate()


def test_files_that_hold_little_need_no_log_but_changes_of_old_ones_do(node: Node) -> None:
    """A new file has nothing to lose; several small writes to an old one must be all there or none."""
    node.good("with h5py.File('f.h5', 'w') as f: f['x'] = 1; f.attrs['a'] = 2")
    assert node.counts()["files_staged"] == 0
    node.good("with h5py.File('f.h5', 'r+') as f: f['g/y'] = 3; f['x'][()] = 4")
    assert node.counts()["files_staged"] == 1
    node.good("with h5py.File('f.h5', 'r+') as f: f['x'][()]")
    assert node.counts()["files_staged"] == 0
    with h5py.File(node.base / "f.h5") as file:
        assert (file["x"][()], file.attrs["a"], file["g/y"][()]) == (4, 2, 3)


def test_data_reach_the_file_while_the_program_computes(node: Node) -> None:
    """Without any flush: a point after the write lets them go."""
    node.good("""
        f = h5py.File("f.h5", "w")
        for kind in ({}, {"chunks": (1000,)}, {"chunks": (1000,), "compression": "gzip"}):
            f.create_dataset(str(kind), data=np.random.default_rng(1).random(300_000), **kind)
            wanted = sum(f[name].id.get_storage_size() for name in f)
            for _ in range(600):
                if os.path.getsize("f.h5") >= wanted:
                    break
                time.sleep(0.1)
            assert os.path.getsize("f.h5") >= wanted, kind
        f.close()
        """)
    assert node.counts()["forced"] == 0


def test_data_that_wait_for_a_point_get_one_before_the_log_is_full(node: Node) -> None:
    """Compressed chunks may not go to the file before HDF5 has told where they are.

    After a flush near the end of the log's first segment, what follows lies in that one and in the second.
    """
    node.good(
        """
        with h5py.File("f.h5", "w") as f:
            for i in range(12):
                if i == 3:
                    f["rest"] = np.zeros(6_700_000, "u1")
                    f.flush()
                d = f.create_dataset(f"d{i}", (16, 65536), "<i8", chunks=(1, 65536), compression="lzf")
                d[...] = np.random.default_rng(i).integers(0, 2**62, (16, 65536))
        """,
        write_buffer=64 * MIB, size=70 * MIB,
    )  # fmt: skip
    with h5py.File(node.base / "f.h5") as file:
        for i in range(12):
            expected = np.random.default_rng(i).integers(0, 2**62, (16, 65536))
            assert np.array_equal(file[f"d{i}"][...], expected)
    assert node.counts()["forced"] == 0


def test_a_log_that_was_cut_short_is_an_error(node: Node) -> None:
    """What was in it is lost. It has its length back with the next write, and zeros where the data were."""
    slow = (f"LD_PRELOAD={throttle()}", f"CACHEVOL_THROTTLE_FOLDER={node.base}", "CACHEVOL_THROTTLE_RATE=2e6")
    done = node.run(
        """
        f = h5py.File("f.h5", "w")
        f["x"] = np.arange(1_000_000)
        (segment,) = glob.glob(os.environ["HDF5_CACHE_STORAGE_PATH"] + "/*/logs/*/segment-*")
        os.truncate(segment, 8192)
        try:
            f["y"] = np.arange(1_000_000)
            f.close()
        except (OSError, RuntimeError) as error:
            print("error")
            os._exit(0)
        """,
        ("env", *slow, "CACHEVOL_THROTTLE_LATE=yes"),
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "error\n"


def test_a_logs_control_that_was_cut_short_ends_no_program(node: Node) -> None:
    """It is mapped, as the segments are; what is staged goes to the file, and nothing more is staged."""
    slow = (f"LD_PRELOAD={throttle()}", f"CACHEVOL_THROTTLE_FOLDER={node.base}", "CACHEVOL_THROTTLE_RATE=2e7")
    node.good(
        """
        f = h5py.File("f.h5", "w")
        f["x"] = np.arange(1_000_000)
        (control,) = glob.glob(os.environ["HDF5_CACHE_STORAGE_PATH"] + "/*/logs/*/control")
        os.truncate(control, 0)
        for name in "yz":
            f[name] = np.arange(1_000_000)
        f.close()
        """,
        ("env", *slow, "CACHEVOL_THROTTLE_LATE=yes"),
    )
    with h5py.File(node.base / "f.h5") as file:
        for name in "xyz":
            assert np.array_equal(file[name][...], np.arange(1_000_000))
    assert not node.logs and not node.markers


def test_fork_with_data_staged(node: Node) -> None:
    out = node.good("""
        f = h5py.File("f.h5", "w")
        d = f.create_dataset("x", (8, 131072), "<i8")
        for i in range(8):
            d[i] = i
            if i == 4 and (child := os.fork()) == 0:
                os._exit(0 if (d[4] == 4).all() else 1)
        print(os.waitpid(child, 0)[1])
        f.close()
        """)
    assert out.strip() == "0"
    with h5py.File(node.base / "f.h5") as file:
        assert [int(file["x"][i, 9]) for i in range(8)] == list(range(8))
    assert not node.logs


def test_the_budget_holds_and_the_program_waits(node: Node) -> None:
    """64 MiB through a log of two segments."""
    node.good(WRITE.replace("131072", "1048576"), write_buffer=64 * MIB, size=70 * MIB)
    assert whole(node.base / "f.h5", size=8 * MIB)


def reasons(node: Node) -> set[str]:
    """Why the program that ended last did not stage."""
    found: dict[str, Any] = node.counts()
    assert {r["what"] for r in found["reasons"]} == {"not staged"}
    return {r["why"] for r in found["reasons"]}


def test_without_budget_everything_goes_direct(node: Node) -> None:
    node.good(WRITE, size=MIB)
    assert whole(node.base / "f.h5")
    assert node.counts()["staged_bytes"] == 0
    assert node.counts()["direct_full"] > 0
    assert reasons(node) == {"in part: the node-local storage is full (HDF5_CACHE_STORAGE_SIZE)"}


@needs_root
def test_node_local_storage_full(node: Node, small: Path) -> None:
    """Upstream dies of SIGBUS."""
    node.local = small
    node.good(WRITE.replace("131072", "1048576"), size=1 << 30)
    assert whole(node.base / "f.h5", size=8 * MIB)
    assert node.counts()["direct_full"] > 0
    node.good(
        "f = h5py.File('f.h5'); [f[f'd{i}'][...] for i in range(8)]; print(int(f['d3'][0]))", size=1 << 30
    )


@needs_root
def test_node_local_storage_without_any_room(node: Node, small: Path) -> None:
    node.local = small
    subprocess.run(["dd", "if=/dev/zero", f"of={small}/fill", "bs=1M"], capture_output=True, check=False)
    node.good(WRITE, size=1 << 30)
    assert whole(node.base / "f.h5")


@needs_root
def test_base_storage_full(node: Node, small: Path) -> None:
    """What was acknowledged stays in the log; with room made, a replay finishes it."""
    node.base = small
    done = node.run(WRITE.replace("131072", "524288") + "print('closed')")
    assert done.returncode != 0 and "closed" not in done.stdout
    assert "No space left on device" in done.stderr
    found = logs("inspect", node.local)
    assert [log["state"] for log in found] == ["left"]
    subprocess.run(["mount", "-o", "remount,size=64m", str(small)], check=True)
    assert logs("replay", node.local)[0]["state"] == "replayed"
    with h5py.File(small / "f.h5") as file:
        for name, dataset in file.items():
            assert np.array_equal(dataset[...], np.full(524288, int(name[1:]), "<i8"))
        assert "d0" in file


def test_base_storage_refuses_a_large_file(node: Node) -> None:
    done = node.run("""
        import resource
        resource.setrlimit(resource.RLIMIT_FSIZE, (40 * 1024**2, resource.RLIM_INFINITY))
        f = h5py.File("f.h5", "w")
        d = f.create_dataset("x", (64, 131072), "<i8")
        try:
            for i in range(64):
                d[i] = i
            f.flush()
        except OSError as error:
            print("File too large" in str(error))
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        f.flush()  # the limit is gone: the next flush tries again
        for i in range(64):
            d[i] = i
        f.close()
        """)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "True"
    with h5py.File(node.base / "f.h5") as file:
        assert np.array_equal(file["x"][:, 5], np.arange(64))
    assert not node.logs


def test_no_marker_can_be_put_beside_the_file(node: Node) -> None:
    """Then nothing would tell others of staged data: nothing is staged."""
    (node.base / ".f.h5.cachevol").mkdir()
    done = node.run(WRITE)
    assert done.returncode == 0, done.stderr
    assert node.counts()["staged_bytes"] == 0
    assert whole(node.base / "f.h5")
    assert done.stderr == f"cachevol: {node.base}/f.h5: not staged: no marker can be laid beside it\n"
    assert reasons(node) == {"no marker can be laid beside it"}


def test_a_node_without_a_folder_is_told_for_each_file(node: Node) -> None:
    node.local.rmdir()
    node.good(WRITE + "\nfor d in h5py.File('f.h5').values(): d[...]")
    found: dict[str, Any] = node.counts()
    assert [(r["what"], r["why"]) for r in found["reasons"]] == [
        ("not staged", "there is no node-local folder"),
        ("not cached", "there is no node-local folder"),
    ]


def test_two_jobs_on_one_folder(node: Node) -> None:
    program = """
        name = sys.argv[1] if len(sys.argv) > 1 else str(os.getpid())
        for _ in range(5):
            with h5py.File(name, "w") as f:
                for i in range(8):
                    f[f"d{i}"] = np.full(131072, i, "<i8")
            with h5py.File(name) as f:
                assert all((f[f"d{i}"][...] == i).all() for i in range(8))
        """
    children = [node.start(program, size=40 * MIB) for _ in range(3)]
    for child in children:
        _, err = child.communicate(timeout=120)
        assert child.returncode == 0, err
    assert not node.logs


def test_the_programs_own_view_is_that_of_plain_hdf5(node: Node) -> None:
    out = node.good("""
        with h5py.File("f.h5", "w") as f:
            d = f.create_dataset("x", (100, 100))
            d[...] = 1
            print(f.driver, d.id.get_create_plist().get_alloc_time() == h5py.h5d.ALLOC_TIME_LATE,
                  f.id.get_access_plist().get_driver() == h5py.h5fd.SEC2, h5py.is_hdf5("f.h5"))
        try:
            h5py.File("none.h5")
        except FileNotFoundError as error:
            print(error.errno)
        """)
    assert out.split() == ["sec2", "True", "True", "True", "2"]


def test_a_program_that_takes_the_descriptor(node: Node) -> None:
    node.good("""
        f = h5py.File("f.h5", "w")
        f["x"] = np.arange(500_000)
        size = os.fstat(f.id.get_vfd_handle()).st_size
        assert size >= 4_000_000
        f["y"] = np.arange(500_000)
        f.close()
        """)
    with h5py.File(node.base / "f.h5") as file:
        assert np.array_equal(file["y"][...], np.arange(500_000))


def test_configuration_file_of_the_original(node: Node, tmp_path: Path) -> None:
    config = tmp_path / "SSD.cfg"
    config.write_text(
        "HDF5_CACHE_STORAGE_SIZE: 137438953472 # size of the storage in bytes\n"
        "HDF5_CACHE_STORAGE_TYPE: SSD\n"
        f"HDF5_CACHE_STORAGE_PATH: {node.local}\n"
        "HDF5_CACHE_STORAGE_SCOPE: LOCAL\n"
        "HDF5_CACHE_WRITE_BUFFER_SIZE: 102457690\n"
        "HDF5_CACHE_REPLACEMENT_POLICY: LRU\n"
    )
    environment = node.environment()
    environment["HDF5_VOL_CONNECTOR"] += f" config={config};under_vol=0;under_info={{}}"
    del environment["HDF5_CACHE_STORAGE_PATH"]
    program = "import h5py, numpy as np\n" + WRITE
    subprocess.run([sys.executable, "-c", program], cwd=node.base, env=environment, check=True)
    assert node.counts()["staged_bytes"] >= 8 * MIB
    config.write_text("HDF5_CACHE_STORAGE_SIZE: much\n")
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=node.base,
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    assert "SSD.cfg:1: HDF5_CACHE_STORAGE_SIZE has no usable value: nothing is cached" in done.stderr
    assert whole(node.base / "f.h5")


@pytest.mark.parametrize("checkpoint", [False, True])
def test_a_program_that_asks_where_data_lie(node: Node, checkpoint: bool) -> None:
    """PyTables reads chunks at their address by itself, without a flush: plain HDF5 has them there."""
    node.good("""
        with h5py.File("f.h5", "w") as f:
            d = f.create_dataset("chunked", (4 * 65536,), "<i8", chunks=(65536,))
            for i in range(4):
                d.id.write_direct_chunk((i * 65536,), np.full(65536, i, "<i8").tobytes())
            f["x"] = np.full(131072, 9, "<i8")
            with open("f.h5", "rb") as file:
                for i in range(4):
                    file.seek(d.id.get_chunk_info_by_coord((i * 65536,)).byte_offset)
                    assert file.read(8 * 65536) == np.full(65536, i, "<i8").tobytes()
                d.id.write_direct_chunk((0,), np.full(65536, 7, "<i8").tobytes())
                file.seek(d.id.get_chunk_info(0).byte_offset)
                assert file.read(8 * 65536) == np.full(65536, 7, "<i8").tobytes()
                d.id.write_direct_chunk((65536,), np.full(65536, 6, "<i8").tobytes())
                told = []
                def tell(info):
                    file.seek(info.byte_offset)
                    told.append(int(np.frombuffer(file.read(8), "<i8")[0]))
                d.id.chunk_iter(tell)
                assert told == [7, 6, 2, 3], told
                f["y"] = np.full(131072, 8, "<i8")
                file.seek(f["y"].id.get_offset())
                assert file.read(8 * 131072) == np.full(131072, 8, "<i8").tobytes()
        """, checkpoint=checkpoint)  # fmt: skip
    assert node.counts()["staged_bytes"] > MIB
