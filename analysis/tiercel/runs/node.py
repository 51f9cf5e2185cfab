"""What the harness asks of every node: ``python -m tiercel.runs.node ACTION NAME STORAGE RUN BYTES``.

The site's launcher starts one on each node. Each prints one line of JSON about its node; a node that cannot
answers with ``error``. STORAGE is the storage NAME as JSON, its variables are expanded on the node itself;
BYTES is what the run will write on this node.
"""

from __future__ import annotations

import platform
import sys
from contextlib import suppress
from typing import Any

from tiercel.errors import RunFailed, UserError
from tiercel.launchers.answers import say
from tiercel.runs.context import surroundings
from tiercel.runs.objects import check_storage
from tiercel.runs.scratch import Scratch, check_scratch, leftovers, remove_run_folder, space_problem
from tiercel.site.model import Stack, Storage


def answer(action: str, stack: Stack, run_id: str, footprint: int) -> dict[str, Any]:
    """Return what this node says: its name, and with `make` the run's folder and the conditions.

    Actions: ``look`` checks the storage; ``tidy`` also removes what killed runs left on this node's own;
    ``make`` makes a run's folder, ``remove`` removes it.
    """
    host = platform.node()
    try:
        if action == "remove":
            now = check_scratch(stack).row()
            with suppress(FileNotFoundError):
                remove_run_folder(Scratch(stack, run_id).data.parent)
            return {"host": host, "file_system": now}
        check_storage(stack)
        problem = space_problem(stack, footprint)
        if problem:
            raise RunFailed(problem)
        if action == "tidy":
            tidy(stack)
        found = {"host": host, "around": surroundings(stack)}
        if action == "make":
            scratch = Scratch(stack, run_id).__enter__()
            assert scratch.file_system is not None
            found |= {"data": str(scratch.data), "file_system": scratch.file_system.row()}
    except (UserError, RunFailed) as error:
        return {"host": host, "error": str(error)}
    return found


def tidy(stack: Stack) -> None:
    """Remove what killed runs left here. The job has this node alone, so nobody works in them."""
    for folder in leftovers(stack):
        remove_run_folder(folder)


def main(arguments: list[str]) -> int:
    """Answer; the exit code is 0 also for an error, which the answer names."""
    action, name, storage, run_id, footprint = arguments
    stack = Stack(name, Storage.model_validate_json(storage))
    say(answer(action, stack, run_id, int(footprint)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
