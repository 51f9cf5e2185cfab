"""What a plan needs to know of a site's storage systems, whoever knows it: a trained model, or measurements.

``model.PlacementModel`` has learnt it from a sweep, ``nearest.Measurements`` looks it up in any study.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import pandas as pd


@dataclass(frozen=True)
class Judgement:
    """How sure it is that one system is faster than another. Ratios are log2 of slower over faster time."""

    confidence: float
    low: float
    high: float
    """The ratio lies between the two with 90 %."""
    floor: float
    """A ratio up to this is noise."""
    doubt: str = ""
    """Why it is not sure whatever `confidence` is asked for; empty where nothing says so."""


class Estimator(Protocol):
    """Expected times of file parts (``features.parts_of``) and of synchronisations, on every system."""

    site: str
    systems: list[str]
    notes: list[str]

    @property
    def basis(self) -> str:
        """What it rests on, in words: ``model of placement-sweep``."""

    @property
    def study(self) -> str:
        """The study that was measured."""

    def data_seconds(self, parts: pd.DataFrame) -> pd.DataFrame:
        """Return seconds of each part without its synchronisations: shape (parts, systems)."""

    def sync_seconds(self, files: pd.DataFrame) -> pd.DataFrame:
        """Return seconds of each file's `syncs` synchronisations: shape (files, systems)."""

    def outside(self, parts: pd.DataFrame) -> list[str]:
        """Return for each part why it cannot be told, in words; empty where it can."""

    def outside_syncs(self, files: pd.DataFrame) -> list[str]:
        """Return for each file why its synchronisations cannot be told; empty where they can."""

    def rests_on(self, parts: pd.DataFrame) -> list[str]:
        """Return for each part the measurement that its times come from, and how far that is."""

    def syncs_rest_on(self, files: pd.DataFrame) -> list[str]:
        """Return for each file the same for its synchronisations; empty for none."""

    def judge(self, better: str, worse: str, ratio: float, rests_on: Mapping[str, float]) -> Judgement:
        """Return how sure it is that `better` is faster when expected faster by 2**ratio.

        `rests_on`: the share of the time that each of `rests_on` stands for.
        """
