"""Findings: no claim without a verdict, and sentences that a stranger understands."""

import re

import pytest
from tests.report.synthetic import MIB, Synthetic, study

from tiercel.report import words
from tiercel.report.classes import in_sentence
from tiercel.report.data import Results
from tiercel.report.findings import find
from tiercel.results.validity import FLAGS


def findings_of(data):
    results = Results(study(), *data.frames(), FLAGS)
    return results, find(results)


def sentences(found, audience=None, severity=None):
    return [
        f.sentence for f in found
        if audience in (None, f.audience) and severity in (None, f.severity)
    ]  # fmt: skip


def samples(values, processes=(1,), twin_values=None, experiment="scaling", workload="scientific", **more):
    """Return data of storages with these values (MiB/s) of each repetition, and twins of them."""
    data = Synthetic(processes=processes, storages=tuple(values))
    for p in processes:
        for storage, numbers in values.items():
            for twin, of_twin in (("a", numbers), ("b", twin_values or numbers)):
                for repetition, number in enumerate(of_twin):
                    data.add(experiment, workload, "Sequential write", storage, p, repetition, twin, [],
                             **{"operation": "write", "bandwidth": float(number) * MIB, **more})  # fmt: skip
    return data


FAST, SLOW = [340, 341, 342, 343, 344], [100, 101, 102, 103, 104]


def test_a_decided_difference_is_claimed_with_its_interval():
    _, found = findings_of(samples({"nvme": FAST, "nfs-project": SLOW}))
    (sentence,) = sentences(found, "user", "claim")
    # 342 over 102, of geometric means.
    assert sentence.startswith(
        "Sequential write: Node-local NVMe has 3.4× (95 % CI 3.1–3.6) the bandwidth of"
    )


def test_three_repetitions_are_a_hint_not_a_claim():
    _, found = findings_of(samples({"nvme": FAST[:3], "nfs-project": SLOW[:3]}))
    assert not sentences(found, severity="claim")
    (sentence,) = sentences(found, "user", "hint")
    assert sentence.endswith("Not yet confirmed: 3 of 4 repetitions; run 1 more repetition of each side.")


def test_what_is_the_same_is_decided():
    """The users are told that they are the same: a count that calls it undecided would contradict it."""
    alike = {
        "nvme": [100, 101, 99, 100.5, 99.5, 100.2],
        "nfs-project": [100.1, 100.9, 99.2, 100, 99.6, 100.4],
    }
    _, found = findings_of(samples(alike))
    assert any("equal within 10" in each for each in sentences(found, "user"))
    assert any(
        "1 of 1 comparison between storage systems (1 equal)" in s for s in sentences(found, "researcher")
    )


@pytest.mark.parametrize(
    ("title", "within"),
    [
        ("Empty files", "empty files"), ("ResNet-50, JPEG files", "ResNet-50, JPEG files"),
        ("Cosmic Tagger, one file", "Cosmic Tagger, one file"), ("Many HDF5 files", "many HDF5 files"),
        ("Writes, Lustre", "writes, Lustre"), ("", ""),
    ],
)  # fmt: skip
def test_names_stay_as_they_are_within_a_sentence(title, within):
    assert in_sentence(title) == within


def test_what_overlaps_is_called_undecided():
    _, found = findings_of(samples({"nvme": [100, 110, 90, 105, 95], "nfs-project": [99, 111, 91, 104, 96]}))
    assert not sentences(found, severity="claim")
    (sentence,) = sentences(found, "user", "open")
    assert "no proven difference" in sentence
    assert "0 of 1 comparison" in " ".join(sentences(found))


def test_memory_is_no_winner_but_a_bound():
    data = samples({"nvme": FAST, "nfs-project": SLOW, "shm": [1000, 1001, 1002, 1003, 1004]})
    _, found = findings_of(data)
    first, second = sentences(found, "user", "claim")
    assert "Node-local NVMe has 3.4×" in first
    assert "/dev/shm has 2.9×" in second


def test_without_twins_nothing_is_claimed():
    data = samples({"nvme": FAST, "nfs-project": SLOW})
    data.observations = [row for row in data.observations if row["twin"] == "a"]
    _, found = findings_of(data)
    assert not sentences(found, severity="claim")
    assert any("no difference is proven" in s for s in sentences(found, "researcher"))


def test_fsync_and_random_access_have_a_price():
    data = samples({"nvme": FAST}, fsync="phase", pattern="sequential")
    other = samples({"nvme": SLOW}, workload="synced", fsync="write", pattern="sequential")
    data.observations += other.observations
    data.runs += other.runs
    _, found = findings_of(data)
    # 102 over 342.
    assert (
        "On Node-local NVMe, writes with an fsync after every write reach 30 % (95 % CI 28 % to 32 %) of the "
        "bandwidth of writes with one fsync at the end."
    ) in sentences(found, "user", "claim")


