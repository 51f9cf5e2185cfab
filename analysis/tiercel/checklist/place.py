"""What one node says of a storage: ``python -m tiercel.checklist.place ACTION NAME STORAGE WORDS...``.

``leave FOLDER`` puts a file with the node's name into a folder, ``see FOLDER HOST...`` says whose files it
finds there, ``left PREFIX`` which run folders that begin so still lie in the scratch folder.
"""

from __future__ import annotations

import platform
import sys
import time
from pathlib import Path
from typing import Any

from tiercel.errors import UserError
from tiercel.launchers.answers import say
from tiercel.runs.scratch import RUN_PREFIX, leftovers
from tiercel.site.model import Stack, Storage
from tiercel.site.mounts import mount_of, read_mounts

#: How long a shared file system may take to show one node's new file to another (NFS caches names).
_PATIENCE_S = 30.0
#: What no network carries shows a file at once, or belongs to one node.
_HERE_S = 2.0


def answer(action: str, stack: Stack, words: list[str]) -> dict[str, Any]:
    """Return what this node says: its name, and what ACTION asks for, or an error."""
    host = platform.node()
    try:
        if action == "leave":
            folder = Path(words[0])
            if _is_there(folder):  # else it was made on another node, and is not shared
                (folder / f"from-{host}").touch()
            mount = mount_of(folder, read_mounts())
            return {"host": host, "type": mount.type if mount else ""}
        if action == "see":
            return {"host": host, "seen": _seen(Path(words[0]), words[1:], stack.storage.shared)}
        left = [folder.name.removeprefix(RUN_PREFIX) for folder in leftovers(stack)]
        return {"host": host, "left": [name for name in left if name.startswith(words[0])]}
    except (OSError, UserError) as error:
        return {"host": host, "error": str(error)}


def _patience(folder: Path) -> float:
    mount = mount_of(folder, read_mounts())
    return _HERE_S if mount and mount.medium in ("disk", "memory") else _PATIENCE_S


def _is_there(folder: Path) -> bool:
    end = time.monotonic() + _patience(folder)
    while not folder.is_dir():
        if time.monotonic() > end:
            return False
        time.sleep(0.5)
    return True


def _seen(folder: Path, hosts: list[str], shared: bool) -> list[str]:
    """Return whose files are here. Each name is looked up itself: a folder's listing may be an old one."""
    end = time.monotonic() + _patience(folder)
    while True:
        seen = [host for host in hosts if (folder / f"from-{host}").exists()]
        if not shared or len(seen) == len(hosts) or time.monotonic() > end:
            return seen
        time.sleep(0.5)


def main(arguments: list[str]) -> int:
    action, name, storage, *words = arguments
    say(answer(action, Stack(name, Storage.model_validate_json(storage)), words))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
