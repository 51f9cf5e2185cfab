"""The section on node-local caching: what it advises, from hand-made numbers."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from tiercel.caching.section import Pair, _advice, _pairs, pays_from, told_apart
from tiercel.caching.section_figures import epochs_of


def pair(operation: str, plain: float, cached: float) -> Pair:
    return Pair("Disk", "stream/shuffled/1", "Shuffled", operation, plain, cached)


def test_from_which_epoch_it_pays() -> None:
    # Plain: 1 s an epoch of 100 bytes. First epoch 2 s (1 lost), later ones 0.4 s (0.6 saved each): after the
    # second still 0.4 s behind, after the third 0.2 s ahead.
    first, later = pair("hdf5-read-first", 100, 50), pair("hdf5-read-later", 100, 250)
    assert pays_from(first, later) == 3
    # A first epoch that costs nothing pays with the second; one that is faster pays at once.
    assert pays_from(pair("hdf5-read-first", 100, 100), later) == 2
    assert pays_from(pair("hdf5-read-first", 100, 120), later) == 1
    # Later epochs that are slower never pay.
    assert pays_from(first, pair("hdf5-read-later", 100, 90)) is None


def test_advice() -> None:
    said = list(
        _advice(
            [
                pair("hdf5-write", 100, 300),
                pair("hdf5-read-first", 100, 100),
                pair("hdf5-read-later", 100, 400),
            ]
        )
    )
    assert said == [
        "Disk, Shuffled: worth turning on, 3.0 times the bandwidth of plain HDF5.",
        "Disk, Shuffled: worth turning on, and it pays from epoch 2; later epochs 4.0 times plain HDF5.",
    ]
    assert list(_advice([pair("hdf5-write", 100, 102)])) == [
        "Disk, Shuffled: not worth turning on (1.02 of plain HDF5)."
    ]


def test_what_could_be_chance_is_no_advice() -> None:
    write = replace(pair("hdf5-write", 100, 300), sure=False)
    first, later = replace(pair("hdf5-read-first", 100, 50), sure=False), pair("hdf5-read-later", 100, 400)
    assert list(_advice([write, first, later])) == [
        "Disk, Shuffled: worth turning on for many epochs, later ones 4.0 times plain HDF5; "
        "what the first one costs is undecided, so from which epoch it pays, too.",
        "Disk: undecided, as what was measured could be chance (times the bandwidth of plain HDF5): "
        "Shuffled (writes 3.00).",
    ]
    (said,) = _advice([replace(first, sure=True), replace(later, sure=False)])
    assert said.endswith(": Shuffled (later epochs 4.00).")


def test_titles_tell_pairs_apart() -> None:
    """Two experiments have one of the same title, one of them at two scales; another title stands alone."""
    one = replace(pair("hdf5-write", 100, 300), workload="own/write/1/", title="Write")
    two = replace(one, workload="together/write/1/")
    four = replace(one, workload="together/write/4/")
    other = replace(one, workload="own/read/1/", title="Other")
    found = told_apart(iter([one, two, four, other]), str.capitalize)
    assert [p.title for p in found] == [
        "Own: Write", "Together: Write (1 process)", "Together: Write (4 processes)", "Other",
    ]  # fmt: skip


def test_an_epoch_takes_as_long_as_its_slowest_process(tmp_path: Path) -> None:
    epochs = [[{"bytes": 10, "seconds": 1}, {"bytes": 10, "seconds": 4}], [{"bytes": 10, "seconds": 2}] * 2]
    (tmp_path / "h5kernel.json").write_text(json.dumps(epochs))
    assert epochs_of(tmp_path) == [10, 5]  # 20 bytes in 2 s, and in 4 s
    (tmp_path / "h5kernel.json").write_text("{")
    assert epochs_of(tmp_path) == []


def test_pairs_need_both_sides() -> None:
    import pandas as pd  # noqa: PLC0415

    row = {"storage": "d", "experiment": "e", "workload": "w", "operation": "hdf5-write", "processes": 1,
           "storage_label": "Disk", "title": "W"}  # fmt: skip
    rows = pd.DataFrame(
        [
            {**row, "layer": "none", "bandwidth": 100.0},
            {**row, "layer": "none", "bandwidth": 300.0},
            {**row, "layer": "cachevol", "bandwidth": 400.0},
            {**row, "storage": "other", "layer": "none", "bandwidth": 1.0},
        ]
    )
    (found,) = list(_pairs(rows, set()))
    assert (found.plain, found.cached) == (200.0, 400.0)  # the median of 100 and 300 is 200
