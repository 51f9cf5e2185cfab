"""``python -m benchmarks.advise``: is the advice of `tiercel advise` right?"""

from __future__ import annotations

import sys

from benchmarks.advise.command import main

sys.exit(main(sys.argv[1:]))
