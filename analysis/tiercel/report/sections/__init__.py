"""Sections of the report that belong to one subject. One file each."""

from tiercel.report.sections.base import Context, Section, make_sections, sections, table

__all__ = ["Context", "Section", "make_sections", "sections", "table"]
