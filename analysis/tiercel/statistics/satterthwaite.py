"""Degrees of freedom of a sum of variances."""

from __future__ import annotations

from collections.abc import Sequence


def satterthwaite(parts: Sequence[tuple[float, float]]) -> float:
    """Return the degrees of freedom of a sum of variances (F. E. Satterthwaite, Biometrics 2, 1946)."""
    whole = sum(variance for variance, _ in parts)
    weight = sum(variance**2 / freedom for variance, freedom in parts if variance > 0)
    return whole**2 / weight if weight > 0 else 1.0
