"""``python -m benchmarks.findings [LABELLED_SET]``: how often findings are right, and what they miss."""

from __future__ import annotations

import sys

from benchmarks.findings.command import main

sys.exit(main(sys.argv[1:]))
