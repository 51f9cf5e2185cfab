"""Who reads whose data."""

import ctypes

import pytest

SHAPE = "-n 4 -F -t 4k -b 16k -o f --per-rank"


def targets(run):
    return [rank["target"] for rank in run.results[-1]["perRank"]]


@pytest.mark.parametrize(
    "arguments, requested, effective",
    [
        ([], 0, 0),
        # all 4 tasks share the node: the next node is 4 tasks further, which is the task itself
        (["-C"], 4, 0),
        (["-C -O numTasksOnNode0=1"], 1, 1),
        (["-C -O numTasksOnNode0=2"], 2, 2),
        (["-C -Q 3 -O numTasksOnNode0=1"], 3, 3),
        (["-C -Q 2"], 8, 0),
        (["--task-offset 1"], 1, 1),
        (["-C --task-offset 7"], 7, 3),
    ],
)
def test_constant_offsets(iokernel, arguments, requested, effective):
    run = iokernel.good(SHAPE, "-w -r -R", *arguments)
    write, read = run.results
    assert read["taskOffset"]["requested"] == requested and read["taskOffset"]["effective"] == effective
    assert targets(run) == [(rank + effective) % 4 for rank in range(4)]
    assert [rank["target"] for rank in write["perRank"]] == [0, 1, 2, 3]
    assert write["taskOffset"]["effective"] == 0
    assert read["taskOffset"]["crossNodeFraction"] == 0  # one node
    assert read["verifyErrors"] == 0


def test_the_data_read_are_those_of_the_task_expected(iokernel):
    iokernel.good(SHAPE, "-w -k -G 1")
    path = iokernel.path("f.00000002")
    data = bytearray(path.read_bytes())
    data[0] ^= 1
    path.write_bytes(data)
    run = iokernel(SHAPE, "-r -k -R -G 1 --task-offset 1")
    # file 2 is read by rank 1, because 1 + 1 = 2
    assert run.status == 1 and run.document["error"]["rank"] == 1
    assert run.document["error"]["path"] == "f.00000002"


@pytest.mark.parametrize("per_node, fraction", [(1, 1.0), (2, 1.0), (4, 0.0)])
def test_the_next_node_is_as_many_tasks_further_as_a_node_holds(iokernel, per_node, fraction, monkeypatch):
    monkeypatch.setenv("IOR_FAKE_TASK_PER_NODES", str(per_node))
    run = iokernel.good(SHAPE, "-w -r -C")
    read = run.results[-1]
    assert read["nodes"] == len(read["hosts"]) == 4 // per_node and read["tasksPerNode"] == per_node
    assert read["taskOffset"]["effective"] == per_node % 4
    assert read["taskOffset"]["crossNodeFraction"] == fraction
    assert len(read["residency"]["perNode"]) == 4 // per_node


def test_an_offset_of_one_task_crosses_nodes_only_at_their_ends(iokernel, monkeypatch):
    monkeypatch.setenv("IOR_FAKE_TASK_PER_NODES", "2")
    run = iokernel.good(SHAPE, "-w -r --task-offset 1")
    # ranks 1 and 3 read from the other node, ranks 0 and 2 from their neighbour
    assert run.results[-1]["taskOffset"]["crossNodeFraction"] == 0.5


def test_random_offsets_are_those_of_ior(iokernel):
    libc = ctypes.CDLL(None)
    expected = []
    for rank in range(4):
        libc.srand(rank + 7)
        expected.append((rank + libc.rand() % 4) % 4)
    run = iokernel.good(SHAPE, "-w -r -R -Z -X 7")
    assert targets(run) == expected
    assert run.results[-1]["taskOffset"]["effective"] is None


def test_a_shuffle_reads_every_file_once(iokernel):
    libc = ctypes.CDLL(None)
    libc.srand(3)
    order = [0, 1, 2, 3]
    for i in range(4):
        other = i + libc.rand() % (4 - i)
        order[i], order[other] = order[other], order[i]
    run = iokernel.good(SHAPE, "-w -r -R -Z -Z -X 3")
    assert targets(run) == order and sorted(order) == [0, 1, 2, 3]
