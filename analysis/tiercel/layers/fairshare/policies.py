"""Names of policies and schedulers, checked before a server is started."""

from __future__ import annotations

from tiercel.errors import UserError, suggest

#: The schedulers that a server runs. The simulator has two more: GIFT and TBF as published.
SCHEDULERS = ("stride", "token", "gift", "tbf", "fifo")

_LEVELS = ("user", "group", "job", "size", "priority")


def check_policy(name: str) -> str:
    """Return `name` if it is a policy; UserError with the nearest one otherwise.

    A policy is ``fifo``, or levels joined by ``-`` or ``-then-`` and ended by ``-fair``.
    """
    if name == "fifo":
        return name
    words = _words(name)
    wrong = [word for word in words if word not in _LEVELS]
    if wrong or not words or not name.endswith("-fair"):
        known = [
            "fifo",
            *(f"{level}-fair" for level in _LEVELS),
            "user-then-size-fair",
            "group-user-size-fair",
        ]
        raise UserError(f"policy {name!r}: {suggest(name, known)}")
    return name


def levels_of(policy: str) -> tuple[str, ...]:
    """Return the levels of a policy's tree, outermost first; the last one tells single jobs apart.

    ``fifo`` has none. As ``Policy::tree_levels`` of native/fairshare/policy: jobs stand last where the policy
    does not name them.
    """
    if policy == "fifo":
        return ()
    words = _words(policy)
    return (*words, "job") if words[-1] in ("user", "group") else tuple(words)


def _words(policy: str) -> list[str]:
    return [word for word in policy.removesuffix("-fair").split("-") if word != "then"]
