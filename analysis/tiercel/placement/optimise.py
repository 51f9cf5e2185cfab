"""The best assignment of bundles to systems under capacity limits: a mixed-integer linear program.

Solved by HiGHS through scipy, to proven optimality (or to within the gap that the plan then states). Its
relaxation, in which a bundle may be split, is solved first: a choice that would cost more than the relaxation
leaves for is in no best assignment, and what remains for the search are the few bundles at the edge of the
capacities (Martello and Toth, Knapsack Problems, 1990, section 2.4). Ten thousand bundles take a second, not
half a minute.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import LinearConstraint, linprog, milp
from scipy.sparse import coo_matrix

from tiercel.errors import UserError

#: Seconds after which the best assignment found so far is taken.
TIME_LIMIT_S = 60.0
#: Share of the largest cost below which the solver's arithmetic tells nothing apart.
_EXACT = 1e-9
#: Share of a capacity by which a solver's answer may exceed it.
_TOLERANCE = 1e-6

#: Searches in which what exceeds a capacity by less than that is ruled out.
_TRIES = 4

_Floats = npt.NDArray[np.float64]
_Choice = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Assignment:
    """`system[b]` is the number of bundle b's system; `gap` how far at most the optimum is (share)."""

    system: _Choice
    gap: float


@dataclass(frozen=True)
class _Problem:
    """The choices that are allowed: choice n puts `bundle[n]` on `system[n]`, for `cost[n]` (scaled)."""

    bundle: npt.NDArray[np.int64]
    system: npt.NDArray[np.int64]
    cost: _Floats
    size: _Floats  # of each bundle
    capacity: _Floats  # of each system

    def rows(self, chosen: npt.NDArray[np.bool_]) -> tuple[coo_matrix, coo_matrix]:
        """Return, for the `chosen` choices: each bundle is in one place; what each limited system holds."""
        bundle, system = self.bundle[chosen], self.system[chosen]
        column = np.arange(len(bundle))
        bundles, limited = np.unique(bundle), self.limited
        once = coo_matrix(
            (np.ones(len(column)), (np.searchsorted(bundles, bundle), column)),
            shape=(len(bundles), len(column)),
        )
        # In shares of the capacity, so that bytes in the billions do not swamp the solver's tolerances.
        held = np.isin(system, limited)
        share = self.size[bundle[held]] / np.maximum(self.capacity[system[held]], 1.0)
        place = (np.searchsorted(limited, system[held]), column[held])
        return once, coo_matrix((share, place), shape=(len(limited), len(column)))

    @property
    def limited(self) -> npt.NDArray[np.int64]:
        return np.flatnonzero(np.isfinite(self.capacity))

    def fits(self, answer: _Choice) -> bool:
        used = np.bincount(answer, self.size, len(self.capacity))
        return bool((used <= self.capacity).all())


def assign(cost: _Floats, size: _Floats, capacity: _Floats, allowed: npt.NDArray[np.bool_]) -> Assignment:
    """Return the assignment of least cost.

    `cost` and `allowed`: shape (bundles, systems), cost in seconds. `size`: bytes of each bundle. `capacity`:
    bytes of each system (inf: no limit). UserError when no allowed assignment fits.
    """
    bundles = len(cost)
    if bundles == 0:
        return Assignment(np.empty(0, dtype=np.int64), 0.0)
    scale = max(float(np.abs(cost).max()), 1e-12)
    # A bundle larger than a system is not worth a try there.
    bundle, system = np.nonzero(allowed & (size[:, None] <= capacity))
    if len(np.unique(bundle)) < bundles:
        raise _nothing_fits()
    problem = _Problem(bundle, system, cost[bundle, system] / scale, size, capacity)
    everything = np.ones(len(bundle), dtype=bool)
    once, held = problem.rows(everything)
    relaxed = linprog(
        problem.cost,
        A_ub=held,
        b_ub=np.ones(held.shape[0]),
        A_eq=once,
        b_eq=np.ones(bundles),
        bounds=(0, None),
    )
    if relaxed.x is None:
        raise _nothing_fits()
    matrix = np.full(cost.shape, np.inf)
    matrix[bundle, system] = problem.cost
    known = _rounded(problem, matrix, relaxed.x)
    if known is None:
        return _search(problem, everything, None, matrix)
    # What a choice costs beyond the relaxation, whatever else is chosen.
    extra = problem.cost - once.T @ relaxed.eqlin.marginals - held.T @ relaxed.ineqlin.marginals
    room = matrix[np.arange(bundles), known].sum() - relaxed.fun
    return _search(problem, (extra <= room + _EXACT) | (known[bundle] == system), known, matrix)


