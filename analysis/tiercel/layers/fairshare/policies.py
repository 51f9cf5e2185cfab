"""Names of policies and schedulers, checked before a server is started."""

from __future__ import annotations

from tiercel.errors import UserError, suggest

#: The schedulers of native/fairshare/policy.
SCHEDULERS = ("stride", "token", "gift", "gift-published", "tbf", "tbf-published", "fifo")

_LEVELS = ("user", "group", "job", "size", "priority")


def check_policy(name: str) -> str:
    """Return `name` if it is a policy; UserError with the nearest one otherwise.

    A policy is ``fifo``, or levels joined by ``-`` or ``-then-`` and ended by ``-fair``.
    """
    if name == "fifo":
        return name
    words = [word for word in name.removesuffix("-fair").split("-") if word != "then"]
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
