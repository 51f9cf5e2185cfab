"""mdtest: command lines, its table in three versions, failures that look like success."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiercel.engines import Installation, Task, probing
from tiercel.engines.mdtest import OPERATIONS, Mdtest, parse_mdtest_text
from tiercel.errors import RunFailed

from .conftest import RECORDED, data, metadata

VERSIONS = {"3.3": "3.3.0", "4.0": "4.0.0", "main": "4.1.0+dev"}
ALL = ["create", "stat", "read", "rename", "remove"]


def recorded(folder: str, case: str) -> str:
    return (RECORDED / f"mdtest-{folder}" / f"{case}.txt").read_text(errors="replace")


@pytest.mark.parametrize(
    ("version", "keys", "expected"),
    [
        ("3.3.0", {}, "-n 20 -i 1 -d /d -C -T -E -r"),
        ("4.0.0", {"files": False}, "-n 20 -i 1 -d /d -C -T -E -r -D"),
        ("4.0.0", {"directories": False, "fsync": True}, "-n 20 -i 1 -d /d -C -T -E -r -F -y"),
        ("4.0.0", {"phases": ["create", "stat"]}, "-n 20 -i 1 -d /d -C -T"),
        (
            "4.0.0",
            {"unique_directories": True, "write_bytes": 4096, "read_bytes": 4096},
            "-n 20 -i 1 -d /d -C -T -E -r -u -w 4096 -e 4096",
        ),
        # A distance of all processes is none.
        ("4.0.0", {"reorder": 1}, "-n 20 -i 1 -d /d -C -T -E -r -N 1"),
        ("4.0.0", {"reorder": 2}, "-n 20 -i 1 -d /d -C -T -E -r"),
        # 4.0 renames only when no phase is chosen; since 4.1 -U chooses it.
        ("4.0.0", {"phases": ALL, "files": False}, "-n 20 -i 1 -d /d -D"),
        ("4.1.0+dev", {"phases": ALL, "files": False}, "-n 20 -i 1 -d /d -C -T -E -U -r -D"),
    ],
)
def test_command(task: Callable[..., Task], version: str, keys: Any, expected: str) -> None:
    installation = Installation("mdtest", version, {"mdtest": Path("mdtest")})
    (step,) = Mdtest().steps(task(metadata(**keys)), installation)
    assert (step.name, " ".join(step.argv)) == ("metadata", f"mdtest {expected}")


def test_nodes_are_strided_over(task: Callable[..., Task]) -> None:
    installation = Installation("mdtest", "4.0.0", {"mdtest": Path("mdtest")})
    (step,) = Mdtest().steps(task(metadata(), nodes=2), installation)
    assert step.argv[-2:] == ("-N", "2")


def test_a_path_that_it_would_take_for_several(task: Callable[..., Task]) -> None:
    made = task(metadata())
    odd = Task(made.workload, 1, 2, Path("/d@home"), made.output, 7, "mpiexec")
    with pytest.raises(RunFailed, match="several paths"):
        Mdtest().steps(odd, Installation("mdtest", "4.0.0", {"mdtest": Path("mdtest")}))


@pytest.mark.parametrize(
    ("version", "keys", "reason"),
    [
        ("3.3.0", {"phases": ALL, "files": False}, "before 4.0 does not rename"),
        ("4.0.0", {"phases": ["create", "rename"], "files": False}, "no option to choose it"),
        ("4.0.0", {"phases": ALL, "files": False}, None),
        ("4.1.0+dev", {"phases": ["create", "rename"], "files": False}, None),
        ("4.1.0+dev", {"phases": ALL}, "folders only"),
        ("4.1.0+dev", {"phases": ALL, "files": False, "items_per_process": 1}, "two items"),
        ("3.3.0", {}, None),
    ],
)
def test_what_it_cannot_do(
    version: str, keys: Any, reason: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Mdtest, "find", lambda self: Installation("mdtest", version, {}))
    answer = Mdtest().unsupported(metadata(**keys), 1)
    assert answer is None if reason is None else reason in (answer or "")


def test_data_is_not_its_work() -> None:
    assert Mdtest().unsupported(data(operation="write"), 1)


#: Tasks and items in all, counted from the command lines: unique_n2 is 2 tasks times -n 20. tree_n2 has
#: -I 3 in each of the 7 folders of a tree of depth 2 with 2 branches, so 21 a task.
CASES = {
    "create_only_n2": (2, 40), "dirs_only_n2": (2, 40), "files_only_n2": (2, 40), "shared_bytes_n2": (2, 40),
    "shared_n1": (1, 20), "shared_n2": (2, 40), "ratetime_n2": (2, 40), "tree_n2": (2, 42),
    "unique_bytes_n2": (2, 40), "unique_n1": (1, 20), "unique_n2": (2, 40),
}  # fmt: skip


@pytest.mark.parametrize("folder", VERSIONS)
@pytest.mark.parametrize("case", CASES)
def test_recorded_output(folder: str, case: str) -> None:
    log = parse_mdtest_text(recorded(folder, case))
    assert (log.version, log.problems, (log.tasks, log.items)) == (VERSIONS[folder], [], CASES[case])
    assert log.iterations == (1 if case == "tree_n2" else 2)
    done = {name for name, rate in log.rates.items() if rate}
    if case == "create_only_n2":
        assert done == {"file-create", "tree-create"}
    elif case == "dirs_only_n2":
        assert "file-create" not in done and "directory-create" in done
    elif case == "files_only_n2":
        assert "directory-create" not in done and "file-read" in done
    else:
        # 3.3 does not rename; the others do when no phase is chosen.
        assert done == set(OPERATIONS.values()) - ({"directory-rename"} if folder == "3.3" else set())


def test_the_slowest_process_counts() -> None:
    """mdtest-3.3/tree_n2: Directory creation 322303.394 for the fastest, 318993.802 for the slowest."""
    log = parse_mdtest_text(recorded("3.3", "tree_n2"))
    assert log.rates["directory-create"] == 318993.802


def test_times_instead_of_rates_are_no_result() -> None:
    assert "no table of rates" in parse_mdtest_text(recorded("4.0", "time_n2")).problems


@pytest.mark.parametrize("folder", VERSIONS)
@pytest.mark.parametrize("case", ["err_missing_dir_n2", "err_bad_option"])
def test_failures_are_problems(folder: str, case: str) -> None:
    assert parse_mdtest_text(recorded(folder, case)).problems


def test_a_failed_rename_is_a_problem() -> None:
    """mdtest-main/rename_only_n1 ends with exit code 0 and a rate, having renamed nothing."""
    assert "rename() of file" in parse_mdtest_text(recorded("main", "rename_only_n1")).problems[0]
    assert parse_mdtest_text(recorded("main", "rename_n2")).problems == []


WHOLE = [recorded(v, case) for v in VERSIONS for case in ("shared_n2", "tree_n2", "ratetime_n2")]


@given(st.data())
def test_truncation_never_gives_a_wrong_number(source: st.DataObject) -> None:
    text = source.draw(st.sampled_from(WHOLE))
    cut = source.draw(st.integers(0, len(text) - 1))
    whole, part = parse_mdtest_text(text), parse_mdtest_text(text[:cut])
    assert part.rates.items() <= whole.rates.items()
    if part.rates != whole.rates:
        assert part.problems


def finished(task: Callable[..., Task], text: str, folder: Path, **keys: Any) -> Any:
    (folder / "metadata.stdout").write_text(text)
    return Mdtest().parse(task(metadata(**keys)), folder)


def test_a_finished_run(task: Callable[..., Task], tmp_path: Path) -> None:
    """tree_n2 is one iteration: take it for a flat run of 21 items a process."""
    found = finished(task, recorded("3.3", "tree_n2"), tmp_path, items_per_process=21)
    assert [(m.operation, m.role) for m in found[:2]] == [
        ("tree-create", "setup"), ("directory-create", "measured"),
    ]  # fmt: skip
    assert (found[-1].operation, found[-1].role, found[-1].phase) == ("tree-remove", "setup", 8)
    assert found[1].operations == 42
    assert found[1].total_time == pytest.approx(42 / 318993.802)


@pytest.mark.parametrize(
    ("folder", "case", "keys", "says"),
    [
        ("4.0", "create_only_n2", {"directories": False}, "no result of file-stat, file-read, file-remove"),
        ("4.0", "shared_n1", {}, "1 tasks and 20 items, not 2 and 40"),
        ("4.0", "err_missing_dir_n2", {}, "Unable to create"),
        ("3.3", "err_bad_option", {}, "no output of mdtest: Error invalid argument"),
    ],
)
def test_what_is_no_whole_result_fails(
    folder: str, case: str, keys: Any, says: str, task: Callable[..., Task], tmp_path: Path
) -> None:
    with pytest.raises(RunFailed, match=says):
        finished(task, recorded(folder, case), tmp_path, **keys)


def test_a_run_without_output_fails(task: Callable[..., Task], tmp_path: Path) -> None:
    with pytest.raises(RunFailed, match="wrote no result"):
        Mdtest().parse(task(metadata()), tmp_path)


def test_nothing_of_that_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probing, "program", lambda name: None)
    engine = Mdtest()
    assert engine.find() is None
    assert engine.note == "no program mdtest beside Python or on PATH"


@pytest.mark.parametrize(
    "keys",
    [
        {},
        {"unique_directories": True, "write_bytes": 4096, "read_bytes": 4096},
        {"directories": False, "phases": ["create", "stat"], "fsync": True},
        {"files": False, "reorder": 1},
    ],
)
def test_it_does_what_iokernel_does(keys: Any, really_run: Callable[..., Any]) -> None:
    workload = metadata(**keys)
    theirs, ours = really_run("mdtest", workload), really_run("iokernel", workload)
    assert (theirs.reason, ours.reason) == ("", "")
    assert {(m.operation, m.role, m.operations) for m in theirs.measurements} == {
        (m.operation, m.role, m.operations) for m in ours.measurements
    }
