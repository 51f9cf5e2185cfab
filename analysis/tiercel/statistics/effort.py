"""How many more repetitions would decide a comparison that is undecided.

By the two-level model (:mod:`tiercel.statistics.placements`), were the difference and the variances what they
seem: repetitions make the part of the variance smaller that is theirs; the variance between placements stays.
Storages that changed against each other over the rounds go on to do so: further rounds make that part smaller
too, but slowly, since each is like the one before (:func:`tiercel.statistics.wander.carried`), and a claim
needs what this change alone does not explain. Decided is a claim at the next look, or "the same" within the
margin, whichever needs fewer. The estimate of a difference varies, so some more are asked for: with those the
chance is four in five.
"""

from __future__ import annotations

import math

from tiercel.statistics.comparison import ALPHA, Parts
from tiercel.statistics.distributions import t_bound
from tiercel.statistics.satterthwaite import satterthwaite
from tiercel.statistics.verdict import MARGIN
from tiercel.statistics.wander import EXPLAINS

#: More repetitions than these on each side nobody waits for: then it is placements that are not known.
MOST = 100
#: Standard deviations by which an estimate falls short with a chance of one in five.
_ROOM = 0.84


def repetitions_needed(parts: Parts | None, family: int, spend: float, margin: float = MARGIN) -> int | None:
    """Return how many more repetitions on each side (at each scale) would decide; None for more than `MOST`.

    `family`: the comparisons that a claim is corrected for; `spend`: the next look's part of the 5 %.
    """
    if parts is None or not math.isfinite(parts.difference):
        return None
    away, inside = abs(parts.difference), math.log(margin)
    if math.isfinite(parts.farthest) and abs(math.log(parts.farthest)) > inside:
        inside = -math.inf  # scales that differ are not the same, however sure that is over all
    if math.sqrt(parts.placed) * 2 > max(away, inside - away):
        return None  # however many repetitions
    for more in range(1, MOST + 1):
        repeated, changed = parts.repeated(more), parts.changed.after(more)
        stays = [(parts.placed, parts.placed_freedom), (changed.variance, changed.freedom)]
        whole = repeated[0] + sum(part for part, _ in stays)
        freedom = satterthwaite([repeated, *stays])
        room = _ROOM * math.sqrt(repeated[0] + changed.variance)
        claim = t_bound(ALPHA * spend / family / 2, freedom) * math.sqrt(whole)
        alone = t_bound(EXPLAINS / 2, changed.freedom) * math.sqrt(changed.variance)
        same = t_bound(ALPHA / 2, freedom) * math.sqrt(whole)
        if away >= max(claim, alone) + room or away + same + room <= inside:
            return more
    return None
