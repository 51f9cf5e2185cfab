"""A trial puts files where a way has them, as a plan would, and brings nothing of the program's into it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tiercel.advice.trial import Bench
from tiercel.advice.units import Unit
from tiercel.advice.ways import Way
from tiercel.placement.compile import compile_trace
from tiercel.placement.recipe import Recipe, common_folder
from tiercel.programs import program
from tiercel.site.model import Site, Storage
from tiercel.traces import open_trace

needs_replay = pytest.mark.skipif(
    program("tiercel-replay") is None, reason="tiercel-replay is not built (make setup builds it)"
)

PROGRAM = """\
7 1700000010.000000 openat(AT_FDCWD, "/d/in/a", O_RDONLY) = 3</d/in/a> <0.000010>
7 1700000010.001000 read(3</d/in/a>, ""..., 100) = 50 <0.000010>
7 1700000010.002000 openat(AT_FDCWD, "/d/in/sub/b", O_RDONLY) = 4</d/in/sub/b> <0.000010>
7 1700000010.003000 read(4</d/in/sub/b>, ""..., 100) = 60 <0.000010>
7 1700000010.004000 openat(AT_FDCWD, "/d/conf", O_RDONLY) = 5</d/conf> <0.000010>
7 1700000010.005000 read(5</d/conf>, ""..., 100) = 70 <0.000010>
7 1700000010.006000 openat(AT_FDCWD, "/d/in/new", O_WRONLY|O_CREAT, 0644) = 6</d/in/new> <0.000010>
7 1700000010.007000 write(6</d/in/new>, ""..., 80) = 80 <0.000010>
"""


def bench(tmp_path: Path) -> tuple[Bench, Path]:
    """Return a bench on storages disk and fast, and where its replays leave word of links and files."""
    trace = tmp_path / "t.strace"
    trace.write_text(PROGRAM)
    recipe: Recipe = compile_trace(open_trace(trace, cache=tmp_path / "cache"))
    recipe.bases = (common_folder(recipe.files),)
    units = [
        Unit("/d/in", Path("/d/in"), True, ("/d/in/a", "/d/in/new"), "disk", inputs=("/d/in/a",),
             results=("/d/in/new",), size=130, bytes_before=50, takes=("/d/in/sub",), changed=True),
        Unit("/d/in/sub", Path("/d/in/sub"), True, ("/d/in/sub/b",), "disk", inputs=("/d/in/sub/b",),
             size=60),
        Unit("/d/*", Path("/d"), False, ("/d/conf",), "disk", inputs=("/d/conf",), size=70),
    ]  # fmt: skip
    storages = {
        name: Storage(type="x", mount="/", scratch=str(tmp_path / name), medium="disk")
        for name in ("disk", "fast")
    }
    word, real = tmp_path / "word", program("tiercel-replay")
    spy = tmp_path / "spy"
    places = " ".join(f"'{tmp_path / name}'" for name in storages)
    spy.write_text(
        f"#!/bin/sh\n'{real}' \"$@\" || exit\n"
        f"find {places} \\( -type l -o -type f \\) -printf '%y %p\\n' > '{word}'\n"
    )
    spy.chmod(0o755)
    (tmp_path / "own").mkdir()
    return Bench(
        Site(site="here", storages=storages), recipe, units, spy, tmp_path / "own", think=False
    ), word


def seen(word: Path) -> set[tuple[str, str, str]]:
    """Return (link or file, storage, name) of what lay there when a replay had ended."""
    found = set()
    for line in word.read_text().splitlines():
        kind, path = line.split(" ", 1)
        storage, _, below = path.removeprefix(str(word.parent) + "/").partition("/")
        if "/data/" in below:
            found.add((kind, storage, below.partition("/data/")[2]))
    return {item for item in found if not item[2].startswith("tiercel-")}


@needs_replay
def test_what_moves_is_reached_through_links_where_it_was(tmp_path: Path) -> None:
    """A folder by one link, the one in it by the same; a single file by its own."""
    rig, word = bench(tmp_path)
    trial = rig.try_(Way("all on fast", {u.name: "fast" for u in rig.units}), 60.0, copies=True)
    assert seen(word) == {
        ("l", "disk", "in"), ("l", "disk", "conf"),
        ("f", "fast", "in/a"), ("f", "fast", "in/new"), ("f", "fast", "in/sub/b"), ("f", "fast", "conf"),
    }  # fmt: skip
    assert trial.copy_in > 0 and trial.copy_out > 0
    assert [p for name in ("disk", "fast") for p in (tmp_path / name).rglob("*") if p.is_file()] == []


@needs_replay
def test_a_folder_in_one_that_stays_has_its_own_link(tmp_path: Path) -> None:
    rig, word = bench(tmp_path)
    rig.try_(Way("mixed", {"/d/in": "disk", "/d/in/sub": "fast", "/d/*": "disk"}), 60.0)
    assert seen(word) == {
        ("l", "disk", "in/sub"), ("f", "disk", "in/a"), ("f", "disk", "in/new"), ("f", "disk", "conf"),
        ("f", "fast", "in/sub/b"),
    }  # fmt: skip
