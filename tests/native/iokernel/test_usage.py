"""Mistakes are answered by one line and status 2, before anything is written."""

import pytest

MISTAKES = {
    "size without digits": (["-t k"], "-t"),
    "negative size": (["-t -4k"], "-t"),
    "size too large for 64 bits": (["-b 99999999999t"], "-b"),
    "unknown suffix": (["-t 4q"], "-t"),
    "zero transfer": (["-t 0"], "-t"),
    "transfer not a multiple of 8": (["-t 12 -b 24"], "-t"),
    "block not a multiple of transfer": (["-t 4k -b 6k"], "-b"),
    "block smaller than transfer": (["-t 8k -b 4k"], "-b"),
    "no segments": (["-s 0"], "-s"),
    "segments beyond addressing": (["-b 1024t -t 1m -s 2000000000"], "-b"),
    "unknown api": (["-a NCMPI"], "-a"),
    "forked processes on another node": (["--on-node 1"], "--on-node"),
    "random without choice": (["-z -t 4k -b 4k"], "-z"),
    "random phase without choice": (["--phases w,rz -t 4k -b 4k"], "-z"),
    "collective POSIX": (["-c"], "-c"),
    "file view of POSIX": (["--mpiio.useFileView"], "--mpiio.useFileView"),
    "preallocated POSIX": (["-p"], "--mpiio.preallocate"),
    "directories for a shared file": (["-u"], "-u"),
    "both reorders": (["-C -Z -F"], "-Z"),
    "both reorders, other order": (["-Z -C -F"], "-C"),
    "reorder of a shuffled shared file": (["-C -z -t 4k"], "-C"),
    "offset without reorder": (["-Q 2"], "-Q"),
    "wear-out without stonewall": (["-O stoneWallingWearOut=1"], "-O stoneWallingWearOut"),
    "unknown directive": (["-O colour=blue"], "-O"),
    "directive without value": (["-O summaryFile"], "-O"),
    "text summary": (["-O summaryFormat=CSV"], "-O summaryFormat"),
    "summary in a missing folder": (["-O summaryFile=missing/s.json"], "summaryFile"),
    "unknown letter": (["-q"], "-q"),
    "unknown word": (["--colour"], "--colour"),
    "letter without value": (["-t"], "-t"),
    "stray argument": (["stray"], "stray"),
    "script": (["-f script"], "-f"),
    "phases of nothing": (["--phases", ""], "--phases"),
    "phases with a typo": (["--phases w,x"], "--phases"),
    "phases and -w": (["--phases w -w"], "--phases"),
    "queue depth 0": (["--queue-depth 0"], "--queue-depth"),
    "queue depth of words": (["--queue-depth deep"], "--queue-depth"),
    "no processes": (["-n 0"], "--processes"),
    "too many processes": (["-n 1000000"], "--processes"),
    "more tasks than processes": (["-n 2 -N 3"], "-N"),
    "unknown session": (["--session mine"], "--session"),
    "prepare a write": (["--prepare-only"], "--prepare-only"),
    "evict without read": (["--evict -w"], "--evict"),
    "check without seed": (["-R -r"], None),
    "fill of more than all": (["--max-bytes-fill 2"], "--max-bytes-fill"),
    "not a number": (["-D nan"], "-D"),
    "infinite": (["-D inf"], "-D"),
    "no interval": (["--timeseries-interval 0"], "--timeseries-interval"),
    "unaligned direct I/O": (["-B -t 520 -b 520"], "--posix.odirect"),
    "empty file name": (["-o", ""], "-o"),
    "line break in a value": (["-t", "4\nk"], "-t"),
    "md without items": (["md -d d"], "-n"),
    "md items that do not divide": (["md -n 10 -I 3"], "-n"),
    "md with both counts and own directories": (["md -n 10 -I 5 -u"], "-I"),
    "md tree too deep": (["md -n 10 -b 10 -z 20"], "-z"),
    "md too few items for the tree": (["md -n 3 -b 3 -z 3"], "-n"),
    "md no branches": (["md -n 3 -b 0 -z 1"], "-b"),
    "md shared file": (["md -n 3 -S"], "-S"),
    "md own timing": (["md -n 3 -t"], "-t"),
    "md times": (["md -n 3 -Z"], "-Z"),
    "md reads more than it writes": (["md -n 3 -e 10"], "-e"),
    "md checks nothing": (["md -n 3 -X"], "-X"),
    "md again for no time": (["md -n 3 --again soon"], "--again"),
    "md unknown api": (["md -n 3 -a MPIIO"], "-a"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_one_line_and_status_2(iokernel, name):
    arguments, option = MISTAKES[name]
    run = iokernel(*arguments)
    if option is None:  # "-R -r" reads only: without a seed nothing can be checked
        option = "-R"
    assert run.status == 2, run.stdout
    assert run.stdout == ""
    assert run.stderr.startswith(f"iokernel: {option}: ") and run.stderr.endswith("\n")
    assert run.stderr.count("\n") == 1
    assert list(iokernel.directory.iterdir()) == []


def test_version_is_printed_as_name_and_version(iokernel):
    name, version = iokernel("--version").stdout.split()
    assert name == "iokernel"
    release, digest = version.split("+src.")
    assert release.count(".") == 2 and len(digest) == 8 and int(digest, 16) >= 0


def test_capabilities_are_json(iokernel):
    document = iokernel("--capabilities").document
    assert document["mpi"] is False and document["apis"] == ["POSIX", "HDF5"]
    assert isinstance(document["io_uring"], bool) and isinstance(document["cachestat"], bool)
    assert document["maxOpenFiles"] > 0


def test_help_names_every_letter_of_the_table_in_the_readme(iokernel, source):
    text = iokernel("--help").stdout
    readme = (source / "README.md").read_text()
    letters = {line.split("`")[1].split()[0] for line in readme.splitlines() if line.startswith("| `-")}
    assert letters and {letter for letter in letters if letter not in text} == set()


def test_a_test_larger_than_the_file_system_is_refused(iokernel):
    run = iokernel("-w -t 1g -b 512t")
    assert run.status == 2 and run.stderr.startswith("iokernel: --max-bytes-fill: ")
    assert list(iokernel.directory.iterdir()) == []


def test_the_share_of_the_file_system_is_respected(iokernel):
    # the directory holds the test's own files at least, so a limit of 0 cannot be met
    run = iokernel("-w -t 4k -b 4k --max-bytes-fill 0")
    assert run.status == 2 and run.stderr.count("\n") == 1


def test_a_file_that_is_overwritten_pays_for_itself(iokernel):
    iokernel.good("-w -k -t 64k -b 1m -e -o f")
    # the same data again need no new space, so even a limit of 0 allows them
    iokernel.good("-w -k -E -t 64k -b 1m -o f --max-bytes-fill 0")
