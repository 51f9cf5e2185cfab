"""The contests of ``tiercel share bench``: which jobs compete by which policy, and their shares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tiercel.layers.fairshare.protocol import Job

#: Whose deviations are compared: the default, the paper's, and the paper's opponents in their fair versions.
SCHEDULERS = ("stride", "token", "gift", "tbf")


@dataclass(frozen=True)
class Contest:
    """Jobs that compete under a policy, and the shares that it entitles them to."""

    name: str
    policy: str
    jobs: Sequence[tuple[Job, int]]
    """Each with its number of processes."""
    entitled: dict[str, float]
    scheduler: str = "stride"
    options: tuple[str, ...] = field(default=())


def contests() -> list[Contest]:
    """Return the contests of the paper's section 5.3, with numbers of processes for a small machine.

    The second one, two jobs with equal shares, goes by each of ``SCHEDULERS``, for their deviations.

    Entitled shares by hand: size-fair 4:1 is 4/5 and 1/5; user-fair gives each of two users a half, and a
    user's two jobs halves of that; user-then-size splits a user's half 1:2 and 4:6; group-user-size gives
    each group a half, each of group 2's users a half of that, and splits by size within a user.
    """
    found = [
        Contest("size-fair 4:1", "size-fair", [(Job("big", size=4), 8), (Job("small"), 4)],
                {"big": 4 / 5, "small": 1 / 5}),
        Contest("job-fair", "job-fair", [(Job("big", size=4), 8), (Job("small"), 4)],
                {"big": 1 / 2, "small": 1 / 2}),
        Contest("user-fair, 2 users", "user-fair",
                [(Job("a1", user=1), 4), (Job("a2", user=1), 4), (Job("b1", user=2), 4)],
                {"a1": 1 / 4, "a2": 1 / 4, "b1": 1 / 2}),
        Contest("user-then-size-fair", "user-then-size-fair",
                [(Job("a1", user=1, size=1), 3), (Job("a2", user=1, size=2), 3),
                 (Job("b1", user=2, size=4), 3), (Job("b2", user=2, size=6), 3)],
                {"a1": 1 / 6, "a2": 1 / 3, "b1": 1 / 5, "b2": 3 / 10}),
        Contest("group-user-size-fair", "group-user-size-fair",
                [(Job("g1", group=1, user=1), 4), (Job("g2u2a", group=2, user=2, size=2), 3),
                 (Job("g2u2b", group=2, user=2, size=3), 3), (Job("g2u3", group=2, user=3), 3)],
                {"g1": 1 / 2, "g2u2a": 1 / 10, "g2u2b": 3 / 20, "g2u3": 1 / 4}),
    ]  # fmt: skip
    first = found[1]
    found += [
        Contest(f"{first.name} by {scheduler}", first.policy, first.jobs, first.entitled, scheduler)
        for scheduler in SCHEDULERS[1:]
    ]
    return found
