"""Whether copying files to a faster storage pays, by hand."""

import math

import pytest

from tiercel.placement.copying import Amount, Rates, Span, Staging, each_of, staging

RATES = {
    "disk": Rates(each_of(100.0), each_of(50.0), each_of(10.0), each_of(2.0)),
    "ram": Rates(each_of(1000.0), each_of(500.0), each_of(100.0), each_of(200.0)),
}


def test_bytes_and_files_are_counted_on_both_sides():
    # In: 1000 bytes read at 100/s and 20 files opened at 10/s: 12 s; written at 500/s, made at 200/s: 2.1 s.
    # Out: 500 bytes read at 1000/s, 4 files at 100/s: 0.54 s; written at 50/s and made at 2/s: 12 s.
    made = staging("disk", "ram", Amount(20, 1000, 4, 500), RATES, 20.0)
    assert math.isclose(made.seconds_in, 14.1) and math.isclose(made.seconds_out, 12.54)
    # At the least the longer step hides the other.
    assert math.isclose(made.least_in, 12.0) and math.isclose(made.least_out, 12.0)
    # Each use gains 20 - 12.54 = 7.46 s; after the second 14.92 s, more than the 14.1 s of copying in.
    # At best 8 s each: after the second 16 s, more than 12.
    assert (made.pays_from, made.pays_at_best) == (2, 2)
    # Of 17 s: 4.46 s each, 14.1 s after four; at best 5 s each, 12 s after three.
    made = staging("disk", "ram", Amount(20, 1000, 4, 500), RATES, 17.0)
    assert (made.pays_from, made.pays_at_best) == (4, 3)


def test_several_processes_say_what_one_takes_at_the_least_and_at_the_most():
    # Four did 200 a second: one does between 50 and 200.
    assert each_of(200.0, 4) == Span(1 / 200, 4 / 200)
    # What lay in the page cache says nothing of the most.
    warm = each_of(200.0, 4, cold=False)
    assert warm.least == 1 / 200 and math.isnan(warm.most)


@pytest.mark.parametrize("rate", [0.0, -1.0, math.nan, math.inf])
def test_a_rate_that_is_no_positive_number_costs_its_row_only(rate):
    rates = RATES | {"ram": Rates(each_of(rate), each_of(rate), each_of(rate), each_of(rate))}
    made = staging("disk", "ram", Amount(20, 1000), rates, 5.0)
    assert math.isnan(made.seconds_in) and made.pays_from is None


def test_small_files_need_a_cold_rate_large_ones_do_not():
    warm = RATES | {"disk": Rates(each_of(100.0), each_of(50.0), each_of(10.0, cold=False), each_of(2.0))}
    assert math.isnan(staging("disk", "ram", Amount(20, 1000), warm, 5.0).seconds_in)
    # 10 MiB in one file: read at 100/s, written at 500/s, opened at 10/s, made at 200/s.
    size = 10 * 1024**2
    large = staging("disk", "ram", Amount(1, size), warm, 5.0)
    assert math.isclose(large.seconds_in, size / 100 + size / 500 + 1 / 10 + 1 / 200)
    # Where the reading itself was measured, that counts: 3 to 7 s, and 2.1 s of writing.
    known = staging("disk", "ram", Amount(20, 1000), warm, 5.0, reading=Span(3.0, 7.0))
    assert math.isclose(known.seconds_in, 9.1) and known.least_in == 3.0


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
