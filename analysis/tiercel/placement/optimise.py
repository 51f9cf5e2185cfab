"""The best assignment of bundles to systems under capacity limits: a mixed-integer linear program.

Solved by HiGHS through scipy, to proven optimality (or to within the gap that the plan then states).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_matrix

from tiercel.errors import UserError

#: Seconds after which the best assignment found so far is taken.
TIME_LIMIT_S = 60.0


@dataclass(frozen=True)
class Assignment:
    """`system[b]` is the number of bundle b's system; `gap` how far at most the optimum is (share)."""

    system: npt.NDArray[np.int64]
    gap: float


def assign(
    cost: npt.NDArray[np.float64],
    size: npt.NDArray[np.float64],
    capacity: npt.NDArray[np.float64],
    allowed: npt.NDArray[np.bool_],
) -> Assignment:
    """Return the assignment of least cost.

    `cost` and `allowed`: shape (bundles, systems), cost in seconds. `size`: bytes of each bundle. `capacity`:
    bytes of each system (inf: no limit). UserError when no allowed assignment fits.
    """
    bundles, systems = cost.shape
    if bundles == 0:
        return Assignment(np.empty(0, dtype=np.int64), 0.0)
    column = np.arange(bundles * systems)
    bundle, system = column // systems, column % systems
    once = coo_matrix((np.ones(len(column)), (bundle, column)), shape=(bundles, len(column)))
    # In shares of the capacity, so that bytes in the billions do not swamp the solver's tolerances.
    limited = np.flatnonzero(np.isfinite(capacity))
    constraints = [LinearConstraint(once, 1, 1)]
    if len(limited):
        row = {int(s): n for n, s in enumerate(limited)}
        chosen = np.isin(system, limited)
        share = size[bundle[chosen]] / np.maximum(capacity[system[chosen]], 1.0)
        place = (np.array([row[int(s)] for s in system[chosen]], dtype=int), column[chosen])
        constraints.append(
            LinearConstraint(coo_matrix((share, place), shape=(len(limited), len(column))), -np.inf, 1)
        )
    scale = max(float(np.abs(cost).max()), 1e-12)
    answer = milp(
        cost.ravel() / scale,
        integrality=np.ones(len(column)),
        bounds=Bounds(0, allowed.ravel().astype(float)),
        constraints=constraints,
        options={"time_limit": TIME_LIMIT_S},
    )
    if answer.x is None:
        raise UserError(
            "no assignment fits: the files that must stay where they are, or together, need more than the "
            "capacity of their system; raise --capacity, or name fewer files with --together"
        )
    chosen_system = answer.x.reshape(bundles, systems).argmax(axis=1)
    return Assignment(chosen_system.astype(np.int64), float(getattr(answer, "mip_gap", 0.0) or 0.0))
