"""Where things lie in an artifact. Readers of other versions rely on it: a change makes another FORMAT."""

from __future__ import annotations

#: Of the layout, in ``artifact.json``.
FORMAT = 1

DESCRIPTION = "artifact.json"
CHECKSUMS = "manifest-sha256.txt"
CRATE = "ro-crate-metadata.json"
ZENODO = ".zenodo.json"
CITATION = "CITATION.cff"
README = "README.md"
RESULTS, STUDY, SITE, LOCKS, SOFTWARE, WORKFLOW = (
    "results",
    "study",
    "site.yaml",
    "locks",
    "software",
    "workflow",
)
#: Of the software; that of the results is another.
LICENCE = "LICENSE-software.txt"
SCRIPTS = ("reproduce.sh", "measure-again.sh", "compare.sh", "work.sh")
#: Everything that an artifact holds at its top, the list of checksums apart. A reader's own files may lie
#: beside it: the scripts make `work` and `again` there.
PACKED = (
    *(RESULTS, STUDY, SITE, LOCKS, SOFTWARE, WORKFLOW),
    *(DESCRIPTION, CRATE, ZENODO, CITATION, README, LICENCE, *SCRIPTS),
)

#: In a folder of results: what other files are made from. Everything else is made again, and compared.
#: `placement` and `looks` are answers of earlier commands that a report reads.
SOURCES = ("raw", "looks", "placement")
#: Of a run: what its tracer left.
TRACE = "trace"
TRACE_TABLES = ("traces.parquet", "trace-groups.parquet")
