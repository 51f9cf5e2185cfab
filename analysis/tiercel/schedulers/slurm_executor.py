"""Where Snakemake's Slurm executor (version 2.8) would wait for ever, or give up at once: mended in its
process.

Each was seen on a real Slurm:

- A job that lost its nodes for good (``PreemptMode=CANCEL``) is taken for one that Slurm puts in the queue
  again.
- Jobs whose state Slurm did not tell, some times in a row, are dropped: neither success nor failure is ever
  reported of them.
- A job that Slurm has forgotten (ended longer ago than ``MinJobAge``, or known to a controller that lost its
  state) is taken for one that waits.
- A submission fails while the controller is started anew, and so do all its retries within a minute.
- Each look at the jobs makes the wait for the next one 10 s longer, up to three minutes, while nothing ends:
  a batch that took 70 s was seen to have ended after 106, and the study waited meanwhile. Snakemake's own
  ``seconds-between-status-checks`` (10) holds again: one question to Slurm for all jobs.
- A job that was killed for memory goes again as often as ``retries`` says, and is killed as often.

Jobs of the first three kinds go again, as any that failed; what they had measured stays.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from functools import wraps
from typing import Any

#: Answers in a row that must lack a job before Slurm is asked for it by its number: what `sacct` tells comes
#: from a data base that learns of a job some seconds after it was submitted.
_LACKING = 3
#: How often Slurm is asked whether it takes jobs again.
_PAUSE_S = 5.0
#: What a state of Slurm means of a job that had no time to say anything.
_ENDED = {
    "TIMEOUT": "was ended at its time limit: a run took longer than was assumed (a smaller `timeout` of the "
    "study, or a longer walltime in site.yaml)",
    "NODE_FAIL": "lost a node",
    "CANCELLED": "was cancelled",
    "DEADLINE": "missed its deadline",
    "BOOT_FAIL": "got a node that did not boot",
}


def mend(plugin: Any) -> None:
    """Have the executor of `plugin` (the module snakemake_executor_plugin_slurm) see jobs that are gone."""
    executor = plugin.Executor
    if getattr(executor, "mended", False):
        return
    executor.mended = True
    watch = _Watch()
    plugin.query_job_status = watch.listening(plugin.query_job_status)
    executor.check_active_jobs = watch.checking(executor.check_active_jobs)
    executor.report_job_success = watch.settling(executor.report_job_success)
    executor.report_job_error = watch.settling(executor.report_job_error, watch.say_what_ended)
    ending = threading.Event()
    executor.run_job = _once_slurm_answers(executor.run_job, ending)
    for name in ("cancel", "shutdown"):
        setattr(executor, name, _setting(ending, getattr(executor, name)))


class _Watch:
    """What is known of the executor's jobs from one look at them to the next."""

    def __init__(self) -> None:
        self._told: dict[str, str] | None = None  # states by number, of the last look; None: no answer
        self._settled: set[str] = set()
        self._lacking: Counter[str] = Counter()
        self._silent = False

    def listening(self, ask: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(ask)
        async def listened(*words: Any) -> Any:
            found = await ask(*words)
            if found[0] is not None:
                self._told = found[0]
            return found

        return listened

    def settling(
        self, report: Callable[..., None], also: Callable[[Any], None] = lambda _: None
    ) -> Callable[..., None]:
        @wraps(report)
        def settled(executor: Any, job: Any, *words: Any, **more: Any) -> None:
            self._settled.add(str(job.external_jobid))
            also(job)
            report(executor, job, *words, **more)

        return settled

    def say_what_ended(self, job: Any) -> None:
        """Say what Slurm ended a job for, which cannot say so itself; Snakemake keeps it for the last try."""
        number = str(job.external_jobid)
        state = (self._told or {}).get(number, "").partition(" ")[0]  # sacct: "CANCELLED by 1000"
        if state == "OUT_OF_MEMORY":
            _say(f"job {number} was killed: its memory was used up; {_memory_asked()}. It does not go again")
            # The last of its tries: the next would end as this one.
            job.job.attempt = job.job.restart_times + 1
        elif state in _ENDED:
            _say(f"job {number} {_ENDED[state]}")

    def checking(self, check: Callable[..., AsyncIterator[Any]]) -> Callable[..., AsyncIterator[Any]]:
        @wraps(check)
        async def checked(executor: Any, jobs: Sequence[Any]) -> AsyncIterator[Any]:
            self._told = None
            async for _ in check(executor, jobs):
                pass  # those that it yields, and those that it drops, are all that nothing was reported of
            executor.next_seconds_between_status_checks = None  # as long as Snakemake's setting says
            if jobs:
                self._say_if_silent()
            for job in jobs:
                if str(job.external_jobid) in self._settled:
                    continue
                if why := self._gone(str(job.external_jobid)):
                    _say(f"job {job.external_jobid} {why}: submitted again, what it measured stays")
                    executor.report_job_error(job, msg=f"SLURM-job '{job.external_jobid}' {why}. ")
                else:
                    yield job

        return checked

    def _gone(self, number: str) -> str:
        """Return why a job will never end as Slurm's jobs do, in words; empty for one that may."""
        if self._told is None:
            return ""
        state = self._told.get(number)
        self._lacking[number] = 0 if state else self._lacking[number] + 1
        if state == "PREEMPTED" and _state(number) in ("", "PREEMPTED"):
            return "lost its nodes to another job, and Slurm does not let it wait anew (PreemptMode=CANCEL)"
        if self._lacking[number] >= _LACKING and _state(number) == "":
            return "is not known to Slurm any more"
        return ""

    def _say_if_silent(self) -> None:
        silent = self._told is None
        if silent and not self._silent:
            _say("Slurm does not tell how jobs are; asked again until it does")
        self._silent = silent


def _memory_asked() -> str:
    """Return what a job had asked for, and so what can be changed."""
    asked = os.environ.get("SBATCH_MEM_PER_NODE", "0")
    if asked == "0":
        return (
            "it asked for all of its nodes: where the partition gives less (MaxMemPerNode), name another in "
            "site.yaml, else let processes_per_node be smaller there"
        )
    return (
        f"it asked for SBATCH_MEM_PER_NODE={asked}, as the environment says: unset it to have all of a node"
    )


def _state(number: str) -> str | None:
    """Return a job's state as the controller has it: empty where it knows none, None without an answer."""
    command = ["squeue", "--noheader", "--states=all", "--format=%T", f"--jobs={number}"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    if answer.returncode:
        return "" if "Invalid job id" in answer.stderr else None
    return (answer.stdout.split() or [""])[0]


def _once_slurm_answers(run: Callable[..., None], ending: threading.Event) -> Callable[..., None]:
    @wraps(run)
    def once(executor: Any, job: Any) -> None:
        said = False
        while not _takes_jobs():
            if not said:
                _say("Slurm's controller does not answer: waiting with the next job until it does")
                said = True
            if ending.wait(_PAUSE_S):
                return  # interrupted: nothing is to be submitted any more
        run(executor, job)

    return once


def _takes_jobs() -> bool:
    """Whether some controller answers; so, too, where that cannot be found out."""
    try:
        answer = subprocess.run(["scontrol", "ping"], capture_output=True, text=True, timeout=60, check=False)
    except subprocess.TimeoutExpired:
        return False
    except OSError:
        return True
    return " is UP" in answer.stdout or " is DOWN" not in answer.stdout


def _setting(event: threading.Event, call: Callable[..., None]) -> Callable[..., None]:
    @wraps(call)
    def called(executor: Any) -> None:
        event.set()
        call(executor)

    return called


def _say(words: str) -> None:
    print(f"tiercel: {words}", file=sys.stderr, flush=True)
