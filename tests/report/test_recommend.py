"""What copying costs and saves by a study's numbers, by hand."""

import json
import math

import pytest
from tests.report.synthetic import MIB, Synthetic, site, study

from tiercel.report.classes import classes
from tiercel.report.data import Results
from tiercel.report.recommend import as_json, recommendations
from tiercel.report.recommend.model import SYNCED
from tiercel.report.sections.recommendations import _nth, _texts
from tiercel.results.validity import FLAGS
from tiercel.traced import tables
from tiercel.traced.schema import GROUPS
from tiercel.traced.tables import write_table

HOME, MEMORY = "nvme", "shm"
#: 1,024 files that hold 1.6 MB, of which an epoch moves 2 MB.
FILES, SIZE, MOVED = 1024, 1_600_000, 2_000_000


class Study(Synthetic):
    """A training of small files on two storages, what copying needs, and the groups of traced runs."""

    def __init__(self):
        super().__init__(processes=(2,), storages=(HOME, MEMORY))
        self.groups = []
        for storage, samples, io in ((HOME, 12_800, 0.08), (MEMORY, 25_600, 0.04)):
            for twin in "ab":
                for repetition, off in enumerate((-2, -1, 0, 1, 2)):
                    self.train(storage, repetition, twin, samples_per_second=samples + off, io_time=io)
        self.copying()

    def train(self, storage, repetition, twin, flags=(), **numbers):
        self.add(
            "training", "resnet50", "Small samples", storage, 2, repetition, twin, list(flags),
            operation="train", access="RO", samples=FILES, bytes_moved=MOVED, read_threads=8,
            total_time=0.1, bandwidth=numbers["samples_per_second"] * 2000.0, **numbers,
        )  # fmt: skip

    def copying(self):
        """Writing to memory: 2 GB/s by one process (6 GB/s by two), and 100,000 files a second."""
        for processes, rate in ((1, 2e9), (2, 6e9)):
            self.add(
                "scaling", "scientific", "Write", MEMORY, processes, 0, "a", [], operation="write",
                pattern="sequential", fsync="none", transfer_size=MIB, bandwidth=rate,
            )  # fmt: skip
        self.small(HOME, "file-read", 250_000.0)
        self.small(MEMORY, "file-create", 100_000.0)

    def small(self, storage, operation, rate, flags=()):
        self.add(
            "metadata", "shared-directory", "Files", storage, 1, 0, "a", list(flags), operation=operation,
            write_bytes=4096, operation_rate=rate,
        )  # fmt: skip

    def trace(self, storage, flags=(), experiment="training", workload="resnet50", **numbers):
        """Add a traced run (slower by the tracer) and its only group of files."""
        if experiment == "training":
            self.train(storage, 0, "a", flags, samples_per_second=9_000.0, io_time=0.1)
            for row in (self.observations[-1], self.runs[-1]):
                row.update(traced=True, run=f"{row['run']}t")
        known = {c.name: self.runs[-1].get(c.name, 0) for c in GROUPS}
        known |= {"group": "train/*.npz", "files": FILES, "size": SIZE, "input_bytes": SIZE,
                  "bytes_read": MOVED, "read_s": 0.5, "metadata_s": 0.02, "access": "RO"}  # fmt: skip
        self.groups.append(known | numbers)
        return self


def made_of(data, folder):
    folder = data.write(folder)
    write_table(folder / tables.GROUPS, data.groups, GROUPS, "test")
    results = Results.from_folder(folder, study(), FLAGS).named()
    return results, *recommendations(results, site(), folder, classes(results))


def training(data, folder):
    results, made, groups, notes = made_of(data, folder)
    json.dumps(as_json(results, made, groups, notes), allow_nan=False)
    (found,) = (r for r in made if r.of.experiment == "training")
    return found, notes


def test_small_files_are_copied_as_their_own_cold_epoch_read_them(tmp_path):
    data = Study().trace(HOME)
    found, notes = training(data, tmp_path)
    # Writing: 1.6 MB at 2 GB/s of one process, 1,024 files at 100,000 a second: 0.8 + 10.24 ms.
    # Reading: at the least the 80 ms in which any process read, at the most the 520 ms of all calls. That
    # 250,000 warm files a second can be opened (4.1 ms) decides nothing.
    assert math.isclose(found.staging.seconds_in, 0.52 + 0.0008 + 0.01024)
    assert math.isclose(found.staging.least_in, 0.08)
    # An epoch of 1,024 samples: 80 ms at home, 40 ms in memory, whatever its files' share of what it moved.
    assert math.isclose(found.staging.saved, 0.04)
    # 531.04 ms over 40 ms: after 14 uses; at best, 80 ms are paid by two and gain with the third.
    assert (found.staging.pays_from, found.staging.pays_at_best) == (14, 3)
    assert any("training: small samples 80 ms" in note for note in notes)


