"""Reads one trace after another: run as a program by `pool`, in a process of its own.

For each line of its standard input, a `Found` in JSON, it answers with a line: the row. To an empty line it
answers with one, as soon as it has started.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import sys

from tiercel.traces.readers.darshan import one_child
from tiercel.traces.survey.find import Found
from tiercel.traces.survey.row import row_of


def main(memory: int) -> None:
    """Answer until the standard input ends; with no more than `memory` bytes of data, nor its children."""
    with contextlib.suppress(ValueError, OSError):  # somebody allowed less
        resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    key = os.environ.pop("TIERCEL_SURVEY_KEY", None)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is no answer
    with one_child():
        for line in sys.stdin:
            row = json.dumps(row_of(Found(**json.loads(line)), key)) if line.strip() else ""
            print(row, file=answers, flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
