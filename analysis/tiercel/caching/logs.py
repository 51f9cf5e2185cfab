"""What killed programs left staged: looked at, finished or dropped by the program ``cachevol-log``."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from tiercel.errors import UserError
from tiercel.layers.cachevol import log_program

Verb = Literal["inspect", "replay", "drop"]


def logs(
    verb: Verb, storage: Path, *, log: str | None = None, file: Path | None = None, force: bool = False
) -> list[dict[str, Any]]:
    """Apply `verb` to the staging logs below `storage` (all, or one); return one object for each.

    Keys: log, state (alive, left, damaged, empty; replayed, dropped, refused), file, host, pid, records,
    bytes (still to be migrated), migrated (records), created (seconds since 1970), torn, reason.
    """
    tool = log_program()
    if tool is None:
        raise UserError("cachevol-log is not built: run `make layers`")
    command: Sequence[str] = [str(tool), verb, str(storage)]
    command = [*command, *(["--log", log] if log else []), *(["--force"] if force else [])]
    command += ["--file", str(file.resolve())] if file else []
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode not in (0, 1):
        raise UserError(answer.stderr.strip() or f"cachevol-log: exit code {answer.returncode}")
    found = [json.loads(line) for line in answer.stdout.splitlines()]
    if log and not found:
        raise UserError(f"{storage}: no log {log} is staged there: `tiercel cache inspect` lists them")
    return found
