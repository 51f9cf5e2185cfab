"""HDF5: real files of it, with the data that the other interfaces write. h5py is the second reader."""

import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest

from tiercel.engines.hdf5_library import HOW, hdf5_library

h5py = pytest.importorskip("h5py", reason="h5py is not installed")
np = pytest.importorskip("numpy")

#: Two tasks, two segments of 64 KiB in transfers of 8 KiB; checkable data of seed 5.
SHAPE = "-t 8k -b 64k -s 2 -k -G 5"
TASKS = 2


@pytest.fixture
def serial():
    """Options for the library of whatever HDF5 there is: iokernel without MPI takes any."""
    library = hdf5_library()
    if library is None:
        pytest.skip("no HDF5 library: install h5py")
    return ["-a", "HDF5", "--hdf5.library", library.path]


@pytest.fixture
def parallel(serial):
    if not hdf5_library().parallel:
        pytest.skip(f"no HDF5 with MPI: {HOW}")
    return serial


def sets_of(path):
    with h5py.File(path, "r") as file:
        assert all(each.dtype == np.dtype("<i8") for each in file.values())
        return {name: each[...].tobytes() for name, each in file.items()}


def test_a_file_of_a_task_has_a_data_set_for_each_segment(iokernel, serial):
    iokernel.good("-n 2 -F -o posix", SHAPE, "-w")
    run = iokernel.good("-n 2 -F -o hdf5", SHAPE, "-w", *serial)
    assert run.parameters["api"] == "HDF5" and run.results[0]["bytesMoved"] == TASKS * 2 * 65536
    assert run.document["capabilities"]["hdf5"] == hdf5_library().version
    for task in range(TASKS):
        plain = iokernel.path(f"posix.{task:08}").read_bytes()
        sets = sets_of(iokernel.path(f"hdf5.{task:08}"))
        assert sets == {"Dataset-0000.0000": plain[:65536], "Dataset-0000.0001": plain[65536:]}


@pytest.mark.parametrize("phases", ["w,r", "w,rz", "w,w,r", "w,r,w,r", "wz,r"])
def test_what_was_written_is_read(iokernel, serial, phases):
    run = iokernel.good("-n 2 -F -o f", SHAPE, "-R --phases", phases, *serial)
    assert [r["bytesMoved"] for r in run.results] == [TASKS * 2 * 65536] * len(run.results)
    assert run.results[-1]["verifyErrors"] == 0


def test_damaged_data_are_found(iokernel, serial):
    iokernel.good("-n 1 -F -o f", SHAPE, "-w", *serial)
    with h5py.File(iokernel.path("f.00000000"), "r+") as file:
        file["Dataset-0000.0001"][3] += 1
    run = iokernel("-n 1 -F -o f", SHAPE, "-R -r -E", *serial)
    assert run.status == 1 and run.results[0]["verifyErrors"] == 1


def test_a_file_without_k_goes_and_a_foreign_one_stays(iokernel, serial):
    iokernel.good("-n 2 -F -o f -t 8k -b 64k", *serial)
    assert not list(iokernel.directory.iterdir())
    iokernel.good("-n 1 -F -o f -t 8k -b 64k -w -k", *serial)
    # Its size does not say whose it is: HDF5 adds some of its own.
    iokernel.good("-n 1 -F -o f -t 8k -b 64k -r", *serial)
    assert iokernel.path("f.00000000").exists()


def test_files_of_another_shape_or_kind_are_refused(iokernel, serial):
    iokernel.good("-n 1 -F -o f -t 8k -b 128k -w -k", *serial)
    run = iokernel("-n 1 -F -o f -t 8k -b 64k -r -k", *serial)
    assert run.status == 1
    assert "Dataset-0000.0000 has 16384 elements of 8 bytes, the test has 8192" in run.stderr
    run = iokernel("-n 1 -F -o f -t 8k -b 64k -s 2 -r -k", *serial)
    assert run.status == 1 and "f.00000000" in run.stderr
    iokernel.path("g.00000000").write_bytes(b"x" * 100_000)
    run = iokernel("-n 1 -F -o g -t 8k -b 64k -r -k", *serial)
    assert run.status == 1 and "signature" in run.stderr


def test_an_unwritable_folder_is_told_by_its_errno(iokernel, serial):
    run = iokernel("-n 1 -F -w -o", "absent/f", *serial)
    assert run.status == 1 and run.document["error"]["errno"] == 2


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("-n 2", "-a HDF5: a file of all tasks needs iokernel-mpi"),
        ("-n 2 -F -c", "-c: collective HDF5 needs iokernel-mpi"),
        ("-F -B", "--posix.odirect: needs -a POSIX"),
        ("-F --queue-depth 2", "--queue-depth"),
        ("-F -V", "--mpiio.useFileView: needs -a MPIIO"),
        ("-F -p", "--mpiio.preallocate: needs -a MPIIO"),
        ("-F -s 65537", "-s: at most 65536"),
    ],
)
def test_what_it_cannot_do(iokernel, serial, options, says):
    run = iokernel(options, *serial)
    assert run.status == 2 and says in run.stderr and len(run.stderr.splitlines()) == 1


