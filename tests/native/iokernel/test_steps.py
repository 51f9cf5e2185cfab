"""HDF5 programs in steps: what lies in their files, by h5py; whose part is whose; what mistakes give."""

import itertools
import shutil

import pytest

from tiercel.engines.hdf5_library import HOW, hdf5_library

h5py = pytest.importorskip("h5py", reason="h5py is not installed")
np = pytest.importorskip("numpy")

CHECKPOINT = "--checkpoint -o c.h5 --steps 3 --datasets 2 -t 4k"
#: 11 batches of 3 samples of 100 bytes, the last one of 2.
SAMPLES = "-o s.h5 --count 32 --sample-size 100 --batch 3"
BATCHES, COUNT, SAMPLE = 11, 32, 100


@pytest.fixture
def serial():
    """The library of whatever HDF5 there is: iokernel without MPI takes any."""
    library = hdf5_library()
    if library is None:
        pytest.skip("no HDF5 library: install h5py")
    return ["--hdf5.library", library.path]


@pytest.fixture
def parallel(serial):
    if not hdf5_library().parallel:
        pytest.skip(f"no HDF5 with MPI: {HOW}")
    return serial


def good(engine, *words):
    return engine.good("steps", *words).results[0]


def sets_of(path):
    found = {}
    with h5py.File(path, "r") as file:
        file.visititems(lambda name, each: found.update({name: each[...]} if hasattr(each, "shape") else {}))
    return found


def test_a_checkpoint_has_a_group_for_each_step(iokernel, serial):
    result = good(iokernel, CHECKPOINT, "-k", *serial)
    sets = sets_of(iokernel.path("c.h5"))
    assert sorted(sets) == [f"step{s}/property{p}" for s, p in itertools.product(range(3), range(2))]
    assert {(each.dtype.str, each.shape) for each in sets.values()} == {("<f4", (1024,))}
    ((rank,),) = result["ranks"]
    assert rank["bytes"] == 3 * 2 * 4096 and result["fileBytes"] >= rank["bytes"]
    assert result["fileBytes"] == iokernel.path("c.h5").stat().st_size


@pytest.mark.parametrize("collective", [[], ["-c"]])
def test_each_task_has_its_part_of_each_data_set(mpi, parallel, collective):
    """No part repeats: neither a task's beside another's, nor one data set beside another."""
    engine = mpi(2)
    result = good(engine, CHECKPOINT, "-k", *collective, *parallel)
    assert [[r["bytes"] for r in rank] for rank in result["ranks"]] == [[3 * 2 * 4096]] * 2
    sets = list(sets_of(engine.path("c.h5")).values())
    assert [len(each) for each in sets] == [2048] * 6
    parts = [part.tobytes() for each in sets for part in (each[:1024], each[1024:])]
    assert len(set(parts)) == 12 and bytes(4096) not in parts


def test_computation_is_asleep_and_not_observed(iokernel, serial):
    """Three steps of 50 ms: that much at least, and none of it in what is observed."""
    ((rank,),) = good(iokernel, CHECKPOINT, "--compute 0.05", *serial)["ranks"]
    assert rank["compute"] >= 0.15
    assert rank["observed"] == pytest.approx(rank["total"] - rank["compute"], abs=1e-9)


def test_a_checkpoint_goes_at_the_end_where_it_is_not_to_stay(iokernel, serial):
    good(iokernel, CHECKPOINT, *serial)
    assert not list(iokernel.directory.iterdir())


def test_samples_tell_their_numbers(mpi, parallel):
    engine = mpi(3)
    result = good(engine, "--samples -k", SAMPLES, *parallel)
    (samples,) = sets_of(engine.path("s.h5")).values()
    assert samples.shape == (COUNT, SAMPLE)
    assert np.array_equal(samples, np.repeat(np.arange(COUNT, dtype="u1")[:, None], SAMPLE, axis=1))
    # 3, 4 and 4 batches; the last batch has two samples.
    assert [rank[0]["bytes"] for rank in result["ranks"]] == [900, 1200, 1100]


