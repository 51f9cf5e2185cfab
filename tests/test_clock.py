"""A clock that is set back in the middle of a phase changes no duration."""

from __future__ import annotations

import time

import pytest

from tiercel import clock


def test_now_is_the_time_of_day_and_goes_forward(monkeypatch: pytest.MonkeyPatch) -> None:
    assert clock.now() == pytest.approx(time.time(), abs=1.0)
    before = clock.now()
    monkeypatch.setattr(time, "time", lambda: 0.0)
    monkeypatch.setattr("tiercel.clock.time", lambda: 0.0)
    assert 0 <= clock.now() - before < 60


def test_what_is_counted_from_an_agreed_moment_goes_on_evenly(monkeypatch: pytest.MonkeyPatch) -> None:
    passed = clock.since(time.time() - 5.0)
    monkeypatch.setattr("tiercel.clock.time", lambda: 0.0)
    assert 5.0 <= passed() < 60
