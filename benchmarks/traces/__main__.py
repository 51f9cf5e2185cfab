"""``python -m benchmarks.traces``: this benchmark alone."""

from __future__ import annotations

import sys

from benchmarks.traces.bench import main

sys.exit(main())
