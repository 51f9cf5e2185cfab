"""In which order the files of tests run: the longest first, what waits for a scheduler spread over all.

A Slurm takes its time, and meanwhile a core idles. As pytest collects them (and as xdist would sort them),
such files come all at once at the end, when nothing is left to compute beside them.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest

#: Folders whose tests wait more than they compute.
WAITING = ("schedulers", "slurm")
#: The last file that begins must not be long. Folders with the longest files, the longest first, and those
#: with long files that would come last.
LONG = ("workflow", "docs", "artifact", "traced", "traces", "tests")
#: Files that follow a waiting one: it is for one of `make test`'s workers, they are for the others.
BETWEEN = 4


def spread(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """Return the tests, whole files together, each waiting file before `BETWEEN` others."""
    files: dict[str, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(str(item.path), []).append(item)
    waiting = [file for file in files.values() if file[0].path.parent.name in WAITING]
    others = [file for file in files.values() if file[0].path.parent.name not in WAITING]
    others.sort(key=lambda file: [*LONG, file[0].path.parent.name].index(file[0].path.parent.name))
    for place, file in enumerate(waiting):
        others.insert(place * (BETWEEN + 1), file)
    return [item for file in others for item in file]
