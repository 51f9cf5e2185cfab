"""What programs set up for the HDF5 Cache VOL ask for: its calls, and its connector string."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import h5py
import numpy as np
import pytest

from .conftest import Node, needs_connector

pytestmark = needs_connector

MIB = 1024**2

#: The calls as that interface makes them: an operation is found by its name, and gets a structure of numbers.
CALLS = """
import ctypes
names = [line.split()[-1] for line in open("/proc/self/maps")]
where = next(name for name in names if "/libhdf5-" in name or "/libhdf5.so" in name)
lib = ctypes.CDLL(where)
DATASET, FILE = 4, 6

class Args(ctypes.Structure):
    _fields_ = [("op", ctypes.c_int), ("args", ctypes.c_void_p)]

def call(of, name, it, *numbers):
    op = ctypes.c_int(-1)
    assert lib.H5VLfind_opt_operation(of, name.encode(), ctypes.byref(op)) >= 0, name
    packed = (ctypes.c_int64 * max(1, len(numbers)))(*numbers)
    args = Args(op.value, ctypes.cast(packed, ctypes.c_void_p) if numbers else None)
    function = lib.H5VLdataset_optional_op if of == DATASET else lib.H5VLfile_optional_op
    text, number = ctypes.c_char_p, ctypes.c_int64
    function.argtypes = [text, text, ctypes.c_uint, number, ctypes.POINTER(Args), number, number]
    return function(b"", b"", 0, it.id.id, ctypes.byref(args), 0, 0)

def in_file(name):
    return b"staged!!" * 1000 in open(name, "rb").read()
