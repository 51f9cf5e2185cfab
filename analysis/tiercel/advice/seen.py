"""What the trace itself tells of the run at home, against which replays are held, and what it does not."""

from __future__ import annotations

from dataclasses import dataclass

from tiercel.advice.capture import Capture
from tiercel.advice.trial import GROUPS
from tiercel.placement.recipe import Recipe
from tiercel.traces import IOFrame
from tiercel.units import format_size

#: What a tracer misses is told beyond this share of what the kernel counted, and these bytes.
_UNSEEN, _UNSEEN_BYTES = 0.1, 1 << 20


@dataclass(frozen=True)
class Seen:
    """Times of the trace in seconds, without what the tracer added. `in_calls`: of the calls that are
    replayed, by kind; `outside`: of the run before the first of them and after the last."""

    in_calls: dict[str, float]
    outside: float

    @property
    def total(self) -> float:
        return sum(self.in_calls.values())


def seen(frame: IOFrame, recipe: Recipe, capture: Capture | None) -> Seen:
    """Return what a trace says of the part that `recipe` repeats."""
    return Seen(_in_calls(frame, recipe, capture), _outside(frame, recipe, capture))


def _in_calls(frame: IOFrame, recipe: Recipe, capture: Capture | None) -> dict[str, float]:
    added = capture.cost.told if capture else 0.0
    table = frame.query(
        f"SELECT kind, file, sum(greatest(0, coalesce(duration, 0) - {added!r})) AS seconds FROM events "
        "WHERE file IS NOT NULL AND api = 'posix' AND kind IN ('read', 'write', 'metadata', 'sync') "
        "GROUP BY kind, file"
    )
    table = table[table["file"].isin(set(recipe.files))]
    sums = table.groupby("kind")["seconds"].sum()
    return {kind: float(sums.get(kind, 0.0)) for kind in GROUPS}


def _outside(frame: IOFrame, recipe: Recipe, capture: Capture | None) -> float:
    whole = capture.seconds if capture else frame.job_time
    return max(0.0, whole - (recipe.ended - recipe.began) - recipe.per_call * recipe.calls_outside)


def unseen(frame: IOFrame, capture: Capture | None) -> list[str]:
    """Return sentences on what the tracer did not see, as far as the trace and the kernel's count tell."""
    found = []
    row = frame.query(
        "SELECT coalesce(sum(size), 0) AS moved, count(*) FILTER (file IS NOT NULL AND "
        "NOT starts_with(file, '/') AND api <> 'app' AND kind IN ('read', 'write', 'sync')) AS relative "
        "FROM events WHERE kind IN ('read', 'write', 'other')"
    ).iloc[0]
    if row["relative"]:
        found.append(
            f"{int(row['relative'])} calls name files by relative paths and the trace does not tell below "
            "which folder: they are not in the advice (strace tells)"
        )
    if capture is not None and capture.tracer != "strace":
        lost = capture.kernel_bytes - float(row["moved"])
        if lost > _UNSEEN * capture.kernel_bytes and lost > _UNSEEN_BYTES:
            found.append(
                f"the kernel counts {format_size(capture.kernel_bytes)} read and written by the program, "
                f"{capture.tracer} saw {format_size(float(row['moved']))}: the advice is on that part "
                "(`--tracer strace` sees all)"
            )
    return found
