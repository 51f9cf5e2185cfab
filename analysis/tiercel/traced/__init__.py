"""The traced runs of a study as tables: one row for each run, one for each run and group of files."""

from tiercel.traced.tables import collect, load_trace_groups, load_traces

__all__ = ["collect", "load_trace_groups", "load_traces"]
