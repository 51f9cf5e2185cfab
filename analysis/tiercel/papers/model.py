"""What is known of a paper: its items (tables, figures...) and its statements, as the files in data/ say."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator, model_validator

from tiercel.documents import Document
from tiercel.papers.published import worked_out

#: How an answer is come by. ``published``: from other figures of the same paper; ``none``: it is not.
How = Literal["measured", "simulated", "topology", "published", "none"]


class Item(Document):
    """A table, figure, listing or equation of a paper, or a numbered experiment without one."""

    item: str
    """As the paper counts it: ``Figure 3``, ``Table I``."""
    section: str
    shows: str
    parameters: str = "none"
    how: How
    site: str | None = None
    """The site file of the machine that the paper used."""
    paper_size: list[str] = []
    """Commands at the paper's parameters, on its site."""
    quick: list[str] = []
    """The same at a size that a laptop bears, in minutes."""
    simulated: list[str] = []
    """Commands that simulate it at the paper's parameters on any machine: told beside, never counted."""
    figure: str = "none"
    """Where what comes out is drawn."""
    state: Literal["whole", "part", "missing", "drawing"]
    """``drawing``: it shows an idea or a design, and there is nothing to get."""
    lacks: str = ""
    """What deviates from the paper or is not there, and why; of a drawing, where ours is described."""

    @model_validator(mode="after")
    def _says_what_it_lacks(self) -> Item:
        if (self.state == "whole") == bool(self.lacks):
            raise ValueError(f"{self.item}: lacks is for every state but whole, and they need it")
        if self.state == "drawing" and self.how != "none":
            raise ValueError(f"{self.item}: nothing is got of a drawing: how: none")
        if self.simulated and self.how == "simulated":
            raise ValueError(f"{self.item}: simulated is beside what is measured; how: simulated says it all")
        if self.how == "none" and (self.paper_size or self.quick):
            raise ValueError(f"{self.item}: how: none excludes commands")
        if self.how != "none" and not (self.paper_size or self.quick):
            raise ValueError(f"{self.item}: how: {self.how} needs a command")
        return self


class Answer(Document):
    """How a statement is answered: by a figure of ours within bounds, as an input, or why it cannot be."""

    how: How
    first: list[str] = []
    """Commands that come before, whatever they print: a study that is measured, an earlier step."""
    command: list[str] = []
    """What gives our figure, one command or several; each prints JSON, from which `readings` takes it."""
    figures: dict[str, float] = {}
    """Other figures of the paper, by the names that `formula` has for them."""
    formula: str | None = None
    """What gives the figure from those: ``how: published``."""
    at_least: float | None = None
    at_most: float | None = None
    better: Literal["higher", "lower"] | None = None
    """On which side beyond the bounds a figure is better than the paper's; None: on neither."""
    bounds: str = ""
    """Why these bounds: the paper gives a number, and no two machines the same one."""
    input: bool = False
    """The paper's figure went into a site file or a fit: it cannot hold or fail here."""
    why: str = ""
    """What the answer means, or why there is none."""

    @field_validator("command", mode="before")
    @classmethod
    def _one_is_a_list(cls, value: object) -> object:
        return [value] if isinstance(value, str) else value

    @model_validator(mode="after")
    def _is_an_answer_or_a_reason(self) -> Answer:
        bounded = self.at_least is not None or self.at_most is not None
        if (self.how == "published") != bool(self.formula):
            raise ValueError("how: published needs a formula, and a formula needs how: published")
        if self.formula:
            worked_out(self.formula, self.figures)  # ValueError for what is no arithmetic
            if self.command or self.input or not bounded:
                raise ValueError(
                    "a formula needs at_least or at_most, and excludes a command and input: true"
                )
        elif not self.command:
            if not self.why or self.first:
                raise ValueError("an answer without a command needs a reason (why), and has nothing first")
            if self.how != "none" and not self.input:
                raise ValueError(f"how: {self.how} needs a command, or input: true")
        elif self.input or self.how == "none":
            raise ValueError("a command excludes input: true and how: none")
        elif not bounded:
            raise ValueError("a command needs at_least or at_most")
        return self

    @property
    def commands(self) -> str:
        """All its commands in one line, as the book keeps them."""
        return "; ".join([*self.first, *self.command])


class Statement(Document):
    """A sentence of a paper that can hold or fail."""

    id: str
    where: str
    """Section, figure, table."""
    says: str
    quantity: str
    value: str
    """The paper's figure."""
    unit: str
    items: list[str] = []
    """The items that it is about."""
    answer: Answer


class Paper(Document):
    """One paper: what identifies it, its items in their order, its statements."""

    paper: str = Field(pattern=r"^\d{3}$")
    name: str
    title: str
    by: str
    items: list[Item]
    statements: list[Statement]

    @model_validator(mode="after")
    def _names_are_its_own(self) -> Paper:
        names = [item.item for item in self.items]
        ids = [statement.id for statement in self.statements]
        for words in (names, ids):
            if twice := sorted({word for word in words if words.count(word) > 1}):
                raise ValueError(f"written twice: {', '.join(twice)}")
        for statement in self.statements:
            if unknown := sorted(set(statement.items) - set(names)):
                raise ValueError(f"{statement.id}: no such item: {', '.join(unknown)}")
        return self
