"""Layers around one run of the real engine: what it is given, what is undone, how a layer fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from tiercel.errors import RunFailed
from tiercel.layers import Layer, Options, Place, View, merged
from tiercel.programs import Installation
from tiercel.results.raw import read_json
from tiercel.runs.execute import Equipment, execute
from tiercel.site.model import LayerChoice, Site, Stack
from tiercel.study.plan import Run
from tiercel.study.workloads import Workload

INSTALLED = Installation("subfolder", "1", {})


class Subfolder(Layer):
    """Shows the engine a folder below the storage's, and marks its processes by a variable."""

    name = "subfolder"

    def __init__(self, log: list[str]) -> None:
        self.log = log

    def find(self) -> Installation:
        return INSTALLED

    def check_options(self, options: Mapping[str, bool | int | float | str], site: Site) -> None:
        pass

    def unsupported(self, engine: str, workload: Workload, nodes: int, options: Options) -> str | None:
        return None

    @contextmanager
    def session(self, place: Place, installation: Installation) -> Iterator[View]:
        word = str(place.options["word"])
        if word == "broken":
            raise RunFailed("layer subfolder: its server does not start")
        self.log.append(f"on {word}")
        inner = place.data / word
        inner.mkdir()
        try:
            yield View(inner, {"LD_PRELOAD": f"/nowhere/{word}.so", "MARK": word}, ("env", f"SEEN={word}"))
            self.log.append(f"{sum(f.stat().st_size for f in inner.rglob('*') if f.is_file())} bytes")
        finally:
            self.log.append(f"off {word}")


def through(run: Run, *words: str) -> Run:
    """Return `run` on its storage behind one layer for each word, the first nearest to the program."""
    layers = tuple(LayerChoice(layer="subfolder", options={"word": word}) for word in words)
    stack = replace(run.configuration.stack, layers=layers, layer_versions=("1",) * len(words))
    return replace(run, configuration=replace(run.configuration, stack=stack))


def with_layer(equipment: Equipment, log: list[str]) -> Equipment:
    site = Site(site="s", processes_per_node=4)
    return replace(equipment, site=site, layers={"subfolder": (Subfolder(log), INSTALLED)})


def test_the_engine_works_where_the_layer_says(
    new_run: Callable[..., Run], equipment: Callable[..., Equipment], stack: Stack
) -> None:
    log: list[str] = []
    run = through(new_run(), "inner")
    outcome = execute(run, with_layer(equipment(), log))
    assert (outcome.status, outcome.reason) == ("ok", "")
    # 2 processes x 1 MiB; iokernel removes its files itself only when told to, so they are still there.
    assert log == ["on inner", "2097152 bytes", "off inner"]


def test_two_layers_stand_in_order(
    new_run: Callable[..., Run], equipment: Callable[..., Equipment], tmp_path: Path
) -> None:
    log: list[str] = []
    run = through(new_run(), "near", "far")
    held = equipment()
    assert execute(run, with_layer(held, log)).status == "ok"
    assert [said for said in log if said.startswith("o")] == ["on far", "on near", "off near", "off far"]
    argv = read_json(held.store.path(run.id) / "record.json")["steps"][0]["argv"]
    # What the near layer sets wins; libraries of both are there, the near one first.
    assert "MARK=near" in argv and "LD_PRELOAD=/nowhere/near.so:/nowhere/far.so" in argv
    assert argv.index("SEEN=near") < argv.index("SEEN=far")
    assert any("far/near" in word for word in argv)


def test_a_layer_that_does_not_start_is_a_failed_run(
    new_run: Callable[..., Run], equipment: Callable[..., Equipment], stack: Stack
) -> None:
    outcome = execute(through(new_run(), "broken"), with_layer(equipment(), []))
    assert (outcome.status, outcome.reason) == ("failed", "layer subfolder: its server does not start")
    assert list(stack.storage.scratch_path().iterdir()) == []  # nothing is left on the storage


def test_the_layers_are_part_of_the_identity(new_run: Callable[..., Run]) -> None:
    run = new_run()
    names = {run.id, through(run, "a").id, through(run, "b").id, through(run, "a", "b").id}
    assert len(names) == 4
    assert through(run, "a").configuration.stack.layer == "subfolder word=a"
    assert run.configuration.stack.layer == "none"


def test_merged_environments() -> None:
    assert merged({"A": "1", "LD_PRELOAD": "x"}, {"A": "2", "LD_PRELOAD": "y"}) == {
        "A": "2",
        "LD_PRELOAD": "y:x",
    }
    assert merged({}, {"LD_PRELOAD": "y"}) == {"LD_PRELOAD": "y"}
