"""Speed and memory of trace analysis, on generated traces."""

from benchmarks.traces.bench import main

__all__ = ["main"]
