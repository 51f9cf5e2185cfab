"""The section beside the paper: items of the study and statements on them; none for other studies."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from tiercel.errors import UserError
from tiercel.papers import section
from tiercel.papers.load import load_papers
from tiercel.papers.section import items_of, papers


def made(study: str, source: str = "a paper") -> Any:
    of = SimpleNamespace(study=study, source=source)
    return papers(cast(Any, SimpleNamespace(results=SimpleNamespace(study=of))))


def test_a_study_of_no_paper_has_none() -> None:
    assert made("mine") is None
    assert made("cachevol") is None  # a part of a study's name is another study
    assert made("caching") and made("caching", source="") is None  # it repeats nothing


def test_items_and_statements_of_the_study() -> None:
    found = made("caching")
    assert "CacheVOL (paper 002, Zheng et al.)" in found.paragraphs[0]
    (block,) = found.blocks
    (_, (items,)), (_, (statements,)) = block.folded
    assert [cells[0].text for _, cells in items.rows] == ["Table II", "Table III", "Figure 4", "Figure 5"]
    by_name = {cells[-1].text: [cell.text for cell in cells] for _, cells in statements.rows}
    assert "cache-10" not in by_name and "vast-01" not in by_name  # of no item; of another paper
    assert by_name["cache-08"][1:4] == [
        "bandwidth of a node", "500 of 700 MB/s", "567.5 MB/s"
    ]  # fmt: skip
    assert by_name["cache-08"][4].startswith("paper agrees with itself: ")
    assert by_name["cache-03"][3] == "" and by_name["cache-03"][4].startswith("cannot: ")
    assert by_name["cache-07"][4].startswith("differs (topology): where the NVMe of all nodes")


def test_a_damaged_book_hides_no_other_result(monkeypatch: pytest.MonkeyPatch) -> None:
    def damaged() -> None:
        raise UserError("answers.json: not valid JSON")

    monkeypatch.setattr(section, "read_book", damaged)
    (block,) = made("caching").blocks
    assert len(block.folded) == 1


def test_a_study_is_found_by_its_whole_name() -> None:
    vast = next(p for p in load_papers() if p.name == "VAST")
    assert [i.item for i in items_of(vast, "vast-2024")] == ["Figure 2", "Figure 3"]
    assert [i.item for i in items_of(vast, "vast-2024-dl")] == ["Figure 4", "Figure 5", "Figure 6"]
