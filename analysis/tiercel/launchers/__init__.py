"""Launchers: what starts an engine on all processes of a run. One file each."""

from tiercel.launchers import aprun, flux, fork, ibrun, jsrun, lrun, mpiexec, srun
from tiercel.launchers.base import Launcher, launchers, resolve

__all__ = [
    "Launcher",
    "aprun",
    "flux",
    "fork",
    "ibrun",
    "jsrun",
    "launchers",
    "lrun",
    "mpiexec",
    "resolve",
    "srun",
]
