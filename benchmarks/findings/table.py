"""A score as a table for the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from benchmarks.findings.score import Count, Miss, Score

_LINE = "{:24s}{:>7s}{:>7s}{:>8s}{:>11s}{:>8s}"


def table(title: str, result: Score) -> str:
    lines = [title, _LINE.format("label", "right", "false", "missed", "precision", "recall")]
    lines += [_row(label, count) for label, count in result.labels.items() if count != Count()]
    lines += [_row("all", result.whole)]
    lines += [
        f"{result.traces} traces; of the {result.clean} clean ones {result.alarmed} were told something"
    ]
    if result.unread:
        lines += [f"{result.unread} could not be read: what is true of them counts as missed"]
    return "\n".join(lines) + "\n"


def misses(found: Iterable[Miss]) -> Iterator[str]:
    for miss in found:
        said = [f"missed {', '.join(miss.missed)}"] if miss.missed else []
        said += [f"false {', '.join(miss.false)}"] if miss.false else []
        yield f"  {miss.trace}: {'; '.join(said)}"


def _row(label: str, count: Count) -> str:
    numbers = (str(count.right), str(count.false), str(count.missed))
    return _LINE.format(label, *numbers, _percent(count.precision), _percent(count.recall))


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.0f} %"
