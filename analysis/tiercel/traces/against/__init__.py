"""Two traces side by side: what differs, by how much, in words."""

from tiercel.traces.against.compare import Comparison, compare

__all__ = ["Comparison", "compare"]
