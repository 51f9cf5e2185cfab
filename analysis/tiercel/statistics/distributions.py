"""The three distributions that judgements need: Student's t, Fisher's F and chi-squared, of single numbers.

From `scipy.special`, whose functions are what `scipy.stats` calls for them: the same digits. Importing
`scipy.stats` makes a hundred other distributions and takes half a second of every command that judges
anything. Degrees of freedom may be fractions; what is no number, or has no freedom, gives NaN.
"""

from __future__ import annotations

from scipy import special


def t_beyond(value: float, freedom: float) -> float:
    """Return the chance that Student's t is further from 0 than `value`, on either side."""
    return 2 * float(special.stdtr(freedom, -abs(value)))


def t_bound(chance: float, freedom: float) -> float:
    """Return what Student's t is above with `chance`."""
    return -float(special.stdtrit(freedom, chance))


def f_above(value: float, over: float, under: float) -> float:
    """Return the chance that Fisher's F, of the freedoms `over` and `under` its line, is above `value`."""
    return float(special.fdtrc(over, under, value))


def f_bound(chance: float, over: float, under: float) -> float:
    """Return what Fisher's F is above with `chance`."""
    return float(special.fdtri(over, under, 1 - chance))


def chi2_bound(chance: float, freedom: float) -> float:
    """Return what chi-squared is above with `chance`."""
    return float(special.chdtri(freedom, chance))
