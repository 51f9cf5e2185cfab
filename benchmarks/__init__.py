"""Speed of tiercel itself: `make bench` runs it. Nothing here is a test.

Apart from it, three hold what tiercel says against what is true: `python -m benchmarks.advise`
(docs/advise-programs.md), `benchmarks.findings` (its README) and `benchmarks.decisions` (docs/results.md).
"""
