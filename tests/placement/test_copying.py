"""Whether copying files to a faster storage pays, by hand."""

import math

import pytest

from tiercel.placement.copying import Amount, Rates, Staging, staging

RATES = {
    "disk": Rates(read=100.0, write=50.0, open=10.0, create=2.0),
    "ram": Rates(1000.0, 500.0, 100.0, 200.0),
}


def test_bytes_and_files_are_counted_on_both_sides():
    # In: 1000 bytes read at 100/s, written at 500/s: 10 + 2 s; 20 files opened at 10/s, made at 200/s: 2.1 s.
    # Out: 500 bytes read at 1000/s and written at 50/s: 0.5 + 10 s; 4 files: 4/100 + 4/2 = 2.04 s.
    made = staging("disk", "ram", Amount(20, 1000, 4, 500), RATES, 20.0)
    assert math.isclose(made.seconds_in, 14.1) and math.isclose(made.seconds_out, 12.54)
    # Each use gains 20 - 12.54 = 7.46 s; after the second 14.92 s, more than the 14.1 s of copying in.
    assert made.pays_from == 2


@pytest.mark.parametrize(
    ("cost_in", "cost_out", "saved", "pays"),
    [
        (0.0, 0.0, 1.0, 1),  # nothing to copy
        (1.0, 0.0, 2.0, 1),
        (2.0, 0.0, 2.0, 2),  # as long after the first use, ahead after the second
        (10.0, 0.0, 3.0, 4),
        (0.0, 2.0, 1.0, None),  # bringing results home costs more than they gain
        (1.0, 0.0, -1.0, None),
        (math.nan, 0.0, 1.0, None),  # not measured: nothing is promised
    ],
)
def test_from_which_use_it_pays(cost_in, cost_out, saved, pays):
    assert Staging("a", "b", cost_in, cost_out, saved).pays_from == pays


def test_what_was_not_measured_promises_nothing():
    assert staging("disk", "tape", Amount(1, 1000), RATES, 5.0).pays_from is None
    # Files of which nothing is copied need no rate at all.
    assert staging("disk", "tape", Amount(), RATES, 5.0).pays_from == 1
