"""What the schedulers have in common that are reached by the site's own scripts.

The profile hands the resources to ``site-configs/<site>/submit`` as words. Jobs that a killed Snakemake left
behind need no care here: given a status script, the cluster-generic executor takes them up again.
"""

from __future__ import annotations

from tiercel.schedulers.base import Request, account


class ScriptsMixin:
    """Resources for scripts: the account stays out of them, each script reads it from the environment."""

    def resources(self, request: Request) -> dict[str, int | str]:
        account(request.settings)  # fails early, in words, where it is not set
        return {
            "nodes": request.nodes,
            "runtime": request.minutes,
            "queue": request.settings.partition or "default",
        }
