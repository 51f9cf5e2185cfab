"""What one process of a launcher's start says: ``python -m tiercel.checklist.process MARK``.

A node's every core starts one at once, so it imports next to nothing.
"""

from __future__ import annotations

import json
import os
import platform
import sys


def main(arguments: list[str]) -> int:
    """Print one line, in one write: lines of several processes never mix."""
    answer = {"host": platform.node(), "cores": sorted(os.sched_getaffinity(0))}
    sys.stdout.write(arguments[0] + json.dumps(answer) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
