"""Figures that are worked out from others of a paper: arithmetic, and nothing else."""

from __future__ import annotations

import pytest

from tiercel.papers.load import load_papers
from tiercel.papers.model import Answer
from tiercel.papers.published import worked_out
from tiercel.papers.verdicts import figure_of, verdict_of


def test_by_hand() -> None:
    assert worked_out(
        "100 * (1 - random / sequential)", {"sequential": 14.5, "random": 1.4}
    ) == pytest.approx(90.345, abs=0.001)
    assert worked_out("max(a, 2) - min(3, a)", {"a": 1}) == 1
    assert worked_out("round(121 * accuracy / 100)", {"accuracy": 95.86}) == 116


@pytest.mark.parametrize(
    "formula",
    ["a +", "b", "__import__('os')", "a.real", "a if a else 1", "(lambda: a)()", "a, a", "True + a", "'a'"],
)
def test_what_is_no_arithmetic_over_its_figures(formula: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        worked_out(formula, {"a": 1})


def test_a_figure_that_counts_for_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="takes no b"):
        worked_out("a", {"a": 1, "b": 2})


def test_the_paper_agrees_with_itself_or_not() -> None:
    def answer(**keys: object) -> Answer:
        return Answer.model_validate(
            {"how": "published", "figures": {"a": 8, "b": 1}, "formula": "a / b", **keys}
        )

    assert figure_of(answer(at_least=7), None) == 8
    assert verdict_of(answer(at_least=7), None) == "paper agrees with itself"
    assert verdict_of(answer(at_most=7), None) == "paper disagrees with itself"
    for wrong in ({}, {"at_least": 7, "command": "tiercel papers"}, {"at_least": 7, "input": True}):
        with pytest.raises(ValueError, match="formula"):
            answer(**wrong)
    with pytest.raises(ValueError, match="formula"):
        answer(at_least=7, how="measured")


def test_every_formula_is_of_figures_that_its_paper_has() -> None:
    found = [s for p in load_papers() for s in p.statements if s.answer.formula]
    assert {s.id for s in found} == {
        "vast-01", "vast-06", "vast-20", "themis-22", "themis-23", "cache-08", "prism-21"
    }  # fmt: skip
    assert [s.id for s in found if "disagrees" in verdict_of(s.answer, None)] == [
        "vast-20"
    ]  # contradicts itself
