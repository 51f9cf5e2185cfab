"""How a study spends `decide:`: on what is undecided, in a few looks, within its time. Synthetic numbers."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.report.synthetic import MIB, Synthetic, study
from tiercel.cli.deciding import MOST_LOOKS, left_to_decide, look_further
from tiercel.project import results_folder
from tiercel.study.looks import read_looks, write_look


def project(decide: float | None, storages: tuple[str, ...] = ("nvme", "nfs-project")) -> SimpleNamespace:
    """A project as far as deciding asks it."""
    configurations = [SimpleNamespace(experiment="scaling") for _ in storages]
    of = study().model_copy(update={"decide": decide})
    plan = SimpleNamespace(site=SimpleNamespace(site="example"), study=of, configurations=configurations)
    return SimpleNamespace(plan=plan)


def measured(root: Path, nvme: float = 106.0, looked: int = 0) -> Path:
    """Write results of two storages (MiB/s, scatter of 8) and, of a further look, so many runs of 4 s."""
    data = Synthetic(processes=(1,))
    steps = (-1.0, 0.5, 1.0, -0.5, 0.0)
    for side, (storage, base) in enumerate((("nvme", nvme), ("nfs-project", 100.0))):
        for repetition in range(5):
            for half, twin in enumerate("ab"):
                by = steps[(repetition + 2 * half + side) % 5]  # no round is alike in all of them
                data.add("scaling", "scientific", "Write", storage, 1, repetition, twin, [],
                         operation="write", bandwidth=(base + 8 * by) * MIB)  # fmt: skip
    for number, row in enumerate(data.runs):
        row["look"], row["duration"] = (1, 4.0) if number < looked else (0, 2.0)
    return data.write(results_folder(root, "example"))


def test_what_looks_took_is_no_longer_left(tmp_path: Path) -> None:
    measured(tmp_path, looked=3)
    assert left_to_decide(project(None), tmp_path) == 0
    assert left_to_decide(project(30.0), tmp_path) == pytest.approx(30 - 3 * 4)
    assert left_to_decide(project(13.0), tmp_path) == 0  # a second is too little to begin with
    assert left_to_decide(project(10.0), tmp_path) == 0  # the last run went over


def test_a_study_looks_three_times_at_most(tmp_path: Path) -> None:
    folder = measured(tmp_path)
    for number in range(MOST_LOOKS):
        assert left_to_decide(project(60.0), tmp_path) == 60.0
        write_look(folder, study().study, 10 + number, {"c": 1})
    assert left_to_decide(project(60.0), tmp_path) == 0


def test_what_is_undecided_gets_more_on_both_sides(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = measured(tmp_path)
    assert look_further(project(60.0), tmp_path, 60.0, asked=False)
    (look,) = read_looks(folder, study().study)
    # After the ten that the study plans at most, for both storages alike; 2 s each, so within 60 s.
    assert look.first == study().repetitions.maximum and look.seconds == 60.0
    assert {key.split(".")[2] for key in look.repetitions} == {"nvme", "nfs-project"}
    assert len(set(look.repetitions.values())) == 1
    assert 0 < 2.0 * sum(look.repetitions.values()) <= 60.0
    assert "1 answer is undecided; 1 of them gets" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("nvme", "seconds", "why"), [(400.0, 60.0, "nothing is undecided"), (106.0, 3.0, "")]
)
def test_nothing_to_decide_is_told_to_who_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], nvme: float, seconds: float, why: str
) -> None:
    folder = measured(tmp_path, nvme=nvme)
    assert not look_further(project(60.0), tmp_path, seconds, asked=False)
    assert capsys.readouterr().out == ""  # a study's own look says only what it does
    assert not look_further(project(60.0), tmp_path, seconds, asked=True)
    assert (why or "the quickest of them takes about") in capsys.readouterr().out
    assert read_looks(folder, study().study) == ()
