"""What the schedulers have in common that are reached by the site's own scripts.

The profile hands the resources to ``site-configs/<site>/submit`` as words. It notes each job's number in
``.snakemake/tiercel-<site>.jobs``: Snakemake's cluster-generic executor could take up jobs of one that was
killed, but not together with ``rerun-incomplete``, which the tables and the report need.

    submit NODES MINUTES QUEUE JOBSCRIPT   prints the job's number alone, and notes it; QUEUE may be default
    status JOB                             prints running (waiting, too), success or failed
    cancel JOB...                          ends them
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tiercel.errors import UserError
from tiercel.schedulers.base import Job, Request, account

_PATIENCE_S = 120.0


class ScriptsMixin:
    """Resources for scripts: the account stays out of them, each script reads it from the environment."""

    #: A status script asks the scheduler about one job at a time: not too often.
    poll_seconds = 10.0

    _scripts = "site-configs/<site>"

    def resources(self, request: Request) -> dict[str, int | str]:
        account(request.settings)  # fails early, in words, where it is not set
        return {
            "nodes": request.nodes,
            "runtime": request.minutes,
            "queue": request.settings.partition or "default",
        }

    def left_behind(self, site: str, folder: Path) -> list[Job]:
        """Return the noted jobs that have not ended, waiting ones among them; ended ones are struck out."""
        self._scripts = f"site-configs/{site}"
        noted = folder / ".snakemake" / f"tiercel-{site}.jobs"
        try:
            numbers = list(dict.fromkeys(noted.read_text().split()))
        except FileNotFoundError:
            return []
        left = [number for number in numbers if self._alive(number, folder)]
        aside = noted.with_suffix(".new")
        aside.write_text("".join(f"{number}\n" for number in left))
        aside.replace(noted)
        return [Job(number, running=True) for number in left]

    def cancel(self, jobs: Sequence[Job], folder: Path) -> None:
        script = folder / self._scripts / "cancel"
        with suppress(OSError, subprocess.TimeoutExpired):
            subprocess.run(
                [script, *(job.id for job in jobs)], cwd=folder, capture_output=True, timeout=_PATIENCE_S,
                check=False,
            )  # fmt: skip

    def how_to_cancel(self, jobs: Sequence[Job]) -> str:
        return " ".join([f"{self._scripts}/cancel", *(job.id for job in jobs)])

    def _alive(self, number: str, folder: Path) -> bool:
        script = folder / self._scripts / "status"
        try:
            answer = subprocess.run(
                [script, number], cwd=folder, capture_output=True, text=True, timeout=_PATIENCE_S, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise UserError(f"{script}: does not answer: {error}") from None
        said = answer.stdout.strip()
        if answer.returncode or said not in ("running", "success", "failed"):
            raise UserError(f"{script} {number}: must print running, success or failed (it printed {said!r})")
        return said == "running"
