"""How sides are written: dates, layers, keys, and names that hold their signs."""

import pytest

from tests.compare.sides import DAY, NOVEMBER
from tiercel.compare.spelling import read_side
from tiercel.errors import UserError


def read(text, *places):
    return read_side(text, lambda where: where in (places or ("local",)))


def test_a_place_alone_is_not_narrowed():
    assert read("local").where == "local"
    assert read("local").narrowing == (None,) * 7


@pytest.mark.parametrize(
    ("dates", "since", "until"),
    [
        ("2026-11-01", NOVEMBER, NOVEMBER + DAY),
        ("2026-11-01T06", NOVEMBER + 6 * 3600, NOVEMBER + 7 * 3600),
        ("2026-11-01T06:30", NOVEMBER + 6.5 * 3600, NOVEMBER + 6.5 * 3600 + 60),
        ("2026-11", NOVEMBER, NOVEMBER + 30 * DAY),  # November has 30 days
        ("2026-12", NOVEMBER + 30 * DAY, NOVEMBER + 61 * DAY),  # and December, which ends the year, 31
        ("2025..2026-10", NOVEMBER - (304 + 365) * DAY, NOVEMBER),  # 304 days of 2026, and all of 2025
        ("2026-11-01..2026-11-03", NOVEMBER, NOVEMBER + 3 * DAY),
        ("2026-11-01..", NOVEMBER, None),
        ("..2026-11-01", None, NOVEMBER + DAY),
    ],
)
def test_a_date_stands_for_all_of_it(dates, since, until):
    side = read(f"local@{dates}")
    assert (side.where, side.since, side.until) == ("local", since, until)


def test_narrowings_come_in_any_order():
    one = read("local@2026-11+fairshare policy=size-fair+cachevol:study=quick:storage=gpfs1")
    two = read("local:storage=gpfs1:study=quick+fairshare policy=size-fair+cachevol@2026-11")
    assert one.narrowing == two.narrowing
    assert one.layer == "fairshare policy=size-fair+cachevol"
    assert (one.study, one.storage) == ("quick", "gpfs1")


def test_the_longest_beginning_that_is_a_place_is_the_place():
    text = "/data/a@b+c:study=x/local@2026"
    side = read(text, "/data/a", "/data/a@b+c:study=x/local")
    assert side.where == "/data/a@b+c:study=x/local"
    assert side.since is not None
    assert side.study is None


def test_a_place_that_is_unknown_ends_at_the_first_sign():
    assert read("nowhere@2026-11-01").where == "nowhere"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("local@yesterday", "'yesterday' is no date"),
        ("local@2026-13", "no date of the calendar"),
        ("local@2026-02-30", "no date of the calendar"),
        ("local@9999", "no date of the calendar"),
        ("local@", "@ needs a date"),
        ("local@..", "@ needs a date"),
        ("local@2026-11..2026-10", "end before they begin"),
        ("local@2026@2025", "@ is written twice"),
        ("local+", "nothing is named"),
        ("local:study=", "nothing is named"),
        ("local:study=a:study=b", "study is written twice"),
        ("local:stduy=a", "did you mean study?"),
    ],
)
def test_what_is_wrong_is_said(text, said):
    with pytest.raises(UserError, match=said.replace("?", r"\?")):
        read(text)
