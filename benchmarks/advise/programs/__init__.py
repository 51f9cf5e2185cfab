"""Real programs that neither the placement model nor its tests have seen. One file a kind."""

from benchmarks.advise.programs import (
    analysis,
    archives,
    building,
    compression,
    databases,
    images,
    loading,
    molecules,
    newer,
    sequences,
)
from benchmarks.advise.programs.base import Program, programs

__all__ = [
    "Program",
    "analysis",
    "archives",
    "building",
    "compression",
    "databases",
    "images",
    "loading",
    "molecules",
    "newer",
    "programs",
    "sequences",
]
