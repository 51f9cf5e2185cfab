"""The report of a study that goes on: what is missing, and `tiercel report --follow`."""
# Tables and figures take seconds to import: each function imports its own.
# ruff: noqa: PLC0415

from __future__ import annotations

import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tiercel.errors import UserError
from tiercel.project import results_folder

if TYPE_CHECKING:
    from tiercel.report.unfinished import Unfinished
    from tiercel.runs.status import Status

#: Seconds from one page to the next at least, and what part of a processor's time may go to making it: what
#: is measured on this machine must not notice.
_PAUSE_S, _SHARE = 5.0, 0.2
#: Seconds from one look at whether anybody measures to the next.
_LOOK_S = 2.0


def missing_of(site: str, study: str, root: Path) -> Unfinished | None:
    """Return what a study lacks; None where it is whole, or where its plan cannot be made on this machine."""
    from tiercel.report.unfinished import unfinished
    from tiercel.runs.planning import make_plan
    from tiercel.runs.status import status_of

    try:
        status = status_of(make_plan(site, study, root), root)
    except UserError as error:
        # Results from elsewhere: they are reported, whether there are more to come nobody can say here.
        print(f"tiercel: cannot tell whether the study is finished: {error}", file=sys.stderr)
        return None
    return unfinished(status, _command(site, study), status.damaged)


def follow_study(site: str, study: str, root: Path) -> None:
    """Make ``results/<site>/live/index.html`` again and again until nobody measures any more.

    No lock is taken and no table written. Ctrl-C ends it.
    """
    from tiercel.pages.words import capital
    from tiercel.report.build import build_from
    from tiercel.report.data import Results
    from tiercel.report.unfinished import Unfinished, now, unfinished
    from tiercel.results.observations import Gathered, look
    from tiercel.results.validity import FLAGS
    from tiercel.runs.planning import make_plan
    from tiercel.runs.status import status_of
    from tiercel.runs.status_words import state_of

    project = make_plan(site, study, root)
    folder = results_folder(root, site)
    os.nice(19)
    found: Gathered | None = None
    pause, took, told = 30.0, 0.0, False
    try:
        while True:
            used, began = time.process_time(), time.monotonic()
            status = status_of(project, root)
            goes_on = status.state in ("measuring", "waiting")
            found = look(folder, found)
            results = Results.of_study(project.plan.study, *found.frames(), FLAGS)
            # What is damaged is named once: by its table's reader, or by the plan's.
            problems = tuple(dict.fromkeys((*status.damaged, *found.problems)))
            missing = unfinished(status, _command(site, study), problems)
            if goes_on:
                said = f"{capital(state_of(status, _command(site, study)))}."
                missing = missing or Unfinished((said,), None, 1.0)
                missing = replace(missing, live=now(pause + took))
            elif missing is None:
                said = (
                    "This study is finished. This page no longer refreshes. The report is report/index.html."
                )
                missing = Unfinished((said,), None, 1.0, ended=True)
            page = build_from(results, folder, project.plan.site, folder / "live", missing=missing)
            if not told:
                print(page, flush=True)
                told = True
            if not goes_on:
                print(f"tiercel: {_end(status)}", file=sys.stderr)
                return
            pause = max(_PAUSE_S, (time.process_time() - used) / _SHARE)
            took = (
                time.monotonic() - began
            )  # longer than its share of a processor: it gives way to all others
            rest(pause, folder if status.state == "measuring" and not status.jobs_running else None)
    except KeyboardInterrupt:
        return


def rest(seconds: float, measured: Path | None) -> None:
    """Wait so long; of a study that this machine measures (its results: `measured`) while it goes on.

    Pauses of a busy machine are minutes, in which the page of one that was killed said that it still ran.
    """
    from tiercel.runs.status import held

    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0 and (measured is None or held(measured)):
        time.sleep(min(_LOOK_S, left))


def _end(status: Status) -> str:
    if status.state == "done":
        return "the study is finished: the page is complete"
    return (
        f"no measurement is running ({status.state}, {status.left} runs remaining): this is the last refresh"
    )


def _command(site: str, study: str) -> str:
    return f"tiercel evaluate --site {site} --study {study}"