@pytest.mark.parametrize("order", ["", "-z", "-z --random-offset-seed 7 --evict"])
def test_all_tasks_together_read_all_samples_once_an_epoch(mpi, parallel, order):
    engine = mpi(3)
    good(engine, "--samples -k", SAMPLES, *parallel)
    ranks = good(engine, "--stream", SAMPLES, "--epochs 4", *([order] if order else []), *parallel)["ranks"]
    assert [len(rank) for rank in ranks] == [4] * 3
    assert [sum(rank[e]["bytes"] for rank in ranks) for e in range(4)] == [COUNT * SAMPLE] * 4
    parts = [[epoch["bytes"] for epoch in rank] for rank in ranks]
    if not order:  # each task's part is the same in all epochs
        assert parts == [[900] * 4, [1200] * 4, [1100] * 4]
    assert engine.path("s.h5").exists()  # what is read stays


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed (Debian: strace)")
def test_the_order_is_another_one_in_each_epoch(iokernel, serial):
    """By a task's calls: the offsets of its batches, of 120,000 bytes, since HDF5 joins what is small."""
    big = "-o s.h5 --count 32 --sample-size 40000 --batch 3"
    good(iokernel, "--samples -k", big, *serial)
    log = iokernel.path("log")
    words = ["strace", "-f", "-qq", "-y", "-e", "trace=pread64", "-o", log, *iokernel.command]
    orders = []
    for seed in ("1", "2"):
        good(type(iokernel)(words, iokernel.directory), "--stream -z --epochs 2", big,
             "--random-offset-seed", seed, *serial)  # fmt: skip
        calls = [line for line in log.read_text().splitlines() if "s.h5" in line and ", 120000, " in line]
        offsets = [int(line.rsplit(", ", 1)[1].split(")")[0]) for line in calls]
        assert len(offsets) == 2 * (BATCHES - 1)  # the last batch is smaller
        orders += [tuple(offsets[: BATCHES - 1]), tuple(offsets[BATCHES - 1 :])]
    assert len(set(orders)) == 4 and len({frozenset(order) for order in orders}) == 1


def test_a_wrong_sample_is_found(iokernel, serial):
    good(iokernel, "--samples -k", SAMPLES, *serial)
    with h5py.File(iokernel.path("s.h5"), "r+") as file:
        file["samples"][7, SAMPLE - 1] = 8
    run = iokernel("steps --stream", SAMPLES, *serial)
    assert run.status == 1 and "samples 6 to 8 are wrong" in run.stderr
    assert run.document["status"] == "failed" and iokernel.path("s.h5").exists()


def test_a_file_of_another_shape_is_refused_by_all(mpi, parallel):
    engine = mpi(2)
    good(engine, "--samples -k", SAMPLES, *parallel)
    run = engine("steps --stream -o s.h5 --count 33 --sample-size 100 --batch 3", *parallel)
    assert run.status == 1 and "not 33 samples of 100 bytes" in run.stderr


def test_a_folder_that_is_not_there_is_told_by_its_errno(iokernel, serial):
    run = iokernel("steps --checkpoint -t 4k -o", "absent/c.h5", *serial)
    assert run.status == 1 and run.document["error"]["errno"] == 2
    assert run.document["error"]["operation"] == "H5Fcreate"


def test_a_foreign_file_stays_when_the_run_fails(iokernel, serial):
    """The checkpoint would take its place; what cannot be opened for it is somebody's."""
    iokernel.path("c.h5").mkdir()
    run = iokernel("steps", CHECKPOINT, *serial)
    assert run.status == 1 and iokernel.path("c.h5").is_dir()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("-o f", "steps: say what to do"),
        ("--checkpoint --stream -o f", "steps: one of --checkpoint, --samples and --stream"),
        ("--checkpoint", "-o: is missing"),
        ("--checkpoint -o f -t 6", "-t: 6 is no multiple of 4"),
        ("--checkpoint -o f --steps 0", "--steps: '0' is not a whole number from 1"),
        ("--checkpoint -o f --compute soon", "--compute: 'soon' is not a number of seconds"),
        ("--stream -o f -c", "-c: is of writes"),
        ("--checkpoint -o f -n 2", "--processes: several tasks share the file"),
        ("--checkpoint -o f --wrong", "--wrong: unknown option"),
        ("--checkpoint -o f more", "more: unexpected argument"),
    ],
)
def test_what_it_cannot_do(iokernel, serial, options, says):
    run = iokernel("steps", options, *serial)
    assert run.status == 2 and says in run.stderr and len(run.stderr.splitlines()) == 1


def test_help_and_a_library_that_is_none(iokernel):
    said = iokernel("steps --help")
    assert said.status == 0 and "--checkpoint" in said.stdout
    run = iokernel("steps --checkpoint -o f --hdf5.library ./libabsent.so")
    assert run.status == 2 and "libabsent.so" in run.stderr
