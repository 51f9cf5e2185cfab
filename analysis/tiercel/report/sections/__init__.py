"""Sections of the report that belong to one subject. One file each."""

from tiercel.report.sections import caching, ceilings, deep_learning, placement, recommendations, sharing
from tiercel.report.sections.base import Context, Section, make_sections, sections, table

__all__ = [
    "Context",
    "Section",
    "caching",
    "ceilings",
    "deep_learning",
    "make_sections",
    "placement",
    "recommendations",
    "sections",
    "sharing",
    "table",
]
