"""Schedulers: how a batch of runs becomes a job. One file each."""

from tiercel.schedulers import cobalt, flux, lsf, slurm
from tiercel.schedulers.base import Job, Request, Scheduler, scheduler_of, schedulers

__all__ = [
    "Job",
    "Request",
    "Scheduler",
    "cobalt",
    "flux",
    "lsf",
    "scheduler_of",
    "schedulers",
    "slurm",
]
