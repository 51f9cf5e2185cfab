"""Flux, through Snakemake's cluster-generic executor and the site's own scripts."""

from __future__ import annotations

from tiercel.schedulers.base import Scheduler, schedulers
from tiercel.schedulers.scripts import ScriptsMixin


@schedulers.register("flux")
class Flux(ScriptsMixin, Scheduler):
    name = "flux"
    programs = ("flux",)
