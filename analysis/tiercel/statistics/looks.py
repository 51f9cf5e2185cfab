"""Several looks at one study: what each of them may claim.

What a study leaves undecided can be measured further (`tiercel evaluate --decide`), because of what was seen.
Whoever looks again and again, each time at 5 %, finds a difference between equal systems in the end. So the
5 % are spent over the looks (group-sequential tests with alpha spending: K. K. G. Lan and D. L. DeMets,
Biometrika 70, 1983; a Bonferroni bound over the looks, which asks nothing of how the later ones were chosen):
the study itself has nineteen twentieths (with less, studies that nobody measures further would lose power),
the first further look half of the rest, each one after it half of the one before. What one look claims stays
claimed.
"""

from __future__ import annotations

#: The study's own part.
_FIRST = 0.95


def share(look: int) -> float:
    """Return the part of the 5 % that a look may spend (0: the study itself; 1, 2, ...: further ones)."""
    return _FIRST if look == 0 else (1 - _FIRST) * 0.5**look
