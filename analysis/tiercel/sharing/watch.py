"""Watches a server while jobs compete: what each was served, in the units that the policy shares out."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tiercel.clock import since
from tiercel.errors import UserError
from tiercel.layers.fairshare.protocol import Connection


@dataclass
class Watch:
    """Asks every `interval` seconds from `at` (Unix seconds) on, for `length` seconds, in a thread."""

    server: Path
    at: float
    length: float
    interval: float
    entitled: dict[str, float] = field(default_factory=dict)
    """By the server's word, when most jobs were there in the first half of the time."""
    _seen: list[tuple[float, dict[str, int]]] = field(default_factory=list)
    _over: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            clock = since(self.at)
            with Connection(self.server) as connection:
                for number in range(round(self.length / self.interval) + 1):
                    over = self._over.wait(max(0.0, number * self.interval - clock()))
                    self._note(connection.status(), clock())
                    if over:  # with what was served since it was asked last
                        return
        except (UserError, OSError):
            return  # what was seen so far counts; the jobs say themselves why a server went away

    def end(self) -> None:
        """Ask no more: what was watched has ended before its time."""
        self._over.set()
        self._thread.join()

    def _note(self, status: dict[str, Any], when: float) -> None:
        jobs = status["jobs"]
        self._seen.append((when, {j["job"]: j["served"] for j in jobs if j["served"] is not None}))
        if status["policy"] != "fifo" and when <= self.length / 2 + self.interval:
            entitled = {j["job"]: j["share"] for j in jobs if j["share"] is not None}
            if len(entitled) >= len(self.entitled):  # jobs that come late, or have ended by now, count
                self.entitled = entitled

    def rates(self, jobs: list[str], start: float, end: float) -> dict[str, NDArray[np.float64]] | None:
        """Return what each job was served per second, by interval of [start, end); None without answers."""
        self._thread.join(self.length + 30)
        if len(self._seen) < 2:
            return None
        times = np.array([when for when, _ in self._seen])
        grid = np.arange(start, end + self.interval / 2, self.interval)
        if times[-1] < end - self.interval:
            return None
        found = {}
        for job in jobs:
            served = np.array([seen.get(job, 0) for _, seen in self._seen], dtype=float)
            found[job] = np.diff(np.interp(grid, times, served)) / self.interval
        return found