def _nothing_fits() -> UserError:
    return UserError(
        "no assignment fits: the files that must stay where they are, or together, need more than the "
        "capacity of their system; raise --capacity, or name fewer files with --together"
    )


def _rounded(problem: _Problem, cost: _Floats, part: _Floats) -> _Choice | None:
    """Return an assignment near the relaxation's, or None where putting split bundles in turn finds none."""
    bundles, systems = cost.shape
    parts = np.zeros((bundles, systems))
    parts[problem.bundle, problem.system] = part
    answer = parts.argmax(axis=1)
    split = np.flatnonzero(parts.max(axis=1) < 1 - 1e-7)
    whole = np.ones(bundles, dtype=bool)
    whole[split] = False
    left = problem.capacity - np.bincount(answer[whole], problem.size[whole], systems)
    if (left < 0).any():
        return None
    for bundle in split[np.argsort(-problem.size[split])]:
        place = _cheapest(cost[bundle], problem.size[bundle] <= left)
        if place is None:
            return None
        answer[bundle] = place
        left[place] -= problem.size[bundle]
    # What room the rounding left is given to the bundles that gain most for their size.
    gain = cost[np.arange(bundles), answer] - cost.min(axis=1)
    for bundle in np.argsort(-gain / np.maximum(problem.size, 1.0)):
        if gain[bundle] <= 0:
            break
        size, now = problem.size[bundle], answer[bundle]
        place = _cheapest(cost[bundle], (size <= left) | (np.arange(systems) == now))
        if place is not None and place != now:
            left[now] += size
            left[place] -= size
            answer[bundle] = place
    return answer if problem.fits(answer) else None


def _cheapest(cost: _Floats, possible: npt.NDArray[np.bool_]) -> int | None:
    place = int(np.where(possible, cost, np.inf).argmin())
    return place if possible[place] and np.isfinite(cost[place]) else None


def _search(
    problem: _Problem, open_: npt.NDArray[np.bool_], known: _Choice | None, cost: _Floats
) -> Assignment:
    """Search the best assignment among the choices `open_`; `known` is one that fits, if there is one."""
    once, held = problem.rows(open_)
    bundle, system, price = problem.bundle[open_], problem.system[open_], problem.cost[open_]
    everyone = np.arange(len(cost))
    found: list[_Choice] = [] if known is None else [known]
    bound = -np.inf
    covers: list[LinearConstraint] = []
    for limit in (*(1.0,) * _TRIES, 1.0 - 10 * _TOLERANCE):
        answer = milp(
            price,
            integrality=np.ones(len(price)),
            constraints=[LinearConstraint(once, 1, 1), LinearConstraint(held, -np.inf, limit), *covers],
            options={"time_limit": TIME_LIMIT_S, "mip_rel_gap": 0.0},
        )
        if limit == 1.0 and answer.mip_dual_bound is not None:
            bound = max(bound, float(answer.mip_dual_bound))
        if answer.x is None:
            break
        choice = np.zeros(len(cost), dtype=np.int64)
        taken = answer.x > 0.5
        choice[bundle[taken]] = system[taken]
        if problem.fits(choice):
            found.append(choice)
            break
        # Over a capacity by less than the solver can see: once more, not all of these on that system, which
        # rules out nothing that fits; at last with that much less of each capacity, which may.
        for full in np.flatnonzero(
            np.bincount(choice, problem.size, len(problem.capacity)) > problem.capacity
        ):
            together = taken & (system == full)
            covers.append(LinearConstraint(together.astype(float)[None, :], -np.inf, together.sum() - 1))
    if not found:
        raise _nothing_fits()
    best = min(found, key=lambda one: float(cost[everyone, one].sum()))
    value = float(cost[everyone, best].sum())
    gap = max(0.0, value - bound) / abs(value) if value and np.isfinite(bound) else 0.0
    return Assignment(best, gap if gap > _TOLERANCE else 0.0)
