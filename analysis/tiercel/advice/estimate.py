"""An estimate for a program that cannot be run again: its traced I/O, replayed on each storage.

The replay does what the trace shows, as fast as it can. The program's computing, and the calls that a trace
does not
show, are not in it, so it states no upper bound.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from tiercel.advice.answer import Advice, Estimate
from tiercel.advice.seen import PROGRAM_FILES
from tiercel.advice.workset import Folder, storage_of
from tiercel.errors import RunFailed, UserError
from tiercel.placement.compile import NothingToReplay, compile_trace
from tiercel.placement.groups import SYSTEM_FOLDERS
from tiercel.placement.recipe import Recipe, common_folder
from tiercel.placement.replaying import Replay, replay_program
from tiercel.runs.scratch import Scratch, check_scratch, space_problem
from tiercel.site.model import Site, Stack
from tiercel.site.mounts import read_mounts
from tiercel.traces import IOFrame

ROUNDS = 3
#: Calls that a replay leaves out, by what they are.
_BLIND = {
    "memory mappings": r"^(mmap2?|msync)$",
    "io_uring": "^io_uring",
    "Linux AIO": "^io_(submit|getevents|pgetevents|setup)",
    "sockets": "^(socket|socketpair|connect|accept4?|send(to|msg|mmsg)?|recv(from|msg|mmsg)?)$",
    "sleeps": "^((clock_)?nanosleep|select|pselect6?|p?poll|epoll_p?wait)$",
}


def estimate(
    frame: IOFrame,
    site: Site,
    why: str,
    *,
    program: Sequence[str] = (),
    home: str | None = None,
    seed: int = 1,
    progress: Callable[[str], None] = lambda _said: None,
    inherit: tuple[int, ...] = (),
) -> Advice:
    """Return advice from a trace. `home`: take all files as lying there. UserError where nothing can be
    replayed."""
    binary = replay_program()
    bare = Advice(site, tuple(program), str(Path.cwd()), method="replay")
    try:
        recipe = compile_trace(frame, only=_data(frame))
    except NothingToReplay:
        return Advice(site, tuple(program), str(Path.cwd()), method="nothing")
    at = common_folder(recipe.files) or "/"
    home = home or storage_of(at, site, read_mounts())
    if home not in site.storages:
        raise UserError(
            f"the program's files ({at}) lie on no storage of site {site.site}: name where they are to be "
            f"taken as lying, "
            f"--home NAME (storages: {', '.join(site.storages)})"
        )
    recipe.bases = (at,)
    seconds, notes = _replayed(recipe, site, binary, seed, progress, inherit)
    return Advice(
        site,
        bare.program,
        bare.cwd,
        (Folder(at, home, recipe.footprint),),
        method="replay",
        notes=tuple(notes),
        estimate=Estimate(seconds, _blind(frame), why),
    )


def _data(frame: IOFrame) -> set[str]:
    names = frame.query("SELECT DISTINCT file FROM events WHERE file IS NOT NULL")["file"]
    return {
        n
        for n in map(str, names)
        if n.startswith("/") and not n.startswith(SYSTEM_FOLDERS) and not PROGRAM_FILES.search(n)
    }


def _blind(frame: IOFrame) -> tuple[str, ...]:
    functions = frame.query("SELECT DISTINCT function FROM events WHERE function IS NOT NULL")[
        "function"
    ].astype(str)
    return tuple(
        words for words, pattern in _BLIND.items() if functions.str.contains(pattern, regex=True).any()
    )


def _replayed(
    recipe: Recipe,
    site: Site,
    binary: Path,
    seed: int,
    progress: Callable[[str], None],
    inherit: tuple[int, ...],
) -> tuple[dict[str, list[float]], list[str]]:
    """Return the seconds of each storage's replays, in interleaved rounds, and notes on those left out."""
    seconds: dict[str, list[float]] = {}
    notes = []
    for name, storage in site.storages.items():
        stack = Stack(name, storage)
        try:
            check_scratch(stack)
            problem = space_problem(stack, recipe.footprint)
        except UserError as error:
            problem = str(error)
        if problem:
            notes.append(f"{name} was not tried: {problem}")
        else:
            seconds[name] = []
    with tempfile.TemporaryDirectory(prefix="tiercel-advise-") as place:
        for number in range(ROUNDS):
            order = list(seconds)
            random.Random(f"estimate:{seed}:{number}").shuffle(order)
            for name in order:
                progress(f"replay {number + 1} on {name}")
                try:
                    with ExitStack() as scratches:
                        stack = Stack(name, site.storages[name])
                        root = scratches.enter_context(Scratch(stack, f"estimate-{number}-{name}")).data
                        replay = Replay(binary, recipe, {}, [root], Path(place), inherit)
                        replay.prepare()
                        seconds[name].append(float(replay.run()["wallSeconds"]))
                except RunFailed as failure:
                    notes.append(f"{name}: {failure}")
                    del seconds[name]
    return seconds, notes
