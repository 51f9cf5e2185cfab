"""The section on deep learning, of engines that time their I/O (dlkernel) and that do not (DLIO)."""

from __future__ import annotations

import math

from tiercel.dl.section import mark_of
from tiercel.report.sections.interval import interval_cell

from .synthetic import Synthetic


def test_two_engines_of_which_one_does_not_time_its_io(build_page):  # type: ignore[no-untyped-def]
    data = Synthetic(engine="dlkernel", storages=("nfs-project", "nvme"), processes=(1, 4)).training()
    other = Synthetic(engine="dlio", storages=("nfs-project", "nvme"), processes=(1, 4)).training(says=False)
    data.observations += other.observations
    data.runs += other.runs
    page = build_page(data).page
    rows = page.rows("Workload", "Goal", "Application")
    assert len(rows) == 8  # two engines, storage systems and numbers of processes
    nfs = next(
        r for r in rows if "NFS" in r["Storage"] and r["Engine"] == "dlkernel" and r["Processes"] == "4"
    )
    assert (nfs["AU"], nfs["Goal"]) == ("60.0 % (60.0 % to 60.0 %)", "below 90 %")
    assert nfs["Application"] == "4 MiB/s (4 MiB/s to 4 MiB/s)"
    assert nfs["System"] == "2 MiB/s (2 MiB/s to 2 MiB/s)"
    nvme = next(r for r in rows if "NVMe" in r["Storage"] and r["Engine"] == "dlkernel")
    assert (nvme["Goal"], nvme["Application"]) == ("passes 90 %", "")
    assert nvme["System"] == "2 MiB/s (2 MiB/s to 2 MiB/s)"
    assert next(r for r in rows if r["Engine"] == "dlio")["System"] == ""


def test_training_is_told_in_samples_not_operations(build_page):  # type: ignore[no-untyped-def]
    html = build_page(Synthetic(engine="dlkernel").training()).html
    assert "First epoch: ResNet-50" in html
    assert "Samples/s" in html
    assert "metadata operations" not in html
    assert "Training speed over processes" in html  # a figure of its scaling


def test_a_cell_of_repetitions_has_the_interval_of_their_median() -> None:
    def percent(share: float) -> str:
        return f"{100 * share:.0f} %"

    # Of three the median is the second; their interval is their range.
    assert interval_cell([0.7, 0.9, None, 0.8], percent) == ("80 % (70 % to 90 %)", 0.8)
    # Of nine, in order, the second and the eighth hold the median with 96 %: 1 - 2 * (1 + 9) / 2**9.
    nine = [n / 10 for n in range(1, 10)]
    text, middle = interval_cell(nine, percent)
    assert text.startswith("50 % (") and middle == 0.5
    assert interval_cell([0.7], percent) == ("70 %", 0.7)
    assert interval_cell([None, float("nan")], percent) == ("", -1.0)


def test_a_mark_within_the_interval_is_open() -> None:
    # Of fewer than six repetitions the interval is their range.
    assert mark_of([0.91, 0.93, 0.95], 0.9) == "passes 90 %"
    assert mark_of([0.89, 0.93, 0.95], 0.9) == "open 90 %"
    assert mark_of([0.85, 0.88, 0.899], 0.9) == "below 90 %"
    assert mark_of([0.9, 0.9], 0.9) == "passes 90 %"
    assert mark_of([0.5], 0.9) == "below 90 %"
    assert mark_of([], 0.9) == mark_of([0.5], math.nan) == ""


def test_a_study_that_has_only_twins_of_its_trainings_yet(build_page):  # type: ignore[no-untyped-def]
    """As one that goes on does for a while: nothing is said of them, and the rest of the page is made."""
    data = Synthetic(engine="dlkernel", storages=("nvme", "shm"), processes=(1,)).training()
    data.observations = [row for row in data.observations if row["twin"] == "b"]
    kept = {row["run"] for row in data.observations}
    data.runs = [row for row in data.runs if row["run"] in kept]
    assert kept and 'id="deep-learning"' not in build_page(data).html


def test_samples_are_written_out(build_page):  # type: ignore[no-untyped-def]
    data = Synthetic(engine="dlkernel", storages=("nvme", "shm"), processes=(200,)).training()
    page = build_page(data).page
    assert "e+0" not in page.text and "ksamples" not in page.text
    speeds = [row["Samples/s"] for row in page.rows("Workload", "Goal", "Samples/s")]
    assert speeds and all(speed.partition(" (")[0].count(" ") == 1 for speed in speeds)  # 20 100