def test_a_library_that_is_none(iokernel):
    run = iokernel("-F -a HDF5 --hdf5.library ./libabsent.so")
    assert run.status == 2 and "libabsent.so" in run.stderr and len(run.stderr.splitlines()) == 1
    run = iokernel("-F -a HDF5 --hdf5.library libm.so.6")
    assert run.status == 2 and "libm.so.6 is no HDF5 library" in run.stderr
    said = iokernel("--hdf5.library libm.so.6 --capabilities").document
    assert said["hdf5"] is None and "libm.so.6" in said["hdf5Problem"]


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed (Debian: strace)")
@pytest.mark.parametrize(("option", "syncs"), [("", 0), ("-e", 1), ("-Y", 16)])
def test_a_sync_reaches_the_system(iokernel, serial, option, syncs):
    """16 transfers of one task. H5Fflush by itself synchronises nothing on a file of POSIX."""
    log = iokernel.path("log")
    words = [option] if option else []
    traced = type(iokernel)(
        ["strace", "-f", "-qq", "-e", "trace=fsync,fdatasync", "-y", "-o", log, *iokernel.command],
        iokernel.directory,
    )
    traced.good("-n 1 -F -o data", SHAPE, "-w", *words, *serial)
    assert sum("data.00000000" in line for line in log.read_text().splitlines()) == syncs


@pytest.mark.parametrize("options", [[], ["-c"], ["-e"], ["-c -Y"], ["-C"], ["-c -O numTasksOnNode0=1 -C"]])
def test_a_shared_file(mpi, parallel, options):
    """Each data set holds a block of every task: the segments of the file that POSIX would write."""
    engine = mpi(2)
    engine.good("-o posix", SHAPE, "-w")
    run = engine.good("-o hdf5", SHAPE, "-w -R", *options, *parallel)
    assert run.results[1]["verifyErrors"] == 0 and run.results[1]["bytesMoved"] == TASKS * 2 * 65536
    plain = engine.path("posix").read_bytes()
    sets = sets_of(engine.path("hdf5"))
    assert sets == {"Dataset-0000.0000": plain[: 2 * 65536], "Dataset-0000.0001": plain[2 * 65536 :]}


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed (Debian: strace)")
@pytest.mark.parametrize(("option", "read_first"), [("", 0), ("-c", 32)])
def test_a_collective_write_is_ior_s(mpi, parallel, option, read_first):
    """IOR's transfer is a piece of a larger space in memory, so MPICH reads what a collective one is about to
    write; IOR 4.1 made these calls. Two tasks with 16 transfers each."""
    engine = mpi(2)
    log = engine.path("log")
    launcher, program = engine.command[:-1], engine.command[-1]
    strace = ["strace", "-f", "-ff", "-qq", "-e", "trace=pread64,pwrite64", "-y", "-o", log]
    words = [option] if option else []
    type(engine)([*launcher, *strace, program], engine.directory).good(
        "-o hdf5", SHAPE, "-w", *words, *parallel
    )
    lines = [
        line for each in log.parent.glob("log.*") for line in each.read_text().splitlines() if "hdf5>" in line
    ]
    transfers = [line for line in lines if ", 8192, " in line]
    assert sum(line.startswith("pread64") for line in transfers) == read_first
    assert sum(line.startswith("pwrite64") for line in transfers) == 32


def test_a_shared_file_in_random_order_and_written_twice(mpi, parallel):
    run = mpi(2).good("-o f -t 8k -b 64k -G 5 -R --phases", "w,wz,rz", *parallel)
    assert run.results[-1]["verifyErrors"] == 0


def test_a_file_of_a_task_goes_through_mpi_io_too(mpi, parallel):
    run = mpi(2).good("-F -o f", SHAPE, "-w -R", *parallel)
    assert run.results[1]["verifyErrors"] == 0
    assert run.document["capabilities"]["hdf5Parallel"] is True


def test_a_stonewall_leaves_no_task_waiting(mpi, parallel):
    run = mpi(2).good("-o f -t 8k -b 8k -s 200 -w -D 0.000000001", *parallel)
    assert run.results[0]["stonewall"]["hit"] is True


def test_a_serial_library_is_refused_under_mpi(mpi):
    folder = Path(find_spec("h5py").origin).parents[1] / "h5py.libs"
    library = next(iter(folder.glob("libhdf5-*.so*")), None)
    if library is None:
        pytest.skip("h5py brings no library of its own")
    run = mpi(1)("-F -a HDF5 --hdf5.library", library)
    assert (
        run.status == 2 and "iokernel-mpi needs an HDF5 library that is built with its own MPI" in run.stderr
    )
