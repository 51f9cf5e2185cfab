"""A node whose storage all may write to, a victim whose programs use cachevol there, and attackers."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tiercel.errors import UserError
from tiercel.layers.cachevol import connector, settings

from ..attackers import start, told_by
from .attacks import ATTACKS, Attacker, Goal

#: From which `tests` is imported.
ROOT = Path(__file__).resolve().parents[3]
#: Users that nobody else is, with groups of the same numbers.
VICTIM, ATTACKER = 54321, 54322
ATTACKERS = 2


def campaign(minutes: float, seed: int) -> dict[str, Any]:
    """Attack programs for so long; UserError without root. `got` in the result: what nobody should get."""
    if os.geteuid() != 0:
        raise UserError("an attack needs root: it acts as two users")
    built = connector()
    if built is None:
        raise UserError("the connector libcachevol.so is not built: run `make layers`")
    with tempfile.TemporaryDirectory(prefix="tiercel-attack-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        goal = _prepare(folder, built)
        before = _state(goal)
        found = _fight(folder, goal, minutes, seed)
        found["got"] += [f"a change of {path}" for path in _changed(before, _state(goal))]
        found["got"] += _strayed(goal)
    return {"minutes": minutes, "seed": seed, **found}


def _prepare(folder: Path, built: Path) -> Goal:
    shutil.copy(built, _folder(folder / "plugin", 0o755) / built.name)
    base = _folder(folder / "base", 0o1777)
    home = _folder(folder / "home", 0o755)
    storages = (_folder(folder / "sticky", 0o1777), _folder(folder / "open", 0o777))
    # One of them has a name as logs have.
    valued = tuple(home / name for name in ("valued", f"{socket.gethostname()}-4000000-0-0"))
    for path in valued:
        _folder(path, 0o755)
        (path / "thesis").write_text("years")
        (path / "read").mkdir()
        (path / "read" / "0123456789abcdef").mkdir()
        (path / "read" / ".gone-1-1-1").mkdir()
        for inner in (path / "read" / "0123456789abcdef", path / "read" / ".gone-1-1-1"):
            (inner / "data").write_text("years")
    for path in (home, *home.rglob("*")):
        os.chown(path, VICTIM, VICTIM)
    return Goal(VICTIM, base, storages, valued, b"secret-" + os.urandom(16).hex().encode())


def _folder(path: Path, mode: int) -> Path:
    path.mkdir()
    path.chmod(mode)
    return path


def _state(goal: Goal) -> dict[str, tuple[object, ...]]:
    """The victim's folders, which none of its programs works in."""
    state: dict[str, tuple[object, ...]] = {}
    for path in sorted(goal.valued[0].parent.rglob("*")):
        found = path.lstat()
        state[str(path)] = (found.st_uid, found.st_mode, path.read_bytes() if path.is_file() else b"")
    return state


def _changed(before: dict[str, tuple[object, ...]], after: dict[str, tuple[object, ...]]) -> list[str]:
    return [path for path in sorted(before.keys() | after.keys()) if before.get(path) != after.get(path)]


def _strayed(goal: Goal) -> list[str]:
    """What the victim's programs put into folders that the attacker made."""
    found = []
    for top in (*goal.storages, goal.base):
        for path in top.rglob("*"):
            if path.lstat().st_uid != VICTIM:
                continue
            between = [above for above in path.parents if top in above.parents]
            if any(above.lstat().st_uid == ATTACKER for above in between):
                found.append(f"what the victim wrote, in the attacker's {between[-1].name}")
    return sorted(set(found))


def _fight(folder: Path, goal: Goal, minutes: float, seed: int) -> dict[str, Any]:
    environment = settings(goal.storages[0], {"adaptive": False, "quiet": 0})
    environment["HDF5_PLUGIN_PATH"] = str(folder / "plugin")
    _make_shared(goal)
    victim = subprocess.Popen(
        [sys.executable, "-m", "tests.attacks.cachevol.victim", str(VICTIM), str(goal.base), str(seed),
         *map(str, goal.storages)], cwd=ROOT,
        env={**os.environ, **environment, "SECRET": goal.secret.decode()},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=(folder / "said").open("w"), text=True,
    )  # fmt: skip
    assert victim.stdout is not None
    if victim.stdout.readline() != "ready\n":
        raise RuntimeError((folder / "said").read_text())
    until = time.monotonic() + 60 * minutes
    attackers = dict(_attacker(goal, seed + n, until) for n in range(ATTACKERS))
    tried: Counter[str] = Counter()
    got: list[str] = []
    for pid, pipe in attackers.items():
        said = told_by(pipe)
        os.waitpid(pid, 0)
        tried.update(said["tried"])
        got += [what for what in said["gains"] if what not in got]
    rounds = Counter(victim.communicate("\n")[0].splitlines())
    served = rounds.pop("served", 0)
    lines = (folder / "said").read_text(errors="replace").splitlines()
    if any("\x1b" in line for line in lines):
        got.append("control characters on the victim's terminal")
    return {
        "tried": dict(sorted(tried.items())), "got": got,
        "victim": {"served": served, "not_served": sum(rounds.values()), "how": dict(rounds)},
        "victim_read": sorted({line for line in lines if "nothing is cached" not in line})[:20],
    }  # fmt: skip


def _make_shared(goal: Goal) -> None:
    """The file that all may read, made without the connector."""
    code = (
        "import h5py, numpy as np, sys; from tests.attacks.cachevol.victim import SHARED\n"
        "with h5py.File(sys.argv[1], 'w') as file: file['x'] = np.arange(SHARED)"
    )
    path = goal.base / "shared.h5"
    plain = {name: value for name, value in os.environ.items() if not name.startswith("HDF5_")}
    subprocess.run([sys.executable, "-c", code, str(path)], env=plain, check=True, cwd=ROOT)
    path.chmod(0o644)
    os.chown(path, VICTIM, VICTIM)


def _attacker(goal: Goal, seed: int, until: float) -> tuple[int, int]:
    # The kernel says no, or another attacker was there first.
    return start(_become_attacker, lambda: Attacker(goal, seed), ATTACKS, until, (OSError,))


def _become_attacker() -> None:
    os.setgroups([])
    os.setgid(ATTACKER)
    os.setuid(ATTACKER)
