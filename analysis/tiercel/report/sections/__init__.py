"""Sections of the report. One file each, here or in the folder of a subject."""

from tiercel.report.sections.base import Block, Context, Point, Section, make_sections, sections

__all__ = [
    "Block",
    "Context",
    "Point",
    "Section",
    "make_sections",
    "sections",
]
