"""YAML of the user: every mistake is one line that names file, key and what is allowed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiercel.documents import parse, read_yaml
from tiercel.errors import UserError, one_line
from tiercel.study.model import Study


def study(**workload: Any) -> dict[str, Any]:
    entry = {"operation": "write", "segments": 3, **workload}
    return {"study": "x", "title": "t", "experiments": {"scaling": {"workloads": {"w": entry}}}}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (
            study(transfersize="1m"),
            ["workloads.w.transfersize", "unknown key", "did you mean transfer_size?"],
        ),
        (study(transfer_size="1MB"), ["w.transfer_size", "ambiguous", "1MiB"]),
        (study(api="posx"), ["w.api", "'posix', 'mpiio' or 'hdf5'", "'posx'"]),
        (study(another_client=True), ["another_client is of a read of what another program start wrote"]),
        (study(operation="reed"), ["w: operation 'reed' is unknown", "did you mean read"]),
        (study(operation="metadata"), ["w.segments", "unknown key", "items_per_process"]),
        (study(operation="read", access="WO"), ["WO is no read access", "RO, RAW, RAR"]),
        (study(data_per_node="1g"), ["exactly one of", "segments, data_per_node"]),
        (study(block_size="1000"), ["block_size must be a multiple"]),
        (study(collective=True), ["collective needs api: mpiio or hdf5"]),
        (study(api="hdf5", file_view=True), ["file_view needs api: mpiio"]),
        (study(api="hdf5", preallocate=True), ["preallocate needs api: mpiio"]),
        (study(api="mpiio", collective=True, pattern="random"), ["random excludes collective"]),
        (study(layout="shared", unique_directories=True), ["unique_directories needs"]),
        (study(segments=0), ["w.segments", "greater than or equal to 1"]),
        ({**study(), "sed": 3}, ["sed: unknown key", "did you mean seed?"]),
        ({**study(), "repetitions": {"minimum": 5, "maximum": 3}}, ["maximum must not be less than minimum"]),
        (
            {**study(), "repetitions": 3},
            ["repetitions: must be a mapping", "minimum, maximum, target", "given: 3"],
        ),
        ({**study(), "repetitions": {"minimun": 5}}, ["repetitions.minimun", "did you mean minimum?"]),
        ({**study(), "study": "Quick Study"}, ["'Quick Study' must be lower-case"]),
        ({"title": "t"}, ["study: is required (and 1 more: experiments)"]),
    ],
)
def test_mistakes_are_named(content: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(UserError) as caught:
        parse(Study, content, "file.yaml")
    message = str(caught.value)
    assert message.startswith("file.yaml: ")
    assert "\n" not in message
    for word in words:
        assert word in message


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: [1", ["not valid YAML"]),
        ("a: 1\nb: 2\na: 3\n", [":3: not valid YAML", "key 'a' is written twice"]),
        ("- 1\n", ["must be a mapping"]),
        ("", ["must be a mapping"]),
        ("a: !!python/object/apply:os.system [true]\n", ["not valid YAML"]),
        ("? [1, 2]\n: 3\n", ["a key must be a word"]),
        # ten million million values
        (
            "a: &a0 [1]\n"
            + "".join(f"b{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 14)),
            ["more than 1000000 values"],
        ),
    ],
)
def test_broken_yaml(tmp_path: Path, text: str, words: list[str]) -> None:
    path = tmp_path / "f.yaml"
    path.write_text(text)
    with pytest.raises(UserError) as caught:
        read_yaml(path)
    assert str(path) in str(caught.value)
    for word in words:
        assert word in str(caught.value)


def test_merge_keys_may_be_overridden(tmp_path: Path) -> None:
    path = tmp_path / "f.yaml"
    path.write_text("a: &a {x: 1, y: {z: 2}}\nb: {<<: *a, x: 3}\n")
    assert read_yaml(path)["b"] == {"x": 3, "y": {"z": 2}}


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file"):
        read_yaml(tmp_path / "absent.yaml")


@given(st.binary(max_size=300))
def test_any_bytes_give_a_mapping_or_one_line(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    path = tmp_path_factory.mktemp("fuzz") / "f.yaml"
    path.write_bytes(content)
    try:
        assert isinstance(read_yaml(path), dict)
    except UserError as error:
        assert "\n" not in str(error)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=12), inner, max_size=3),
    max_leaves=6,
)


@given(st.sampled_from([*sorted(study()), "repetitions", "engines", "stacks", "seed"]), values)
def test_any_value_is_taken_or_refused_in_one_line(key: str, value: Any) -> None:
    try:
        parse(Study, {**study(), key: value}, "f.yaml")
    except UserError as error:
        assert str(error).startswith("f.yaml: ")
        assert "\n" not in str(error)


def test_the_studies_of_the_project_are_valid(checkout: Path) -> None:
    for path in (checkout / "workflows" / "studies").glob("*.yaml"):
        assert parse(Study, read_yaml(path), str(path)).study == path.stem


def test_one_line_escapes_what_is_not_printable() -> None:
    assert one_line("a\nb\x1b[31m") == "a\\nb\\x1b[31m"
