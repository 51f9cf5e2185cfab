"""The tiers of the tests: what `make test` leaves to `make test-full`, and what it must not leave."""

from __future__ import annotations

from pathlib import Path

import pytest

from . import tiers
from .conftest import CHECKOUT

#: Campaigns that the first tier enters once each, by the files that hold them.
ENTERED = {
    "worked pages": "docs/test_worked_pages.py::test_a_page_does_what_it_says[trace-rule]",
    "a killed study": "workflow/test_evaluate.py::test_killed_and_resumed[Ctrl-C]",
    "crashes of the cache": "caching/test_crash.py",
    "differences by fuzzing": "caching/test_fuzz.py::test_no_case_differs",
    "a hostile user": "native/fairshare/test_attack.py::test_a_second_user_gets_nothing",
    "a real Slurm": "slurm/test_caching.py::test_each_node_has_copies_of_its_own",
    "a stand-in of LSF": "schedulers/test_workflow.py::test_lsf_a_killed_snakemake_takes_up_its_job",
}


@pytest.mark.parametrize("campaign", ENTERED)
def test_the_first_tier_enters_every_campaign(campaign: str) -> None:
    name = ENTERED[campaign]
    assert (Path(__file__).parent / name.partition("::")[0]).is_file()
    assert tiers.second().isdisjoint((name, name.partition("[")[0]))


class Item:
    def __init__(self, nodeid: str) -> None:
        self.nodeid, self.marks = nodeid, set[str]()

    def add_marker(self, name: str) -> None:
        self.marks.add(name)


def test_a_line_is_a_test_or_one_of_its_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiers, "second", lambda: frozenset({"a/test_b.py::test_c", "a/test_b.py::test_d[1]"}))
    items = [Item(f"tests/a/test_b.py::test_{name}") for name in ("c", "c[2]", "d[1]", "d[2]", "e")]
    tiers.mark(items)  # type: ignore[arg-type]
    assert [item.nodeid[-4:] for item in items if "full" in item.marks] == ["st_c", "c[2]", "d[1]"]


def test_the_makefile_leaves_it_out_and_ci_runs_it() -> None:
    makefile, ci = ((CHECKOUT / name).read_text() for name in ("Makefile", ".ci/run"))
    assert "-m 'not nightly and not full'" in makefile and "make test-full" in ci
