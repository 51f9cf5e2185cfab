"""Speed of tiercel itself: `make bench` runs it. Nothing here is a test.

Apart from it, `python -m benchmarks.advise` holds advice against what is true (docs/advise-programs.md).
"""
