"""Cobalt (Argonne), through Snakemake's cluster-generic executor and the site's own scripts."""

from __future__ import annotations

from tiercel.schedulers.base import Scheduler, schedulers
from tiercel.schedulers.scripts import ScriptsMixin


@schedulers.register("cobalt")
class Cobalt(ScriptsMixin, Scheduler):
    name = "cobalt"
    programs = ("qsub", "qstat", "qdel")
    marks = ("cqsub", "nodelist", "partlist")
