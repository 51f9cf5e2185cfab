"""What a section of the report is: a part of the page that one subject (placement, sharing, ...) adds.

To add one, write a file with a function under ``@sections.register("name")`` in this folder,
or name it in a subject (`tiercel.subjects`). It looks into the results folder, and returns None where there
is nothing of its subject.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tiercel.pages.tables import Table
from tiercel.registry import Registry
from tiercel.report.data import Results
from tiercel.report.picture import Picture
from tiercel.report.recommend import GroupAdvice, Recommendation
from tiercel.site.model import Site
from tiercel.subjects import fill


@dataclass(frozen=True)
class Context:
    """What a section is made from."""

    folder: Path
    """``results/<site>``."""
    figures: Path
    """Where its figures go: ``report/figures`` (see `tiercel.report.picture.picture`)."""
    site: Site
    results: Results
    """The study's rows and statistics; ``results.study`` is the study."""
    recommended: tuple[list[Recommendation], list[GroupAdvice], list[str]] = ([], [], [])
    """Recommendations for workloads and groups of files, and notes on them."""


@dataclass(frozen=True)
class Point:
    """One thing that was found: a word for how grave it is, the sentence, what to do, and the figures."""

    severity: str
    kind: str
    """Style of the word, as for findings of the page: failure, caution, hint, fact..."""
    sentence: str
    advice: str = ""
    evidence: Table | None = None


@dataclass(frozen=True)
class Block:
    """A part of a section under a heading of its own. All texts are plain."""

    heading: str
    paragraphs: tuple[str, ...] = ()
    pictures: tuple[Picture, ...] = ()
    points: tuple[Point, ...] = ()
    folded: tuple[tuple[str, tuple[Table, ...]], ...] = ()
    """Tables that are shown when the reader opens them, each pile under its words."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Section:
    """A part of the page. All texts are plain: the page escapes them."""

    anchor: str
    heading: str
    paragraphs: tuple[str, ...] = ()
    pictures: tuple[Picture, ...] = ()
    tables: tuple[Table, ...] = ()
    notes: tuple[str, ...] = ()
    """Sentences below the tables: limits, what is simulated, where the files are."""
    early: bool = False
    """It answers the reader's question: shown right after the first screen."""
    blocks: tuple[Block, ...] = ()
    """Below all that, one block for each thing of which the section has several."""

    @property
    def all_pictures(self) -> tuple[Picture, ...]:
        return (*self.pictures, *(picture for block in self.blocks for picture in block.pictures))


SectionMaker = Callable[[Context], Section | None]

sections: Registry[SectionMaker] = Registry("report section", partial(fill, "sections", __name__))


def make_sections(context: Context) -> list[Section]:
    """Return the sections that have something to say, in the order of their names."""
    made = (sections.get(name)(context) for name in sections)
    return [section for section in made if section is not None]
