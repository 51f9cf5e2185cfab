"""Random HDF5 programs see and leave the same with the connector as without."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.caching.fuzz import run as fuzzing
from tests.caching.fuzz.play import Player, contents
from tests.caching.fuzz.run import fuzz

from .conftest import needs_connector

CASES = 96  # four batches: half of the settings; the nightly campaign plays all


@needs_connector
def test_no_case_differs() -> None:
    outcome = fuzz(CASES)
    assert outcome.mismatches == []
    assert outcome.cases == CASES
    assert outcome.staged_bytes > 10_000_000  # the cases do reach the log and the copies
    assert outcome.hit_bytes > 10_000_000


@needs_connector
@pytest.mark.nightly
def test_no_case_of_ten_thousand_differs() -> None:
    assert fuzz(10_000, seed=100_000, jobs=2).mismatches == []


@needs_connector
def test_no_case_reads_what_it_never_wrote() -> None:
    """HDF5 leaves there what the space held before, which depends on flushes: no difference that counts.

    The program of this seed deletes a dataset and makes one in its place, of which it writes five elements.
    """
    assert fuzz(1, seed=9_002_449).mismatches == []


def test_a_seed_is_the_same_program_again(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
    assert Player(5, tmp_path / "a").play() == Player(5, tmp_path / "b").play()
    assert Player(6, tmp_path / "c").play() != Player(5, tmp_path / "c").play()
    assert contents(tmp_path / "a" / "5.h5") == contents(tmp_path / "b" / "5.h5")


def test_a_difference_is_told_with_its_seed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A connector that lost a byte: the campaign must say so."""
    real = fuzzing._work

    def lossy(
        mode: str, folder: Path, first: int, count: int, environment: dict[str, str]
    ) -> fuzzing.Answers:
        answers = real(mode, folder, first, count, {})
        if mode == "play" and folder.name == "cached":
            path = folder / f"{first}.h5"
            data = bytearray(path.read_bytes())
            data[-1] ^= 1
            path.write_bytes(data)
            answers[first]["bytes"] = "other"
        return answers

    monkeypatch.setattr(fuzzing, "_work", lossy)
    monkeypatch.setattr(fuzzing, "settings", lambda *_: {})
    outcome = fuzzing._batch(1, 2, {"checkpoint": False})
    assert [m["seed"] for m in outcome.mismatches] == [1]
    assert json.dumps(outcome.mismatches)
