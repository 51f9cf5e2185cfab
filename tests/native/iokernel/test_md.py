"""The metadata personality: how many items each phase touches, and that nothing is left behind."""

import pytest

ALL = [
    "tree-create",
    "directory-create",
    "directory-stat",
    "directory-rename",
    "directory-remove",
    "file-create",
    "file-stat",
    "file-read",
    "file-remove",
    "tree-remove",
]
FILES = [key for key in ALL if not key.startswith("directory")]


def counts(run):
    return {result["key"]: result["items"] for result in run.results}


def test_default_phases_touch_every_item_once(iokernel):
    run = iokernel.good("md --processes 3 -n 10 -d d")
    # 3 tasks x 10 items; the tree is its root alone
    assert counts(run) == {key: 1 if key.startswith("tree") else 30 for key in ALL}
    for result in run.results:
        assert result["latency"]["count"] == sum(result["timeSeries"]["operations"]) == result["items"]
        assert result["rate"] == pytest.approx(result["items"] / result["time"])
    assert [line["key"] for line in run.document["summary"]] == ALL
    assert list(iokernel.directory.iterdir()) == []


@pytest.mark.parametrize(
    "shape, items, directories",
    [
        # depth 2, 3 branches: 1 + 3 + 9 = 13 directories; 4 items in each
        (["-I", 4, "-z", 2, "-b", 3], 52, 13),
        # leaves only: 9 of them
        (["-I", 4, "-z", 2, "-b", 3, "-L"], 36, 13),
        # 60 items over 13 directories: 4 in each, as mdtest rounds down
        (["-n", 60, "-z", 2, "-b", 3], 52, 13),
        (["-n", 60, "-z", 2, "-b", 3, "-L"], 54, 13),
        # one branch: a chain of 4 directories
        (["-n", 8, "-z", 3], 8, 4),
        (["-n", 8, "-z", 3, "-L"], 8, 4),
        # 12 items, 4 per directory: 3 test directories, each with a tree of its own
        (["-n", 12, "-I", 4], 12, 3),
    ],
)
@pytest.mark.parametrize("stride", [0, 1])
@pytest.mark.parametrize("unique", [False, True])
def test_trees(iokernel, shape, items, directories, stride, unique):
    if unique and "-n" in shape and "-I" in shape:
        pytest.skip("mdtest refuses this, and so do we")
    run = iokernel.good(
        "md --processes 2 -d d -w 20 -e 20 -X -N", stride, "--rename", *shape, *(["-u"] if unique else [])
    )
    for key, count in counts(run).items():
        assert count == (directories * (2 if unique else 1) if key.startswith("tree") else 2 * items), key
    assert "file-rename" in counts(run)
    assert run.parameters["items"] == items
    assert list(iokernel.directory.iterdir()) == []


def test_phases_can_be_spread_over_runs(iokernel):
    shape = "md --processes 2 -n 6 -d d -F -z 1 -b 2 -w 100 -e 100 -G 5"
    assert list(counts(iokernel.good(shape, "-C"))) == ["tree-create", "file-create"]
    # 2 tasks x 3 directories x 2 items, named as mdtest names them
    names = sorted(p.relative_to(iokernel.directory).as_posix() for p in iokernel.directory.rglob("file.*"))
    assert names == sorted(
        f"d/test-dir.0-0/mdtest_tree.0/{folder}file.mdtest.{task}.{number}"
        for task in range(2)
        for number, folder in enumerate(["", "", *["mdtest_tree.1/"] * 2, *["mdtest_tree.2/"] * 2])
    )
    assert all(p.stat().st_size == 100 for p in iokernel.directory.rglob("file.*"))
    assert counts(iokernel.good(shape, "-T")) == {"file-stat": 12}
    assert counts(iokernel.good(shape, "-E -X -N 1")) == {"file-read": 12}
    again = iokernel(shape, "-C")
    assert again.status == 2 and "is there already" in again.stderr and again.stderr.count("\n") == 1
    assert counts(iokernel.good(shape, "-r")) == {"file-remove": 12, "tree-remove": 3}
    assert list(iokernel.path("d").iterdir()) == []


