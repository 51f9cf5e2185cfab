"""Sides made by hand: rows of observations, written as a side's tables and read as the command reads them."""

import pandas as pd

from tests.statistics.rows import rows
from tiercel.compare.answer import compare_sides
from tiercel.compare.places import find_place, is_place
from tiercel.compare.side import make_side, names_of
from tiercel.compare.spelling import read_side
from tiercel.compare.tables import read_tables
from tiercel.results.schema import RUNS
from tiercel.results.validity import FLAGS

INVALID = [code for code, flag in FLAGS.items() if flag.severity == "invalid"]

#: 1 November 2026, 00:00 UTC, and a day.
NOVEMBER, DAY = 1_793_491_200.0, 86_400.0

#: The median is 100; none is further from it than 2 %.
AROUND_100 = (98.0, 99.0, 100.0, 101.0, 102.0)

_OK = {"status": "ok", "reason": "", "duration": 1.0}


def pair(values=AROUND_100, factor=1.0, began=NOVEMBER, **words):
    """Return rows of both halves of an A/A pair, `factor` times `values`; one run a minute from `began`."""
    scaled = [v * factor for v in values]
    made = rows(scaled, **words) + rows(scaled, twin="b", **words)
    made["began"] = [began + 60.0 * i for i in range(len(made))]
    made["configuration"] = made["configuration"] + words.get("version", "")
    return made


def later(*args, **words):
    """Return the same, measured a day later."""
    return pair(*args, **{"began": NOVEMBER + DAY} | words)


def together(tables):
    """Return tables one below the other."""
    return pd.concat(list(tables), ignore_index=True)


def runs_of(observations, **words):
    """Return the runs that gave the observations."""
    runs = observations.drop_duplicates("run").assign(**(_OK | words))
    runs["started"] = runs["began"]
    return runs.reindex(columns=[c.name for c in RUNS])


def failed(observations, reason="no space left"):
    """Return the rows' runs as failed ones."""
    return runs_of(observations, status="failed", reason=reason)


def write(folder, observations, runs=None, **context):
    """Write a side's tables; `context` holds columns that all rows share."""
    folder.mkdir(parents=True, exist_ok=True)
    observations = pd.DataFrame(observations).assign(**context)
    observations.to_parquet(folder / "observations.parquet")
    runs = runs_of(observations) if runs is None else runs
    runs.assign(**context).to_parquet(folder / "runs.parquet")
    return folder


def read(*texts, root):
    """Return the sides that these words say, as the command reads them."""
    scratch = root / "scratch"
    scratch.mkdir(exist_ok=True)
    spellings = [read_side(str(text), lambda where: is_place(where, root)) for text in texts]
    found = []
    for name, spelling in zip(names_of(spellings), spellings, strict=True):
        place = find_place(spelling.where, root, lambda: ["lassen"], scratch)
        found.append(make_side(name, spelling, place, read_tables(place.folder, place.source)))
    return found


def compared(*texts, root, mapped=None, margin=0.0):
    return compare_sides(read(*texts, root=root), INVALID, mapped or {}, margin)


def of_two(root, base, other, **more):
    """Compare two tables of observations."""
    write(root / "results" / "one", base)
    write(root / "results" / "two", other)
    return compared("one", "two", root=root, **more)
