"""Which file of one trace is which of the other: by path, below their folders, by the end of their names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from tiercel.traces.analysis.names import common_folder

#: Folders of a name that are compared where nothing else helps.
_DEEPEST = 6


@dataclass(frozen=True)
class Matched:
    """Pairs of files, how many were found in which way, and what was left."""

    pairs: list[tuple[str, str]]
    same_path: int
    below_folder: int
    by_end: int
    folders: tuple[str, str]
    """The folders below which names were compared; empty where they were not needed."""
    only_a: list[str]
    only_b: list[str]


def match(a: Sequence[str], b: Sequence[str]) -> Matched:
    """Match the files of two traces, each to one.

    Those with one path are the same. Of the others, names below the folder that (most of) each trace's own
    have in common; then the end of the name (file, folder and file, ...: the longest end that only one file
    of each side has).
    """
    known = set(b)
    same = [file for file in a if file in known]
    left_a, left_b = _without(a, same), _without(b, same)
    folders = _folders(left_a, left_b)
    below = {file.removeprefix(folders[1]): file for file in left_b if file.startswith(folders[1])}
    found = [
        (file, below[name]) for file in left_a
        if file.startswith(folders[0]) and (name := file.removeprefix(folders[0])) in below
    ]  # fmt: skip
    left_a, left_b = _without(left_a, [x for x, _ in found]), _without(left_b, [y for _, y in found])
    ends: list[tuple[str, str]] = []
    for deep in range(_DEEPEST, 0, -1):
        pairs = _by_end(left_a, left_b, deep)
        ends += pairs
        left_a, left_b = _without(left_a, [x for x, _ in pairs]), _without(left_b, [y for _, y in pairs])
    every = [*((file, file) for file in same), *found, *ends]
    return Matched(
        every, len(same), len(found), len(ends), folders if found else ("", ""), list(left_a), list(left_b)
    )  # fmt: skip


def _folders(a: Sequence[str], b: Sequence[str]) -> tuple[str, str]:
    """Return the folders below which most names are alike: those that each side's names have in common, or,
    as one foreign file takes that away, the ones that most pairs with like ends suggest."""
    suggested = Counter(_roots(x, y) for deep in range(_DEEPEST, 0, -1) for x, y in _by_end(a, b, deep))
    both = [(common_folder(a), common_folder(b)), *(pair for pair, _ in suggested.most_common(1))]

    def alike(folders: tuple[str, str]) -> int:
        names = ({f.removeprefix(folder) for f in side if f.startswith(folder)}
                 for side, folder in zip((a, b), folders, strict=True))  # fmt: skip
        return len(set.intersection(*names))

    return max(both, key=alike)


def _roots(a: str, b: str) -> tuple[str, str]:
    """Return what two paths begin with before the parts at their ends that are equal."""
    parts_a, parts_b = a.split("/"), b.split("/")
    same = 0
    while same < min(len(parts_a), len(parts_b)) - 1 and parts_a[-1 - same] == parts_b[-1 - same]:
        same += 1
    heads = ("/".join(parts[: len(parts) - same]) for parts in (parts_a, parts_b))
    first, second = (f"{head}/" if head else "" for head in heads)
    return first, second


def _by_end(a: Sequence[str], b: Sequence[str], deep: int) -> list[tuple[str, str]]:
    ends_a, ends_b = ({file: _end(file, deep) for file in files} for files in (a, b))
    often_a, often_b = Counter(ends_a.values()), Counter(ends_b.values())
    of_b = {end: file for file, end in ends_b.items() if end is not None and often_b[end] == 1}
    return [
        (file, of_b[end]) for file, end in ends_a.items()
        if end is not None and often_a[end] == 1 and end in of_b
    ]  # fmt: skip


def _end(file: str, deep: int) -> str | None:
    """Return the last `deep` parts of a path; None where it has not so many."""
    parts = file.strip("/").split("/")
    return "/".join(parts[-deep:]) if len(parts) >= deep else None


def _without(files: Sequence[str], gone: Sequence[str]) -> list[str]:
    taken = set(gone)
    return [file for file in files if file not in taken]
