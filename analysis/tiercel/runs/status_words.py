"""A study's status in lines, once or renewed until it has ended."""

from __future__ import annotations

import time
from collections.abc import Callable

from rich.console import Console
from rich.live import Live
from rich.text import Text

from tiercel.runs.replaced import sentence
from tiercel.runs.status import Status
from tiercel.units import format_duration

#: Reasons of failures that are shown, and runs that go on.
_SHOWN = 5
#: Seconds between two looks; and no more than this part of the time goes to looking.
_PAUSE_S, _SHARE = 1.0, 0.1

_STATES = {
    "not begun": "not begun: `tiercel evaluate` measures it",
    "measuring": "measuring",
    "waiting": "waiting for the scheduler",
    "stopped": "stopped before the end: the same command goes on from here",
    "done": "done",
}


def words_of(status: Status, site: str, study: str) -> list[str]:
    """Return the lines."""
    failed = sum(len(failure.runs) for failure in status.failures)
    counts = [f"{status.done} runs done"]
    counts += [f"{failed} failed"] if failed else []
    if status.left:
        counts.append(f"{status.left} to come (about {format_duration(status.seconds_left)} of measuring)")
    lines = [f"site {site}, study {study}: {_STATES[status.state]}", ", ".join(counts)]
    lines += filter(None, [sentence(status.replaced)])
    if status.jobs_running is not None:
        lines.append(f"jobs: {status.jobs_running} running, {status.jobs_waiting} waiting")
    for each in status.current[:_SHOWN]:
        lines.append(f"now: {each.words}, for {format_duration(each.seconds)}")
    for failure in status.failures[:_SHOWN]:
        lines.append(f"failed, {len(failure.runs)} times: {failure.reason} (first: {failure.runs[0]})")
    lines += status.damaged[:_SHOWN]
    more = len(status.failures) - _SHOWN
    return [*lines, f"and {more} other reasons (--json has all)"] if more > 0 else lines


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
