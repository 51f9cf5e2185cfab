"""Who waited for whom, as far as a trace tells: futexes, pipes, socket pairs, processes that start others.

A thread that sleeps in a futex, or in a read of an empty pipe, does not think: it waits for the one that
wakes it, and so for all that this one had done, and had itself waited for. Nor does one that sleeps in a
select until there is something to read: whoever reads a byte comes after the one that wrote it, and bytes of
a pipe arrive in the order in which they were written. Whoever writes into one that was full comes after the
one that read from it. What a thread had to do before it slept is known from
its own calls. (Vector clocks: L. Lamport, Time, clocks, and the ordering of events, 1978; F. Mattern, Virtual
time and global states of distributed systems, 1989.)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from tiercel.placement.order import End

Key = tuple[int, int]
#: What is known of each stream: the last of its operations that is surely over.
Knowledge = dict[int, End]
#: A futex is waited for or woken; readers and writers of a pipe may each wait for the other.
Side = Literal["waits", "wakes", "reads", "writes"]


#: A pipe with so many bytes in it may be full: Linux's hold 64 KiB, sockets more, and some programs write no
#: more than half of that at once.
_FULL = 32 << 10


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


@dataclass
class _Flow:
    """Bytes through a pipe. `behind`: (all bytes written so far, what their writer knew), oldest first;
    `made_room`: who read last when it was full, and knew what."""

    written: int = 0
    read: int = 0
    behind: deque[tuple[int, Key, Knowledge]] = field(default_factory=deque)
    made_room: tuple[Key, Knowledge] | None = None


class Handovers:
    """One pass over the calls that hand over, in the order of their begin."""

    def __init__(self) -> None:
        self._threads: dict[Key, _Thread] = {}
        self._asleep: dict[str, list[_Sleep]] = {}
        self._flows: dict[str, _Flow] = {}
        self._started: dict[int, Knowledge] = {}
        self._of_process: dict[int, list[Key]] = {}

    def starts(self, key: Key, child: int, own: End | None) -> None:
        """A thread starts a process, or another thread, of this number."""
        thread = self._awake(key)
        # What it knew before its last operation, that one had waited for.
        self._started[child] = {**thread.news, **({} if own is None else {own.mark[0]: own})}

    def begin(self, key: Key) -> list[End] | None:
        """Return what whoever started this thread had done; None where the trace does not show it started."""
        known = self._started.get(key[1])
        if known is None:
            return None
        thread = self._awake(key)
        thread.known |= known
        return list(known.values())

    def collects(self, key: Key, child: int, ended: Iterable[End]) -> None:
        """A thread has waited until a process ended, whose last operations are given."""
        thread = self._awake(key)
        for other in self._of_process.get(child, []):
            _learn(thread, self._awake(other).news)
        _learn(thread, {end.mark[0]: end for end in ended})

    def call(
        self, key: Key, channel: str, side: Side, begin: float, end: float, own: End | None, moved: int = 0
    ) -> None:  # fmt: skip
        """Take in a call of thread `key` on a channel; `own` is its last operation so far, `moved` the bytes
        that it read or wrote."""
        thread = self._awake(key)
        knows = thread.known if own is None else {**thread.known, own.mark[0]: own}
        if moved:
            flow = self._flows.setdefault(channel, _Flow())
            if side == "writes":
                if flow.made_room is not None and flow.made_room[0] != key:
                    _learn(thread, flow.made_room[1])
                flow.made_room = None
                flow.written += moved
                flow.behind.append((flow.written, key, knows))
            else:
                if flow.written - flow.read >= _FULL:
                    flow.made_room = key, knows
                _learn(thread, _taken(flow, moved, key))
        if side != "waits":
            asleep = [s for s in self._asleep.get(channel, []) if s.end >= begin]
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
        thread = self._threads.get(key)
        if thread is None:
            thread = self._threads[key] = _Thread()
            self._of_process.setdefault(key[0], []).append(key)
        if thread.sleep is not None:
            _learn(thread, thread.sleep.woken)
            thread.sleep = None
        return thread


def _learn(thread: _Thread, knowledge: Knowledge) -> None:
    learned = {
        number: end
        for number, end in knowledge.items()
        if number not in thread.known or thread.known[number].mark[1] < end.mark[1]
    }
    thread.known |= learned
    thread.news |= learned


def _taken(flow: _Flow, moved: int, reader: Key) -> Knowledge:
    """Take bytes out of a pipe; return what the writer of the last one knew, nothing where that is not
    told (yet)."""
    flow.read += moved
    while flow.behind and flow.behind[0][0] < flow.read:
        flow.behind.popleft()
    if not flow.behind or flow.behind[0][1] == reader:
        return {}
    return flow.behind[0][2]
