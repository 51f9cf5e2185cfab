"""Sections of the report that belong to one subject. One file each."""

from tiercel.report.sections import (
    caching,
    ceilings,
    deep_learning,
    facts,
    inference,
    placement,
    recommendations,
    sharing,
    traces,
)
from tiercel.report.sections.base import Block, Context, Point, Section, make_sections, sections

__all__ = [
    "Block",
    "Context",
    "Point",
    "Section",
    "caching",
    "ceilings",
    "deep_learning",
    "facts",
    "inference",
    "make_sections",
    "placement",
    "recommendations",
    "sections",
    "sharing",
    "traces",
]