"""


def good(node: Node, text: str, **options: object) -> str:
    """Run a program that makes such calls, and must end well."""
    return node.good(CALLS + textwrap.dedent(text), **options)


@pytest.fixture
def data(node: Node) -> np.ndarray:
    values = np.arange(MIB, dtype="<i8").reshape(1024, 1024)
    with h5py.File(node.base / "f.h5", "w") as file:
        file["x"] = values
        file.create_dataset("z", data=values, chunks=(100, 300), compression="gzip")
        file["words"] = ["of", "any", "length"]
    return values


def test_what_was_prefetched_is_read_from_the_copy(node: Node, data: np.ndarray) -> None:
    good(node, """
        f = h5py.File("f.h5")
        assert call(DATASET, "anl.gov.cache.dprefetch", f["x"], 0) >= 0
        copied(8 * 1024**2)
        assert (f["x"][...] == np.arange(1024**2).reshape(1024, 1024)).all()
        """)  # fmt: skip
    counts = node.counts()
    assert 8 * MIB - 4096 <= counts["miss_bytes"] < 8 * MIB + 65536  # once, by the prefetch
    assert counts["hit_bytes"] >= 8 * MIB - 4096
    assert counts["asked"] == 1


def test_a_selection_is_prefetched(node: Node, data: np.ndarray) -> None:
    good(node, """
        f = h5py.File("f.h5")
        space = f["x"].id.get_space()
        space.select_hyperslab((512, 0), (256, 1024))
        assert call(DATASET, "anl.gov.cache.dprefetch", f["x"], space.id) >= 0
        copied(2 * 1024**2)
        assert (f["x"][512:768] == np.arange(1024**2).reshape(1024, 1024)[512:768]).all()
        space.select_elements([(3, 4), (1000, 1000)])
        assert call(DATASET, "anl.gov.cache.dprefetch", f["x"], space.id) >= 0
        space.select_none()
        assert call(DATASET, "anl.gov.cache.dprefetch", f["x"], space.id) >= 0
        for name in ("z", "words"):
            assert call(DATASET, "anl.gov.cache.dprefetch", f[name], 0) >= 0
        assert (f["z"][...] == f["x"][...]).all()
        """)  # fmt: skip
    assert node.counts()["hit_bytes"] >= 2 * MIB - 8192


def test_a_prefetch_larger_than_its_memory_goes_by_rows(node: Node) -> None:
    values = np.arange(10 * MIB, dtype="<i8").reshape(1024, -1, 8)[:, :-1]
    with h5py.File(node.base / "f.h5", "w") as file:
        file["x"] = values
    good(node, f"""
        f = h5py.File("f.h5")
        assert call(DATASET, "anl.gov.cache.dprefetch", f["x"], 0) >= 0
        copied({values.nbytes} // 4096 * 4096)
        assert int(f["x"][...].sum()) == {int(values.sum())}
        """, read_buffer=256 * MIB)  # fmt: skip
    counts = node.counts()
    assert counts["miss_bytes"] < values.nbytes + MIB
    assert counts["hit_bytes"] >= values.nbytes - MIB


@pytest.mark.parametrize("name", ["dread_to_cache", "dread_from_cache"])
def test_reads_of_that_interface_are_reads(node: Node, data: np.ndarray, name: str) -> None:
    """Upstream's second one gives whatever is in its memory where the first was not called before."""
    good(node, f"""
        f = h5py.File("f.h5")
        x, wanted = f["x"], np.arange(1024**2).reshape(1024, 1024)[:1000, 5:]
        there = np.zeros(wanted.shape, "i4")
        space = x.id.get_space()
        space.select_hyperslab((0, 5), (1000, 1019))
        memory = h5py.h5s.create_simple(there.shape)
        for epoch in range(2):
            there[:] = 0
            numbers = (h5py.h5t.NATIVE_INT32.id, memory.id, space.id, there.ctypes.data)
            assert call(DATASET, "anl.gov.cache.{name}", x, *numbers) >= 0
            assert (there == wanted).all()
            copied(7 * 1024**2)
        """)  # fmt: skip
    assert node.counts()["hit_bytes"] > 0


@pytest.mark.parametrize(("of", "name"), [("DATASET", "cache.dcache_remove"), ("FILE", "fcache.remove")])
def test_a_copy_is_removed(node: Node, data: np.ndarray, of: str, name: str) -> None:
    good(node, f"""
        f = h5py.File("f.h5")
        assert (f["x"][...] == np.arange(1024**2).reshape(1024, 1024)).all()
        copied(8 * 1024**2)
        assert call({of}, "anl.gov.{name}", f["x"] if {of} == DATASET else f) >= 0
        assert (f["x"][...] == np.arange(1024**2).reshape(1024, 1024)).all()
        """)  # fmt: skip
    assert node.copies == []


#: A write that is large enough to be staged; `pattern` fills it.
_WRITE = """
    f = h5py.File("w.h5", "w")
    x = f.create_dataset("x", (8 * 1024**2,), "u1")
    x[:] = np.frombuffer(b"staged!!" * 1024**2, "u1")
"""


@pytest.mark.parametrize(
    ("of", "name"),
    [("FILE", "fcache.async.op"), ("DATASET", "dcache.async.op")],
)
def test_migration_pauses_and_starts_again(node: Node, of: str, name: str) -> None:
    good(node, f"""
        f = h5py.File("w.h5", "w")
        x = f.create_dataset("x", (8 * 1024**2,), "u1")
        which = x if {of} == DATASET else f
        assert call({of}, "anl.gov.{name}.pause", which) >= 0
        x[:] = np.frombuffer(b"staged!!" * 1024**2, "u1")
        time.sleep(0.5)
        assert not in_file("w.h5")
        assert (x[:80] == np.frombuffer(b"staged!!" * 10, "u1")).all()  # from the log
        assert call({of}, "anl.gov.{name}.start", which) >= 0
        for _ in range(3000):
            if in_file("w.h5"):
                break
            time.sleep(0.02)
        assert in_file("w.h5")
        """)  # fmt: skip
    with h5py.File(node.base / "w.h5") as file:
        assert bytes(file["x"][:16]) == b"staged!!" * 2
    assert node.counts()["staged_bytes"] >= 8 * MIB


@pytest.mark.parametrize(
    "end", ["f.flush()", "f.close()", 'call(FILE, "anl.gov.fcache.async.close.wait", f)']
)
def test_who_waits_for_the_data_does_not_wait_for_the_pause_to_end(node: Node, end: str) -> None:
    good(node, f"""
        f = h5py.File("w.h5", "w")
        x = f.create_dataset("x", (8 * 1024**2,), "u1")
        assert call(FILE, "anl.gov.fcache.async.close.set", f) >= 0
        assert call(FILE, "anl.gov.fcache.async.op.pause", f) >= 0
        x[:] = np.frombuffer(b"staged!!" * 1024**2, "u1")
        {end}
        assert in_file("w.h5")
        """)  # fmt: skip


def test_a_pause_in_a_full_log_does_not_stop_the_program(node: Node) -> None:
    good(node, """
        f = h5py.File("w.h5", "w")
        assert call(FILE, "anl.gov.fcache.async.op.pause", f) >= 0
        for number in range(16):
            f[f"x{number}"] = np.full(1024**2, number, "u1")
        """, write_buffer=4 * MIB)  # fmt: skip
    with h5py.File(node.base / "w.h5") as file:
        assert all((file[f"x{number}"][:] == number).all() for number in range(16))


def test_what_there_is_nothing_to_do_for(node: Node, data: np.ndarray) -> None:
    good(node, """
        f = h5py.File("f.h5")
        for name in ("cache.dcache_create", "cache.dmmap_remap"):
            assert call(DATASET, f"anl.gov.{name}", f["x"]) >= 0
        for name in ("fcache.create", "fcache.async.close.set"):
            assert call(FILE, f"anl.gov.{name}", f, 0, 0, 0) >= 0
        """)  # fmt: skip


STRINGS = [
    "cache_ext config={config};under_vol=512;under_info={under_vol=0;under_info={}}",
    "tiercel_cachevol config={config};under_vol=512;under_info={under_vol=0;under_info={}}",
    "cache_ext config={config};under_vol=512",
    "cache_ext config={config};under_vol=0;under_info={}",
    "cache_ext config={config}",
]


@pytest.mark.parametrize("text", STRINGS)
def test_the_connector_string_of_the_original(node: Node, text: str) -> None:
    """With the Async VOL below, which is not here: HDF5 2.0 died of that."""
    config = node.base / "cache.cfg"
    config.write_text(
        "HDF5_CACHE_STORAGE_SCOPE: LOCAL\nHDF5_CACHE_STORAGE_TYPE: SSD\n"
        "HDF5_CACHE_WRITE_BUFFER_SIZE: 102457690\n"
        f"HDF5_CACHE_STORAGE_PATH: {node.local}\nHDF5_CACHE_STORAGE_SIZE: 128755813888\n"
        "HDF5_CACHE_REPLACEMENT_POLICY: LRU\n"
    )
    environment = {**node.environment(), "HDF5_VOL_CONNECTOR": text.replace("{config}", str(config))}
    done = subprocess.run(
        [sys.executable, "-c", "import h5py, numpy as np" + textwrap.dedent(_WRITE) + "f.close()"],
        cwd=node.base, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert node.counts()["staged_bytes"] >= 8 * MIB
    with h5py.File(node.base / "w.h5") as file:
        assert bytes(file["x"][:8]) == b"staged!!"


@pytest.mark.parametrize(
    "text", ["tiercel_cachevol under_vol=300", "cache_ext under_vol=512;under_info={under_vol=301}"]
)
def test_another_connector_that_is_not_there_is_refused(node: Node, text: str) -> None:
    """Its files may lie elsewhere: neither HDF5's crash nor a file of the native connector is an answer."""
    code = "import h5py\ntry: h5py.File('w.h5', 'w')\nexcept OSError as error: print(error)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=node.base, capture_output=True, text=True, check=False,
        env={**node.environment(), "HDF5_VOL_CONNECTOR": text},
    )  # fmt: skip
    assert done.returncode == 0 and "below cachevol is not there" in done.stdout, done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (node.base / "w.h5").exists()