def test_without_calls_of_a_cold_trace_all_readers_one_after_the_other_are_the_most(tmp_path):
    # 80 ms by two processes of eight threads: 1.28 s. The trace is of a warm run.
    found, _ = training(Study().trace(HOME, ["cache-not-cold"], read_s=0.01, metadata_s=0.0), tmp_path)
    assert math.isclose(found.staging.seconds_in, 16 * 0.08 + 0.0008 + 0.01024)


def test_what_was_not_measured_cold_is_said_and_promises_nothing(tmp_path):
    data = Study().trace(HOME)
    for row in data.observations:
        if row["operation"] == "train" and row["storage"] == HOME:
            row["flags"] = ["cache-unknown"]
    found, notes = training(data, tmp_path)
    assert found.faster == MEMORY and found.staging is None
    assert (
        "Nothing is said of copying for training: small samples: not all that copying its files in takes has "
        "a valid number, of cold files."
    ) in notes


def test_an_invalid_number_decides_no_rate(tmp_path):
    (invalid,) = [code for code, flag in FLAGS.items() if flag.severity == "invalid"][:1]
    data = Study().trace(HOME)
    data.small(MEMORY, "file-create", 1e9, [invalid])
    data.small(MEMORY, "file-create", 1e9, [invalid])
    found, _ = training(data, tmp_path)
    assert math.isclose(found.staging.seconds_in, 0.52 + 0.0008 + 0.01024)


@pytest.mark.parametrize("rate", [0.0, math.nan, math.inf])
def test_a_rate_that_is_none_costs_its_row_not_the_report(tmp_path, rate):
    data = Study().trace(HOME, size=None)
    for row in data.observations:
        if row["operation"] == "file-create":
            row["operation_rate"] = rate
    found, _ = training(data, tmp_path)
    assert found.staging is None and found.unknown


def test_memory_is_no_place_for_writes_that_are_synced_one_by_one(tmp_path):
    """It is faster because it keeps nothing; once synced writes may go there and be copied home."""
    for fsync, kept in (("write", True), ("phase", False)):
        data = Synthetic(processes=(1,))
        for storage, rate in ((HOME, 1e8), (MEMORY, 1e9)):
            for twin in "ab":
                for repetition in range(5):
                    data.add("fsync", "synced-write", "Logs", storage, 1, repetition, twin, [],
                             operation="write", fsync=fsync,
                             bandwidth=rate * (1 + repetition / 500))  # fmt: skip
        data.groups = []
        _, (found,), _, notes = made_of(data, tmp_path / fsync)
        assert found.faster == MEMORY and (found.unknown == SYNCED) is kept
        assert any(SYNCED in note for note in notes) is kept


def test_groups_are_compared_for_equal_work(tmp_path):
    data = Study()
    data.observations = [row for row in data.observations if not row["operation"].startswith("file-")]
    for storage, create, count, seconds in ((HOME, 1000.0, 1000, 2.0), (MEMORY, 100_000.0, 20_000, 0.4)):
        for twin in "ab":
            for repetition in range(5):
                for operation in ("file-create", "file-remove"):
                    data.add(
                        "metadata", "shared-directory", "Files", storage, 2, repetition, twin, [],
                        operation=operation, write_bytes=0, operation_rate=create + repetition,
                    )  # fmt: skip
        data.trace(
            storage, experiment="metadata", group="file.*", files=count, size=0, input_bytes=0, bytes_read=0,
            read_s=0.0, metadata_s=seconds,
        )  # fmt: skip
    results, made, groups, notes = made_of(data, tmp_path)
    (group,) = groups
    # 20 us for each of 20,000 files in memory: 20 ms for the 1,000 that were made at home.
    assert group.seconds == pytest.approx({HOME: 2.0, MEMORY: 0.02})
    (said,) = as_json(results, made, groups, notes)["groups"]
    assert said["traced"][MEMORY]["files"] == 20_000
    assert said["traced"][MEMORY]["seconds_per_file"] == pytest.approx(20e-6)
    # What a file's life saves is no part of a group's.
    assert (said["staging"]["saved_per"], said["staging"]["saved_seconds"]) == ("file", None)
    assert any("file.*: 1,000 on Node-local NVMe, 20,000 on /dev/shm" in note for note in notes)


@pytest.mark.parametrize(
    ("number", "word"),
    [
        (1, "first"),
        (3, "third"),
        (4, "4th"),
        (11, "11th"),
        (21, "21st"),
        (22, "22nd"),
        (23, "23rd"),
        (112, "112th"),
    ],
)
def test_ordinals(number: int, word: str) -> None:
    assert _nth(number) == word


def test_a_site_that_has_a_model_is_not_told_to_make_one(tmp_path):
    """Its model knew none of the study's workloads, and the same section named it in a note."""
    results, made, *_ = made_of(Study(), tmp_path)
    (without,) = [text for text in _texts(results, made, [], trained=False) if "place train" in text]
    assert "`tiercel place train`" in without
    with_one = _texts(results, made, [], trained=True)
    assert not any("place train" in text for text in with_one)
