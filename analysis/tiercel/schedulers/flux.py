"""Flux, through Snakemake's cluster-generic executor and the site's own scripts."""

from __future__ import annotations

import shlex

from tiercel.schedulers.base import Request, Scheduler, schedulers
from tiercel.schedulers.scripts import ScriptsMixin


@schedulers.register("flux")
class Flux(ScriptsMixin, Scheduler):
    name = "flux"
    programs = ("flux",)
    allocates = True

    def resources(self, request: Request) -> dict[str, int | str]:
        """Return what every script gets, and the file systems that Rabbits make for this job: one word of the
        submission's command line."""
        directives = "\n".join(request.each("allocate"))
        return {**super().resources(request), "allocate": shlex.quote(directives or "none")}
