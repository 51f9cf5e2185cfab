"""IBM Spectrum LSF, through Snakemake's cluster-generic executor and the site's own scripts."""

from __future__ import annotations

from tiercel.schedulers.base import Scheduler, schedulers
from tiercel.schedulers.scripts import ScriptsMixin


@schedulers.register("lsf")
class LSF(ScriptsMixin, Scheduler):
    name = "lsf"
    programs = ("bsub", "bjobs", "bkill")
