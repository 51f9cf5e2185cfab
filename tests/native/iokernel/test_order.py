"""The order of random offsets is IOR's own for a seed.

The oracle calls the C library's srandom() and rand() the way IOR does. The order is observed without tracing:
after K operations (-O stoneWallingWearOutIterations=K) exactly the first K offsets of the order hold data.
"""

import ctypes

import pytest

LIBC = ctypes.CDLL(None)
T = 4096


def shuffled(offsets):
    for i in range(len(offsets)):
        other = LIBC.rand() % len(offsets)
        offsets[i], offsets[other] = offsets[other], offsets[i]
    return offsets


def own_file(seed, rank, block):
    """IOR, file per process: seed + rank, then swap each offset with a random one."""
    LIBC.srandom(seed + rank)
    return shuffled(list(range(0, block, T)))


def shared_file(seed, rank, tasks, block):
    """IOR, shared file: every transfer of a segment goes to a random task; each task shuffles what it got."""
    LIBC.srandom(seed)
    for _ in range(0, block * tasks, T):  # a first pass only counts
        LIBC.rand()
    LIBC.srandom(seed)
    return shuffled([at for at in range(0, block * tasks, T) if LIBC.rand() % tasks == rank])


def written(path):
    if not path.exists():
        return set()
    data = path.read_bytes()
    return {at for at in range(0, len(data), T) if any(data[at : at + T])}


def observed(engine, count, *arguments, name):
    """The offsets in the order in which they were written."""
    order, before = [], set()
    for operations in range(1, count + 1):
        engine.good("-w -k -z -t", T, "-o f -O", f"stoneWallingWearOutIterations={operations}", *arguments)
        now = written(engine.path(name))
        order.append(now - before)
        before = now
        for file in engine.directory.iterdir():
            file.unlink()
    return order


@pytest.mark.parametrize("seed", [0, 42, 2**31 - 1])
def test_own_file_follows_the_oracle(iokernel, seed):
    block = 8 * T
    for rank in range(2):
        expected = own_file(seed, rank, block)
        got = observed(
            iokernel, 8, "-n", 2, "-F", "-b", block, "--random-offset-seed", seed, name=f"f.{rank:08d}"
        )
        assert got == [{offset} for offset in expected]


@pytest.mark.parametrize("seed", [1, 42])
def test_shared_file_follows_the_oracle(iokernel, seed):
    block, tasks = 4 * T, 3
    orders = [shared_file(seed, rank, tasks, block) for rank in range(tasks)]
    # every transfer of the segment belongs to exactly one task
    assert sorted(offset for order in orders for offset in order) == list(range(0, block * tasks, T))
    longest = max(map(len, orders))
    got = observed(iokernel, longest, "-n", tasks, "-b", block, "--random-offset-seed", seed, name="f")
    assert got == [{order[i] for order in orders if i < len(order)} for i in range(longest)]


def test_every_segment_repeats_the_order(iokernel):
    block = 4 * T
    first = own_file(5, 0, block)
    got = observed(iokernel, 8, "-F", "-b", block, "-s", 2, "--random-offset-seed", 5, name="f.00000000")
    assert got == [{offset} for offset in first] + [{offset + block} for offset in first]


def test_a_drawn_seed_is_reported_and_repeats_the_first_shuffle(iokernel):
    run = iokernel.good("-w -z -t", T, "-b", 8 * T)
    assert run.parameters["randomSeedGiven"] is False
    seed = run.parameters["randomSeed"]
    assert seed == run.results[0]["orderSeed"] and seed > 0
    run = iokernel.good("-w -t", T, "-b", 8 * T)
    assert run.parameters["randomSeed"] is None and run.results[0]["orderSeed"] is None
