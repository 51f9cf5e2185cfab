"""What sections say, as plain values for programs: each subject's own part of `tiercel show --json`.

A section whose numbers are those of no other (utilisation of accelerators, ...) registers a function under
``@told.register("name")`` in its file. It returns rows, or None where there is nothing of its subject.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tiercel.registry import Registry
from tiercel.report.data import Results
from tiercel.subjects import fill

Told = dict[str, Any]

told: Registry[Callable[[Results], Told | None]] = Registry(
    "part of the answer for programs", partial(fill, "sections", __name__)
)


def tell(results: Results) -> dict[str, Told]:
    """Return what each subject says, by its name."""
    found = {name: told.get(name)(results) for name in told}
    return {name: said for name, said in found.items() if said is not None}
