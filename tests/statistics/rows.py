"""Rows of observations for tests: every column of the schema, missing but for what a test names."""

import pandas as pd

from tiercel.results.schema import OBSERVATIONS

_KINDS = {"list": "object", "string": "str"}
_DEFAULT = {
    "origin": "measured",
    "site": "test",
    "study": "quick",
    "experiment": "scaling",
    "workload": "write",
    "operation": "write",
    "role": "measured",
    "storage": "fast",
    "layer": "none",
    "engine": "iokernel",
    "engine_version": "1",
    "launcher": "mpiexec",
    "nodes": 1,
    "processes_per_node": 1,
    "twin": "a",
    "traced": False,
}


class Rows(pd.DataFrame):
    """A frame that `+` extends by rows."""

    def __add__(self, other):
        return Rows(pd.concat([pd.DataFrame(self), pd.DataFrame(other)], ignore_index=True))

    __iadd__ = __add__


def rows(values, **words):
    """Return one observation for each value of bandwidth, repetition 0, 1, ..."""
    words = _DEFAULT | words
    made = []
    for repetition, value in enumerate(values):
        configuration = "-".join(
            str(words[k])
            for k in ("experiment", "workload", "storage", "layer", "engine", "nodes", "processes_per_node")
        )
        row = {"flags": [], "bandwidth": float(value), "repetition": repetition} | words
        row.setdefault("configuration", configuration)
        row.setdefault("run", f"{row['configuration']}.r{repetition}{row['twin']}")
        made.append(row)
    frame = pd.DataFrame(made, columns=[c.name for c in OBSERVATIONS])
    return Rows(frame.astype({c.name: _KINDS.get(c.kind, c.kind) for c in OBSERVATIONS}))
