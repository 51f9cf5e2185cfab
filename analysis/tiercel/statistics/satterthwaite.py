"""Degrees of freedom of a sum of variances."""

from __future__ import annotations

from collections.abc import Sequence


def satterthwaite(parts: Sequence[tuple[float, float]]) -> float:
    """Return the degrees of freedom of a sum of variances (F. E. Satterthwaite, Biometrics 2, 1946)."""
    whole = sum(variance for variance, _ in parts)
    weight = sum(variance**2 / freedom for variance, freedom in parts if variance > 0)
    return whole**2 / weight if weight > 0 else 1.0


def of_seen(parts: Sequence[tuple[float, float]]) -> float:
    """Return the degrees of freedom of a sum of variances that are themselves seen in few values, neither too
    few nor too many in the mean (B. L. Welch, Biometrika 34, 1947).

    By Satterthwaite's formula, parts that are alike and seem to differ by chance have too few.
    """
    whole = sum(variance for variance, _ in parts)
    weight = sum(variance**2 / (freedom + 2) for variance, freedom in parts if variance > 0)
    least = min((freedom for variance, freedom in parts if variance > 0), default=1.0)
    return max(whole**2 / weight - 2, least) if weight > 0 else 1.0
