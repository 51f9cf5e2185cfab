"""A study's status in lines, once or renewed until it has ended."""

from __future__ import annotations

import time
from collections.abc import Callable

from rich.console import Console
from rich.live import Live
from rich.text import Text

from tiercel.pages.words import count, plain
from tiercel.runs.replaced import sentence
from tiercel.runs.status import Status
from tiercel.units import format_duration

#: Reasons of failures that are shown, and runs that go on.
_SHOWN = 5
#: Seconds between two looks; and no more than this part of the time goes to looking.
_PAUSE_S, _SHARE = 1.0, 0.1

#: A study's state, wherever it is told: here and in the report. `{}` is the command that goes on.
_STATES = {
    "not begun": "not started: run `{}`",
    "measuring": "running",
    "waiting": "its jobs wait in the queue of the scheduler",
    "stopped": "stopped: run `{}` to resume",
    "done": "finished",
}
_NEARLY = "all planned runs are done; extra repetitions or the report are in progress"


def state_of(status: Status, command: str) -> str:
    """Return a study's state in words; `command` goes on with it."""
    if status.state == "measuring" and not status.left:
        return _NEARLY
    return _STATES[status.state].format(command)


def words_of(status: Status, site: str, study: str) -> list[str]:
    """Return the lines."""
    failed = sum(len(failure.runs) for failure in status.failures)
    counts = [f"{count(status.done, 'run')} done"]
    counts += [f"{failed} failed"] if failed else []
    if status.left:
        counts.append(f"{status.left} remaining (about {format_duration(status.seconds_left)})")
    counts += [f"{len(status.damaged)} damaged"] if status.damaged else []
    state = state_of(status, f"tiercel evaluate --site {site} --study {study}")
    lines = [f"site {site}, study {study}: {state}", ", ".join(counts)]
    lines += filter(None, [sentence(status.replaced)])
    if status.jobs_running is not None:
        lines.append(f"jobs: {status.jobs_running} running, {status.jobs_waiting} waiting")
    lines += map(plain, status.waiting_for[:_SHOWN])
    for each in status.current[:_SHOWN]:
        lines.append(f"now: {each.words}, for {format_duration(each.seconds)}")
    for failure in status.failures[:_SHOWN]:
        times = "once" if len(failure.runs) == 1 else f"{len(failure.runs)} times"
        lines.append(f"failed {times}: {plain(failure.reason)} (first run: {failure.runs[0]})")
    lines += map(plain, status.damaged[:_SHOWN])
    more = len(status.failures) - _SHOWN
    return [*lines, f"and {more} other reasons (use --json for all)"] if more > 0 else lines


def follow(look: Callable[[], Status], site: str, study: str) -> None:
    """Show the status until nobody measures any more; Ctrl-C ends the showing only."""
    try:
        with Live(console=Console(), auto_refresh=False) as live:
            while True:
                began = time.monotonic()
                found = look()
                live.update(Text("\n".join(words_of(found, site, study))), refresh=True)
                if found.state not in ("measuring", "waiting"):
                    return
                time.sleep(max(_PAUSE_S, (time.monotonic() - began) / _SHARE))
    except KeyboardInterrupt:
        return
