"""Reads by way of the node-local copy: the same bytes however they are read, never those of an older file."""

from __future__ import annotations

import os
import shutil

import h5py
import numpy as np
import pytest

from .conftest import Node, needs_connector

pytestmark = needs_connector

MIB = 1024**2


def make(node: Node, name: str = "f.h5", size: int = 4 * MIB, value: int | None = None) -> np.ndarray:
    data = np.arange(size // 8, dtype="<i8") if value is None else np.full(size // 8, value, "<i8")
    with h5py.File(node.base / name, "w") as file:
        file["x"] = data
    return data


def test_the_second_epoch_comes_from_the_copy(node: Node) -> None:
    make(node, size=8 * MIB)
    node.good("""
        f = h5py.File("f.h5")
        for epoch in range(2):
            assert (f["x"][...] == np.arange(1024**2)).all()
            copied(8 * 1024**2)  # in the background
        """)
    counts = node.counts()
    # All of the data once from the base file and once from the copy; the metadata beside are small. The start
    # of the data lies in the metadata's last block, which may be in the copy before the data are read.
    assert 8 * MIB - 4096 <= counts["miss_bytes"] < 8 * MIB + 65536
    assert 8 * MIB <= counts["hit_bytes"] < 8 * MIB + 65536


@pytest.mark.parametrize("selection", ["::3", "5::7, ::2", "[1, 5, 9]", "3:4", "..., 5", "10:13, 1:-1"])
def test_any_selection_and_memory_type(node: Node, selection: str) -> None:
    """Upstream returns wrong data for strided selections, partial samples and other memory types."""
    data = np.arange(97 * 211, dtype=">i4").reshape(97, 211)  # divisible by nothing
    with h5py.File(node.base / "f.h5", "w") as file:
        file["x"] = data
        file.create_dataset("z", data=data, chunks=(10, 20), compression="gzip")
    out = node.good(f"""
        f = h5py.File("f.h5")
        for epoch in range(3):
            for name in "xz":
                total = f[name][{selection}].astype("i8").sum()
                print(int(total), float(f[name].astype("f8")[{selection}].sum()))
            copied(1)
        """)
    total = int(data[eval(f"np.s_[{selection}]")].astype("i8").sum())
    assert set(out.split("\n")[:-1]) == {f"{total} {float(total)}"}
    assert node.counts()["hit_bytes"] > 0


def test_large_reads_at_odd_places(node: Node) -> None:
    """Of a large read the first part is copied while the rest is read; edges lie in blocks of others."""
    with h5py.File(node.base / "f.h5", "w") as file:
        file["x"] = np.random.default_rng(1).integers(0, 256, 24 * MIB, "u1")
    read = """
        expected = np.random.default_rng(1).integers(0, 256, 24 * 1024**2, "u1")
        chance = np.random.default_rng({seed})
        f = h5py.File("f.h5")
        for _ in range({times}):
            at, size = int(chance.integers(0, 18 * 1024**2)), int(chance.integers(2**20, 6 * 1024**2))
            assert np.array_equal(f["x"][at : at + size], expected[at : at + size])
        """
    node.good(read.format(seed=1, times=8))
    first = node.counts()
    node.good(read.format(seed=1, times=8))  # the same once more: from the copy
    assert first["miss_bytes"] >= 2**20 and node.counts()["miss_bytes"] < 4096
    node.good(read.format(seed=2, times=20))


def test_low_level_hyperslab_without_stride_and_block(node: Node) -> None:
    """H5Sselect_hyperslab(start, NULL, count, NULL) is what most C programs do; upstream crashes on it."""
    data = make(node)
    out = node.good("""
        f = h5py.File("f.h5")
        d = f["x"].id
        for epoch in range(3):
            space, memory = d.get_space(), h5py.h5s.create_simple((100,))
            space.select_hyperslab((1000,), (100,))
            out = np.zeros(100, "<i8")
            d.read(memory, space, out)
            print(out.sum())
            time.sleep(0.1)
        """)
    assert out.split() == [str(data[1000:1100].sum())] * 3


def test_rows_read_again_before_all_were_read(node: Node) -> None:
    make(node)
    out = node.good("""
        f = h5py.File("f.h5")
        for _ in range(5):
            print(f["x"][7:4099].sum())
            time.sleep(0.05)
        """)
    assert set(out.split()) == {str(sum(range(7, 4099)))}


def test_another_session_finds_the_copy(node: Node) -> None:
    make(node, size=8 * MIB)
    for _ in range(2):
        node.good("print(h5py.File('f.h5')['x'][...].sum())")
    assert node.counts()["hit_bytes"] >= 8 * MIB


def test_processes_of_a_node_share_one_copy(node: Node) -> None:
    """One reads alone while another waits (upstream hangs); then the other finds all of it."""
    make(node, size=8 * MIB)
    other = node.start("""
        f = h5py.File("f.h5")
        f["x"][:10]
        print("open", flush=True)
        sys.stdin = open(0)
        while not os.path.exists("go"): time.sleep(0.02)
        print(f["x"][...].sum())
        """)
    assert other.stdout is not None
    other.stdout.readline()
    node.good("print(h5py.File('f.h5')['x'][...].sum())")
    (node.base / "go").touch()
    out, err = other.communicate(timeout=60)
    assert out.strip() == str(sum(range(MIB))), err
    counts = node.counts()
    assert counts["hit_bytes"] >= 7 * MIB  # all but the blocks read before the other came
    assert len(node.copies) == 1


def test_forked_readers(node: Node) -> None:
    """As a data loader does: the file is opened once, then read by children."""
    make(node)
    out = node.good("""
        f = h5py.File("f.h5")
        f["x"][:100]
        children = []
        for i in range(3):
            if (child := os.fork()) == 0:
                ok = all((f["x"][i::3] == np.arange(i, 524288, 3)).all() for _ in range(4))
                os._exit(0 if ok else 1)
            children.append(child)
        print([os.waitpid(c, 0)[1] for c in children], f["x"][...].sum())
        """)
    assert out.strip() == f"[0, 0, 0] {sum(range(524288))}"


@pytest.mark.parametrize("change", ["rewritten", "rewritten, times set back", "replaced", "one value"])
def test_a_changed_file_is_never_served_stale(node: Node, change: str) -> None:
    make(node, value=1)
    path = node.base / "f.h5"
    program = "f = h5py.File('f.h5'); print([int(f['x'][...].sum()) for _ in range(2)])"
    for _ in range(2):
        assert eval(node.good(program)) == [524288] * 2
    before = path.stat()
    if change == "one value":
        with h5py.File(path, "r+") as file:
            file["x"][77] = 5
        expected = 524292
    else:
        if change == "replaced":
            other = node.base / "other.h5"
            shutil.copy(path, other)
            with h5py.File(other, "r+") as file:
                file["x"][...] = 2
            other.replace(path)
        else:
            make(node, value=2)
        expected = 2 * 524288
    if "set back" in change:
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert eval(node.good(program)) == [expected] * 2


def test_a_file_that_changes_while_it_is_open(node: Node) -> None:
    """Plain HDF5 sees the new bytes then; so must a program with a copy."""
    make(node, value=1)
    child = node.start("""
        f = h5py.File("f.h5", locking=False)
        f["x"][...]; time.sleep(0.3); f["x"][...]
        print("copied", flush=True)
        while not os.path.exists("go"): time.sleep(0.02)
        print(int(f["x"][1000:].sum()))
        """)
    assert child.stdout is not None
    child.stdout.readline()
    with h5py.File(node.base / "f.h5", "r+", locking=False) as file:
        file["x"][...] = 3
    (node.base / "go").touch()
    out, err = child.communicate(timeout=60)
    assert out.strip() == str(3 * (524288 - 1000)), err
    assert node.counts()["changed_files"] == 1


def test_a_file_that_was_just_written_is_not_copied(node: Node) -> None:
    """Its times cannot tell a change within the same tick of the clock."""
    make(node)
    node.good("f = h5py.File('f.h5'); f['x'][...]; f['x'][...]", quiet=60)
    assert node.counts()["files_cached"] == 0


def test_equal_names_in_different_folders_have_their_own_copies(node: Node) -> None:
    for value in (1, 2):
        (node.base / str(value)).mkdir()
        make(node, f"{value}/f.h5", value=value)
    out = node.good("""
        for _ in range(2):
            print([int(h5py.File(f"{v}/f.h5")["x"][...].sum()) for v in (1, 2)])
            time.sleep(0.2)
        """)
    assert set(out.strip().split("\n")) == {"[524288, 1048576]"}
    assert len(node.copies) == 2


def copied(node: Node) -> set[str]:
    """Return the names of the files that have copies."""
    names = set()
    for folder in node.copies:
        text = (folder / "map").read_bytes()[:8192]
        names.add(text[text.index(str(node.base).encode()) :].split(b"\0")[0].decode().rsplit("/", 1)[1])
    return names


@pytest.mark.parametrize(
    ("policy", "left"),
    # Room for two of three. a is the oldest and the most used, but not used last; b is used least.
    [("LRU", {"b", "c"}), ("LFU", {"a", "c"}), ("FIFO", {"b", "c"})],
)
def test_eviction_by_policy_within_the_budget(node: Node, policy: str, left: set[str]) -> None:
    for name in "abc":
        make(node, name)
    read = "f = h5py.File('{}'); f['x'][...]; f.close(); time.sleep(0.2)"
    for name in ("a", "a", "a", "b", "c"):
        node.good(read.format(name), policy=policy, size=10 * MIB)
    assert copied(node) == left
    assert node.counts()["evicted_files"] == 1
    size = sum(f.stat().st_blocks * 512 for c in node.copies for f in c.iterdir())
    assert size <= 10 * MIB + 65536


def test_copies_of_files_that_are_gone_go_first(node: Node) -> None:
    for name in "abc":
        make(node, name)
    read = "f = h5py.File('{}'); f['x'][...]; f.close(); time.sleep(0.2)"
    for name in "ab":
        node.good(read.format(name), size=10 * MIB)
    (node.base / "b").unlink()
    node.good(read.format("c"), size=10 * MIB)
    assert copied(node) == {"a", "c"}


def test_a_file_larger_than_the_budget_is_read_all_the_same(node: Node) -> None:
    data = make(node, size=16 * MIB)
    out = node.good(
        "f = h5py.File('f.h5'); print(set(int(f['x'][...].sum()) for _ in range(4)))", size=5 * MIB
    )
    assert out.strip() == f"{{{data.sum()}}}"
    assert node.counts()["hit_bytes"] > 0
    assert sum(f.stat().st_blocks * 512 for c in node.copies for f in c.iterdir()) <= 5 * MIB + 65536


def test_prefetch_copies_what_nobody_has_read(node: Node) -> None:
    make(node, size=16 * MIB)
    node.good("f = h5py.File('f.h5'); f['x'][:10]; copied(16 * 1024**2); f['x'][...]", prefetch=True)
    counts = node.counts()
    assert counts["prefetched_bytes"] > 15 * MIB
    assert counts["hit_bytes"] > 15 * MIB


def test_memory_between_read_and_copy_is_bounded(node: Node) -> None:
    make(node, size=64 * MIB)
    out = node.good("""
        import resource
        f = h5py.File("f.h5")
        part = np.empty(131072, "<i8")
        f["x"].read_direct(part, np.s_[:131072])
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for start in range(0, 8 * 1024**2, 131072):
            f["x"].read_direct(part, np.s_[start : start + 131072])
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
        """, read_buffer=8 * MIB)  # fmt: skip
    assert int(out) * 1024 < 20 * MIB


def test_a_reader_of_a_file_that_is_being_written_goes_to_the_file(node: Node) -> None:
    """Single writer, multiple readers: nothing may stand between them."""
    with h5py.File(node.base / "f.h5", "w", libver="latest") as file:
        file.create_dataset("x", (0,), "<i8", maxshape=(None,), chunks=(1024,))
    writer = node.start("""
        f = h5py.File("f.h5", "r+", libver="latest")
        f.swmr_mode = True
        print("writing", flush=True)
        for i in range(1, 41):
            f["x"].resize((i * 1024,))
            f["x"][-1024:] = i
            f["x"].flush()
            time.sleep(0.02)
        """)
    assert writer.stdout is not None
    writer.stdout.readline()
    out = node.good("""
        seen = 0
        while seen < 40:
            with h5py.File("f.h5", "r", swmr=True) as f:
                d = f["x"][...]
                assert len(d) % 1024 == 0 and (d == np.repeat(np.arange(1, len(d) // 1024 + 1), 1024)).all()
                seen = max(seen, len(d) // 1024)
        print(seen)
        """)
    assert out.strip() == "40"
    assert writer.communicate(timeout=60)[1] == ""
