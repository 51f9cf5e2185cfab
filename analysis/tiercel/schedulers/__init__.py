"""Schedulers: how a batch of runs becomes a job. One file each."""

from tiercel.schedulers.base import Job, Request, Scheduler, scheduler_of, schedulers

__all__ = ["Job", "Request", "Scheduler", "scheduler_of", "schedulers"]
