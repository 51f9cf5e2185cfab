"""Would node-local caching of HDF5 files (layer `cachevol`) pay? From what the replays measured."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tiercel.advice.measured import Measured
from tiercel.advice.units import Unit
from tiercel.advice.ways import HOME
from tiercel.placement.recipe import Recipe
from tiercel.site.model import Site
from tiercel.units import format_latency

_SIGNATURE = b"\x89HDF\r\n\x1a\n"
#: The signature may lie behind a user block of so many bytes (HDF5 file format, II.A).
_PLACES = (0, 512, 1024, 2048, 4096)
#: Less than this share of the run is not worth a word.
_WORTH = 0.02


@dataclass(frozen=True)
class Hint:
    """One sentence on caching, with the seconds of a run that it could save at most."""

    sentence: str
    seconds: float


def caching_hints(site: Site, recipe: Recipe, found: Measured, units: Sequence[Unit]) -> Iterable[Hint]:
    """Yield what caching the program's HDF5 files could save: later reads of the same bytes, and writes."""
    files = [i for i, record in enumerate(recipe.records) if is_hdf5(Path(record.name))]
    trials = found.trials.get(HOME, [])
    if not files or not trials:
        return
    near = _nearer(site, found, units, files)
    read, again, opens = _reads(recipe)
    at_home = np.median([t.files for t in trials], axis=0)
    wall = float(np.median([t.wall for t in trials]))
    if near is None:
        return
    name, seconds = near
    share = {i: again[i] / read[i] for i in files if read.get(i)}
    reads = sum((at_home[i, 0] - seconds[i, 0]) * part for i, part in share.items())
    if reads > _WORTH * wall:
        most = max(opens.get(i, 1) for i in files)
        yield Hint(
            f"it reads the same bytes of {len([i for i in share if share[i] > 0])} HDF5 files more "
            f"than once (opened "
            f"up to {most} times): cached on {name} (`tiercel cache run -- PROGRAM`), the later "
            f"reads would save "
            f"up to {format_latency(reads)} of a run",
            float(reads),
        )
    writes = sum(float((at_home[i, [1, 3]] - seconds[i, [1, 3]]).sum()) for i in files)
    if writes > _WORTH * wall:
        yield Hint(
            f"writing its HDF5 files costs {format_latency(writes)} a run more than on {name}: staged there "
            "(`tiercel cache run -- PROGRAM`), they are written on while it computes",
            writes,
        )


def is_hdf5(path: Path) -> bool:
    """Return whether a file is HDF5, by its signature."""
    try:
        with path.open("rb") as file:
            for place in _PLACES:
                file.seek(place)
                if file.read(len(_SIGNATURE)) == _SIGNATURE:
                    return True
    except OSError:
        pass
    return False


def _nearer(
    site: Site, found: Measured, units: Sequence[Unit], files: Sequence[int]
) -> tuple[str, np.ndarray[tuple[int, ...], np.dtype[np.float64]]] | None:
    """Return the storage of this node on which the files' I/O took least, with the seconds of all files."""
    own = {u.name: u.storage for u in units}
    best = None
    for name, way in found.ways.items():
        storages = set(way.systems.values())
        if not found.trials.get(name) or not name.startswith("all on "):
            continue
        storage = name.removeprefix("all on ")
        if storage not in storages or site.storages[storage].shared or all(own[u] == storage for u in own):
            continue
        seconds = np.median([t.files for t in found.trials[name]], axis=0)
        if best is None or seconds[list(files)].sum() < best[1][list(files)].sum():
            best = (storage, seconds)
    return best


def _reads(recipe: Recipe) -> tuple[dict[int, int], dict[int, int], dict[int, int]]:
    """Return for each file the bytes read, those of them read before, and how often it was opened."""
    read: dict[int, int] = {}
    opens: dict[int, int] = {}
    for operations in recipe.streams:
        for o in operations:
            if o.kind == "R":
                read[o.file] = read.get(o.file, 0) + o.size
            elif o.kind == "O":
                opens[o.file] = opens.get(o.file, 0) + 1
    again = {i: max(0, count - recipe.records[i].largest) for i, count in read.items()}
    return read, again, opens
