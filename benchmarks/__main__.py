"""``python -m benchmarks [NAME ...]``: run the named benchmarks, or all."""

from __future__ import annotations

import sys

from benchmarks import dl, engines, harness, placement, report, survey, traces

_ALL = {
    "dl": dl.main,
    "engines": engines.main,
    "harness": harness.main,
    "placement": placement.main,
    "report": report.main,
    "survey": survey.main,
    "traces": traces.main,
}


def main() -> int:
    names = sys.argv[1:] or list(_ALL)
    unknown = [n for n in names if n not in _ALL]
    if unknown:
        print(f"benchmarks: no benchmark named {unknown[0]} (allowed: {', '.join(_ALL)})", file=sys.stderr)
        return 2
    return max(_ALL[name]() for name in names)


sys.exit(main())
