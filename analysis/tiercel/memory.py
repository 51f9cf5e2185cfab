"""The memory of this machine that programs can still have."""

from __future__ import annotations

from pathlib import Path


def available_memory(proc: Path = Path("/proc")) -> int | None:
    """Return the bytes that can be had without swapping (MemAvailable, proc_meminfo(5)); None where Linux
    does not say."""
    try:
        lines = (line.split() for line in (proc / "meminfo").read_text(encoding="ascii").splitlines())
        return next(int(words[1]) * 1024 for words in lines if words[:1] == ["MemAvailable:"])
    except (OSError, ValueError, StopIteration):
        return None
