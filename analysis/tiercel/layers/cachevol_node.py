"""What the layer cachevol does on each node: ``python -m tiercel.layers.cachevol_node ACTION FOLDER [LOG]``.

``make`` makes a run's own folder on the node-local storage; ``end`` removes it, with the program LOG
(cachevol-log) after finishing what was staged there. On several nodes the launcher starts one on each.
"""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tiercel.errors import RunFailed
from tiercel.launchers.answers import say


def make(folder: Path) -> None:
    """Make `folder`, for its owner alone; RunFailed where that cannot be, or another node made it."""
    try:
        folder.mkdir(mode=0o700)
    except FileNotFoundError:
        raise RunFailed(f"layer cachevol: the node-local folder {folder.parent} is not there") from None
    except FileExistsError:
        raise RunFailed(
            f"layer cachevol: nodes share {folder.parent}: name a folder that is local to each node, as in "
            "`layers: [{layer: cachevol, options: {storage: /local/scratch}}]`"
        ) from None
    except OSError as error:
        raise RunFailed(f"layer cachevol: {folder}: {error.strerror or error}") from None


def end(folder: Path, log: Path | None) -> None:
    """Remove `folder`; with a `log` after what is staged is in its files, RunFailed where it is not."""
    try:
        if log is None:
            return
        left = subprocess.run([str(log), "replay", str(folder)], capture_output=True, text=True, check=False)
        if left.returncode:
            raise RunFailed(f"layer cachevol: staged data are left: {left.stdout.strip()}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def answer(words: Sequence[str]) -> dict[str, Any]:
    """Do what ACTION FOLDER [LOG] ask for, and return who did it; RunFailed as above."""
    action, folder, *log = words
    if action == "make":
        make(Path(folder))
    else:
        end(Path(folder), Path(log[0]) if log else None)
    return {"host": platform.node()}


def main(words: list[str]) -> int:
    """Answer; the exit code is 0 also for an error, which the answer names."""
    try:
        say(answer(words))
    except RunFailed as error:
        say({"host": platform.node(), "error": str(error)})
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