def test_scaling_is_named_with_its_interval():
    data = samples({"nvme": SLOW}, processes=(1,))
    more = samples({"nvme": [110, 111, 112, 113, 114]}, processes=(4,))
    data.observations += more.observations
    data.runs += more.runs
    _, found = findings_of(data)
    # 112 over 102.
    (sentence,) = sentences(found, "engineer", "claim")
    assert sentence == (
        "Sequential write from 1 to 4 processes: 1.10× on Node-local NVMe (1.08–1.12). Ideal: 4.0×."
    )


def test_metadata_is_one_sentence_for_a_pair():
    data = Synthetic(processes=(1, 4), storages=("nvme", "nfs-project"))
    data.metadata(kinds=("file",))
    _, found = findings_of(data)
    (sentence,) = sentences(found, "user", "claim")
    assert sentence.startswith(
        "Empty files in one directory: Node-local NVMe is faster than Project space (NFS) in all 4 operations"
    )


def test_failures_come_first_and_excluded_numbers_are_no_evidence():
    data = samples({"nvme": FAST, "nfs-project": SLOW})
    data.fail("nvme", "ended with code 1")
    for row in data.observations:
        row["flags"] = ["short-data"]
    _, found = findings_of(data)
    assert not sentences(found, severity="claim")
    assert sentences(found, "engineer", "failure") == ["1 run failed on Node-local NVMe: ended with code 1"]
    assert any("not compared" in s for s in sentences(found, "engineer", "caution"))


def test_every_finding_has_evidence_that_exists():
    results, found = findings_of(Synthetic(processes=(1, 2)).whole())
    anchors = {n.anchor for n in results.numbers} | {"failed", "noise", "comparisons", "numbers"}
    anchors |= {f"flag-{code}" for code in results.flags}
    for finding in found:
        assert finding.audience in ("user", "engineer", "researcher")
        assert {e.anchor for e in finding.evidence} <= anchors
        if finding.severity in ("claim", "hint", "open"):
            assert finding.evidence
        assert not re.search(r"\b[0-9a-f]{12}\b|nan|None|<NA>", finding.sentence), finding.sentence
        assert finding.sentence.isprintable()


@pytest.mark.parametrize(
    ("ratio", "shown"),
    [(0.004, "0.004×"), (0.1, "0.10×"), (0.968, "0.97×"), (1.5, "1.50×"), (3.44, "3.4×"), (120.4, "120×")],
)
def test_ratios_read_well(ratio, shown):
    assert words.times(ratio) == shown


def test_intervals_keep_the_unit_of_the_median():
    assert words.interval("bandwidth", 1.1 * 1024**3, 1000 * MIB, 1.2 * 1024**3) == "0.977–1.2 GiB/s"
    assert words.interval("operation_rate", 900.0, 850.0, 1200.0) == "850–1200 op/s"
    assert words.interval("bandwidth", float("nan"), 1.0, float("nan")) == words.MISSING
    assert words.percent(0.004) == "0.4 %"
    assert words.count(1, "process", "processes") == "1 process"
    assert words.scale(2, 4) == "2 nodes × 4 processes"


def test_what_was_not_measured_says_so_in_every_sentence():
    data = Synthetic(origin="imported", processes=(1, 2), storages=("nvme", "nfs-project"))
    data.whole()
    _, found = findings_of(data)
    about = [
        f for f in found if f.severity in ("claim", "hint", "open", "fact") and "compar" not in f.sentence
    ]
    assert len(about) > 8
    for finding in about:
        assert "(imported)" in finding.sentence, finding.sentence


def test_of_a_model_nothing_is_undecided_or_claimed():
    """ "Cannot be told apart, 486×: nothing was measured twice over" was said of two simulated storages."""
    data = Synthetic(origin="simulated", processes=(1, 2), storages=("nvme", "nfs-project"))
    data.whole()
    _, found = findings_of(data)
    assert not {"open", "hint", "claim"} & {f.severity for f in found}
    said = [f.sentence for f in found if "×" in f.sentence]
    assert len(said) > 1 and all("simulated" in sentence for sentence in said)


def test_what_is_undecided_says_why_and_not_a_noise_that_it_exceeds():
    """A ratio of 1.43 was not to be told "from a noise of 1.00-1.00": repetitions differed as much."""
    wild = {1: [100, 60, 150, 90, 120], 4: [150, 70, 190, 100, 160]}
    data = Synthetic(processes=(1, 4), storages=("nvme",))
    for p, values in wild.items():
        for twin in "ab":
            for repetition, value in enumerate(values):
                data.add("scaling", "scientific", "Sequential write", "nvme", p, repetition, twin, [],
                         operation="write", bandwidth=float(value) * MIB)  # fmt: skip
    (said,) = [s for s in sentences(findings_of(data)[1], "engineer") if "from 1 to 4" in s]
    # Of geometric means: (150 x 70 x 190 x 100 x 160 / (100 x 60 x 150 x 90 x 120)) ** (1 / 5) is 1.27.
    assert "1.27× on Node-local NVMe" in said and "No change is proven" in said
