"""Placement: which file belongs on which storage system, how sure, and what it gains (paper 003, sections
III, V-VII)."""
