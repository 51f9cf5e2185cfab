"""Runs trials in rounds: home and each placement once, in random order, until decided or out of time."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

from tiercel.advice.answer import Advice, Result
from tiercel.advice.bench import HOME, Bench, Candidate, Trial
from tiercel.advice.judge import MOST
from tiercel.advice.workset import Part, stage_size
from tiercel.errors import RunFailed

Progress = Callable[[str], None]
#: Rounds before an answer, and before one that ends the measurement while there is time: two runs of each may
#: agree by chance, and the measurement would end whenever they do.
LEAST, _CERTAIN = 2, 3
#: A placement is given up when its first run takes so many times as long as home's, and a second more.
_TOO_SLOW, _PATIENCE_S = 1.5, 1.0
#: It is left, too, when that run takes so many times as long, and half a second more: one run says little.
_SLOWER, _SLOWER_S = 1.3, 0.5
#: Placements that are so much slower than the best one are left after two rounds.
_BEHIND = 1.25
#: In how many trials copying is measured, and outputs are compared.
_COPIES, _OUTPUTS = 2, 2
#: Copying that takes less than this share of a run leaves nothing to gain by moving only a part.
_PART = 0.1
_SMALLER = 0.7
#: Without --minutes an answer takes so many runs of the program and seconds, unless two rounds take longer.
RUNS, SECONDS = 10.0, 5.0


@dataclass
class Measuring:
    """The state of one measurement. `limit`: the time at which it ends. `began`: when it should have ended
    `RUNS` runs and `SECONDS` after; None: only `limit` counts."""

    bench: Bench
    advice: Advice
    limit: float
    began: float | None
    parts: Sequence[Part]
    progress: Progress
    seed: int = 1
    notes: list[str] = field(default_factory=list)
    code: int = 0
    script: Callable[[], float] = lambda: 0.0
    """Runs the staging script; returns its seconds. Measured in each round: they vary as the runs do."""

    @property
    def results(self) -> dict[str, Result]:
        return self.advice.results

    def measure(self, first: Trial) -> Advice:
        """Try every placement; return the advice. Ctrl-C keeps what is known after two rounds."""
        try:
            self._first_runs(first)
            self._rounds(first)
        except KeyboardInterrupt:
            if not self.advice.judged or len(self.results[HOME].trials) < LEAST:
                raise
            self.notes.append("interrupted: the answer is from the runs until then")
        self._compare_outputs()
        return replace(self.advice, program_runs=self.bench.runs, notes=(*self.advice.notes, *self.notes))

    def _first_runs(self, first: Trial) -> None:
        """Run each placement once: that run is discarded. Slow ones are given up."""
        for result in self._active():
            if result.candidate.name == HOME:
                continue
            self.progress(f"first run on {result.candidate.name}")
            self._try(result, _TOO_SLOW * first.seconds + _PATIENCE_S, first.seconds, keep=False)
        self.advice.script_runs.append(self.script())

    def _wanted(self, first: Trial) -> float:
        """Return the time at which the answer should be there. The first run may have been traced."""
        if self.began is None:
            return self.limit
        run = min([first.seconds, *self.results[HOME].seconds])
        return min(self.limit, self.began + RUNS * run + SECONDS)

    def _rounds(self, first: Trial) -> None:
        longest = 0.0
        for number in range(MOST):
            now = time.monotonic()
            rounds = len(self.results[HOME].trials)
            if (rounds >= _CERTAIN and self._settled()) or (
                rounds >= LEAST and now + longest > self._wanted(first)
            ):
                break
            if number and now + longest > self.limit:
                break
            active = self._active()
            if (
                number
                and not any(r.trials for r in self.results.values() if r.candidate.name != HOME)
                and len(active) == 1
            ):
                break  # there is nothing to compare with
            random.Random(f"advise:{self.seed}:{number}").shuffle(active)
            for result in active:
                at_home = self.results[HOME].seconds
                self.progress(f"round {number + 1}: {result.candidate.name}")
                self._try(
                    result, 3 * max(at_home) + _PATIENCE_S if at_home else None, max(at_home, default=None)
                )
            self._leave_behind()
            self.advice.script_runs.append(self.script())
            longest = max(longest, time.monotonic() - now)
            if number == 0 and time.monotonic() + 2 * longest < self._wanted(first):
                self._add_part()

    def _active(self) -> list[Result]:
        return [r for r in self.results.values() if not r.why_not]

    def _settled(self) -> bool:
        """Return whether the answer is known: which placement to take, and whether the others' runs are
        faster."""
        self._refresh()
        return self.advice.decided and all(
            j.run.outcome != "not decided" or j.total.outcome == "slower"
            for j in self.advice.judged
            if not j.result.why_not
        )

    def _refresh(self) -> None:
        self.advice = replace(self.advice)  # its judgements are cached

    def _try(self, result: Result, timeout: float | None, run: float | None, keep: bool = True) -> None:
        name = result.candidate.name
        copies = name != HOME and len(result.copies_in) < _COPIES
        outputs = keep and len(result.trials) < _OUTPUTS
        limit = None if run is None else max(5.0, 3 * run)
        try:
            trial = self.bench.trial(
                result.candidate, timeout, copies=copies, outputs=outputs, copy_limit=limit
            )
        except RunFailed as failure:
            if name == HOME:
                raise
            _give_up(result, str(failure))
            return
        if trial.copy_in is not None:
            result.copies_in.append(trial.copy_in)
        if trial.code is None:
            if name == HOME:
                return
            result.at_least = trial.seconds / (run or trial.seconds)
            result.why_not = (
                f"ended after {trial.seconds:.3g} s, {result.at_least:.1f} times as long as at home"
            )
            return
        if trial.code != self.code:
            _give_up(result, _failure(trial))
            if name == HOME:
                raise RunFailed(f"it does not end the same way each time: {_failure(trial)}")
            return
        if trial.copy_out is not None:
            result.copies_out.append(trial.copy_out)
        if keep or self.bench.cold:
            result.trials.append(trial)
        elif run is not None and trial.seconds - trial.queued > _SLOWER * run + _SLOWER_S:
            result.at_least = (trial.seconds - trial.queued) / run
            result.why_not = f"left after its first run, which took {trial.seconds:.3g} s"

    def _leave_behind(self) -> None:
        """After two rounds: give up placements that are far behind the best one."""
        if len(self.results[HOME].trials) < LEAST:
            return
        self._refresh()
        judged = self.advice.judged
        for each in judged[1:]:
            if (
                judged[0].total.ratio.median > _BEHIND * each.total.ratio.median
                and each.run.outcome != "not decided"
            ):
                each.result.why_not = (
                    each.result.why_not or "left after two rounds: another storage is faster"
                )

    def _add_part(self) -> None:
        """Try a part of the working set on the best storage, where copying all of it costs something."""
        self._refresh()
        best = next((j for j in self.advice.judged if j.run.ratio.median > 1), None)
        if best is None:
            return
        at_home = median(self.results[HOME].seconds)
        if best.result.copy_in + best.result.copy_out < _PART * at_home:
            return
        storage = best.result.candidate.storages[0]
        whole = sum(f.size for f in self.bench.folders)
        for part in [p for p in self.parts if stage_size(p.path) < _SMALLER * whole][:1]:
            candidate = Candidate(f"{part.path} on {storage}", {part.path: storage}, part.why)
            result = Result(candidate)
            self.results[candidate.name] = result
            self.progress(f"first run with {candidate.name} ({part.why})")
            self._try(result, _TOO_SLOW * at_home + _PATIENCE_S, at_home, keep=False)

    def _compare_outputs(self) -> None:
        """Note files that are written otherwise on a storage than at home, where runs at home agree."""
        at_home = [t.outputs for t in self.results[HOME].trials if t.outputs is not None]
        if not at_home:
            return
        names = set.intersection(*(set(o) for o in at_home))
        steady = {n for n in names if len({o[n] for o in at_home}) == 1}
        varying = sorted({n for o in at_home for n in o} - steady)
        # Where names are random, other names there say nothing.
        random_names = {os.path.dirname(n) for o in at_home for n in o.keys() - names}  # noqa: PTH120
        for result in self.results.values():
            for outputs in (t.outputs for t in result.trials if t.outputs is not None):
                others = {n for n in outputs.keys() - names if os.path.dirname(n) not in random_names}  # noqa: PTH120
                wrong = {n for n in steady if outputs.get(n) != at_home[0][n]} | (
                    others if len(at_home) > 1 else set()
                )
                result.differs = tuple(sorted({*result.differs, *wrong}))
        advised = self.advice.advised
        unlike = [r for r in self.results.values() if r.differs and not (advised and r is advised.result)]
        if unlike:
            named = sorted({name for r in unlike for name in r.differs})
            self.notes.append(
                f"output on {', '.join(r.candidate.name for r in unlike)} differs from that at home: "
                f"{', '.join(named[:3])}"
            )
        if len(at_home) > 1 and varying:
            self.notes.append(
                f"{len(varying)} of the files that it writes differ from run to run (times, random names "
                f"or contents), "
                f"as {varying[0]}"
            )


def _give_up(result: Result, why: str) -> None:
    """Leave a placement on which the program does not run to its end: its times say nothing."""
    result.why_not = why
    result.trials.clear()


def _failure(trial: Trial) -> str:
    how = f"exit code {trial.code}" if (trial.code or 0) >= 0 else f"signal {-(trial.code or 0)}"
    return f"the program fails there ({how}{': ' + trial.last_line if trial.last_line else ''})"
