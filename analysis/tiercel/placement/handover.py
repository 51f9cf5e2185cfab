"""Who waited for whom in the middle of their lives, as far as a trace tells: futexes and pipes.

A thread that sleeps in a futex, or in a read of an empty pipe, does not think: it waits for the one that
wakes it, and so for all that this one had done, and had itself waited for. What it had to do before it slept
is known from its own calls. (Vector clocks: L. Lamport, Time, clocks, and the ordering of events, 1978; F.
Mattern, Virtual time and global states of distributed systems, 1989.)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from tiercel.placement.order import End

Key = tuple[int, int]
#: What is known of each stream: the last of its operations that is surely over.
Knowledge = dict[int, End]
Side = Literal["waits", "wakes", "both"]


@dataclass
class _Sleep:
    """A call that may have slept until somebody else did something on the same channel."""

    key: Key
    end: float
    woken: Knowledge = field(default_factory=dict)
    """What the one that woke it knew; of several, the last."""


@dataclass
class _Thread:
    known: Knowledge = field(default_factory=dict)
    news: Knowledge = field(default_factory=dict)
    """What it learned since it was last asked for."""
    sleep: _Sleep | None = None


class Handovers:
    """One pass over the calls that hand over, in the order of their begin."""

    def __init__(self) -> None:
        self._threads: dict[Key, _Thread] = {}
        self._asleep: dict[str, list[_Sleep]] = {}

    def call(self, key: Key, channel: str, side: Side, begin: float, end: float, own: End | None) -> None:
        """Take in a call of thread `key` on a channel; `own` is its last operation so far."""
        thread = self._awake(key)
        if side != "waits":
            asleep = [s for s in self._asleep.get(channel, []) if s.end >= begin]
            knows = thread.known if own is None else {**thread.known, own.mark[0]: own}
            for sleep in asleep:
                if sleep.key != key:
                    sleep.woken = knows
            self._asleep[channel] = asleep
        if side != "wakes":
            thread.sleep = _Sleep(key, end)
            self._asleep.setdefault(channel, []).append(thread.sleep)

    def news(self, key: Key) -> list[End]:
        """Return what a thread has waited for since it was last asked: operations of other streams."""
        if key not in self._threads:
            return []
        thread = self._awake(key)
        found, thread.news = list(thread.news.values()), {}
        return found

    def _awake(self, key: Key) -> _Thread:
        """Return the thread, with what it learned in its sleep: whoever makes a call is awake."""
        thread = self._threads.setdefault(key, _Thread())
        if thread.sleep is not None:
            learned = {
                number: end
                for number, end in thread.sleep.woken.items()
                if number not in thread.known or thread.known[number].mark[1] < end.mark[1]
            }
            thread.known |= learned
            thread.news |= learned
            thread.sleep = None
        return thread
