"""What is written: nothing that storage could store once or compress, unless it is asked for."""

import zlib

import pytest

BLOCK = 4096


def blocks(path):
    content = path.read_bytes()
    return [content[at : at + BLOCK] for at in range(0, len(content), BLOCK)]


def compressed(content):
    return len(zlib.compress(content, 1)) / len(content)


def written(iokernel, words, files=("f",)):
    iokernel.good(f"-w -k -o f {words}")
    return [block for name in files for block in blocks(iokernel.path(name))]


@pytest.mark.parametrize(
    "words",
    [
        "-t 1m -b 4m",
        "-t 4k -b 1m",
        "-t 512 -b 1m",
        "-t 4k -b 1m -z",
        "-t 24 -b 240000",
        "-t 64k -b 1m --queue-depth 4",
        "-t 1m -b 4m -l i",
        "-t 1m -b 4m -l random",
        "-t 1m -b 4m -G 5",
    ],
)
def test_no_block_repeats_and_none_compresses(iokernel, words):
    found = written(iokernel, words)
    assert len(set(found)) == len(found)
    # In random order two blocks may start close to each other in the buffer, within zlib's window.
    assert compressed(b"".join(found)) > (0.8 if "-z" in words else 0.99)


def test_files_of_processes_segments_and_runs_differ(iokernel):
    names = ("f.00000000", "f.00000001")
    first = written(iokernel, "-n 2 -F -t 64k -b 256k -s 3", names)
    second = written(iokernel, "-n 2 -F -t 64k -b 256k -s 3", names)  # the same command once more
    assert len({*first, *second}) == len(first) + len(second)
    shared = written(iokernel, "-n 3 -t 64k -b 256k -s 2")
    assert len({*shared}) == len(shared) == 3 * 2 * 64


def test_what_is_written_again_differs_from_what_was_there(iokernel):
    """Write after write: storage that compares with the old block must store the new one."""
    iokernel.good("--phases w -k -t 64k -b 1m -o g -l t")
    once = iokernel.good("--phases w,w -k -t 64k -b 1m -o f").parameters["dataSeed"]
    assert once > 0
    after_two = blocks(iokernel.path("f"))
    assert len(set(after_two)) == len(after_two)


def test_a_constant_buffer_can_be_had(iokernel):
    """IOR's default (-l timestamp): 64 KiB are 16 blocks, written 16 times."""
    found = written(iokernel, "-t 64k -b 1m -l timestamp")
    assert len(set(found)) == 16 and len(found) == 256


@pytest.mark.parametrize("mode", ["", "-l random"])
def test_how_far_data_compress_and_repeat(iokernel, mode):
    found = written(iokernel, f"-t 1m -b 16m --compressibility 0.75 --dedup 0.5 {mode}".strip())
    assert 0.24 < compressed(b"".join(found[:2048])) < 0.29  # a quarter is random, and headers
    assert all(block[1024:] == bytes(3072) for block in found)
    # 4096 blocks: half are their own, the other half is of 256 places in the buffer.
    assert 1900 <= len(set(found)) <= 2450
    run = iokernel.good("-w -t 4k -b 8k -o f --compressibility 0.75 --dedup 0.5")
    assert (run.parameters["compressibility"], run.parameters["dedup"]) == (0.75, 0.5)
    assert run.parameters["dataPattern"] == "incompressible"


def test_what_is_checked_is_neither(iokernel):
    for words, option in (("--dedup 0.5 -G 3", "--dedup"), ("--compressibility 1 -W", "--compressibility")):
        run = iokernel(f"-w -t 4k -b 8k -o f {words}")
        assert run.status == 2 and option in run.stderr
    for words in ("--dedup 1.5", "--compressibility x", "-l zeros"):
        assert iokernel(f"-w -t 4k -b 8k -o f {words}").status == 2
    assert iokernel.good("-w -r -R -W -t 4k -b 64k -o f").results[1]["verifyErrors"] == 0