def test_items_of_other_tasks_are_read_with_a_stride(iokernel):
    shape = "md --processes 3 -n 2 -d d -F -w 8 -e 8 -G 1"
    iokernel.good(shape, "-C")
    victim = next(iokernel.directory.rglob("file.mdtest.2.0"))
    victim.write_bytes(b"wrongful")
    run = iokernel(shape, "-E -X -N 1")
    # the read phase works two strides further: the file of task 2 is read by rank 0
    assert run.status == 1 and run.document["error"]["rank"] == 0
    assert run.results[0]["verifyErrors"] == 1


def test_directories_or_files_only(iokernel):
    assert list(counts(iokernel.good("md -n 3 -d d -F"))) == FILES
    assert list(counts(iokernel.good("md -n 3 -d d -D"))) == [k for k in ALL if not k.startswith("file")]
    # mdtest renames nothing when there is only one item
    assert "directory-rename" not in counts(iokernel.good("md -n 1 -d d -D"))


def test_random_order_and_iterations(iokernel):
    run = iokernel.good("md --processes 2 -n 20 -d d -R --random-seed 3 -i 2")
    assert [(r["iteration"], r["key"]) for r in run.results] == [(i, key) for i in range(2) for key in ALL]
    assert {r["items"] for r in run.results if r["key"] == "file-stat"} == {40}
    assert run.parameters["randomSeed"] == 3


def test_stonewall_of_file_creation_levels_all_tasks(iokernel):
    run = iokernel.good("md --processes 3 -n 100000 -d d -F -W 0.02 -R")
    by_key = {result["key"]: result for result in run.results}
    wall = by_key["file-create"]["stonewall"]
    per_task = wall["itemsMaxAtWall"]
    assert wall["hit"] is True and per_task < 100000
    for key in ("file-create", "file-stat", "file-read", "file-remove"):
        assert by_key[key]["items"] == 3 * per_task
        assert by_key[key]["itemsPerTaskMin"] == by_key[key]["itemsPerTaskMax"] == per_task
    assert list(iokernel.directory.iterdir()) == []


def test_a_folder_that_was_there_stays(iokernel):
    iokernel.path("d").mkdir()
    iokernel.path("d/precious").write_text("x")
    iokernel.good("md -n 3 -d d")
    assert [p.name for p in iokernel.path("d").iterdir()] == ["precious"]


def test_missing_items_are_a_failure(iokernel):
    run = iokernel("md -n 3 -d d -T -F")
    assert run.status == 1
    error = run.document["error"]
    assert (error["errno"], error["phase"], error["operation"]) == (2, "file-stat", "stat")


def test_failed_removal_removes_nothing_else(iokernel):
    shape = "md -n 3 -d d -F"
    iokernel.good(shape, "-C")
    tree = iokernel.path("d/test-dir.0-0/mdtest_tree.0")
    (tree / "precious").write_text("x")
    run = iokernel(shape, "-r")
    assert run.status == 1 and run.document["error"]["phase"] == "tree-remove"
    assert [p.name for p in tree.iterdir()] == ["precious"]


def test_again_does_over_what_leaves_things_as_they_were(iokernel):
    run = iokernel.good("md --processes 2 -n 8 -d d -w 20 -e 20 -X --rename --again 0.02")
    once = ("create", "remove")
    for result in run.results:
        if result["key"].startswith("tree"):
            continue
        if result["key"].endswith(once):
            assert result["items"] == 16, result["key"]
        else:
            # whole passes of 2 tasks over 8 items, until 0.02 s are over
            assert result["items"] >= 16 and result["items"] % 8 == 0, result["key"]
            assert result["time"] >= 0.02, result["key"]
        assert result["latency"]["count"] == sum(result["timeSeries"]["operations"]) == result["items"]
        assert result["rate"] == pytest.approx(result["items"] / result["time"])
    reads = next(r for r in run.results if r["key"] == "file-read")
    assert reads["bytesMoved"] == 20 * reads["items"] and reads["verifyErrors"] == 0
    # Renamed again and again, every item has its name: all are found and removed.
    assert list(iokernel.directory.iterdir()) == []
