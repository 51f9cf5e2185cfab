"""Which warnings of IOR and mdtest invalidate a result. docs/engines.md has the table.

A warning that is not listed here does: both programs continue after a failed write or fsync, and print a
rate.
Source: every WARN and ERR of hpc/ior (ior.c, mdtest.c, utilities.c, aiori-*.c), versions 3.0 to 4.1.
"""

from __future__ import annotations

import re

_WARNING = re.compile(r"\s*(?:ior )?WARNING\b:?\s*(.*)", re.IGNORECASE)
_ERROR = re.compile(
    r"\s*(?:ior )?ERROR\b|\*\* error \*\*|.*\bdata check error|.*\bProcess \d+: FAILED|.*\bFAILED in\b|"
    r"Error invalid argument|Invalid options",
    re.IGNORECASE,
)

#: What a launcher or a terminal puts before a line: colours, and who printed it (``0: ``, ``[1,0]<stderr>:``,
#: ``node03: ``). A word alone is a label only before a warning or an error.
_LABEL = re.compile(
    r"^(?:\s|\x1b\[[\d;]*[A-Za-z])*(?:\[[\w,.:-]+\](?:<\w+>)?:?|[\w.-]+:)?(?:\s|\x1b\[[\d;]*[A-Za-z])*"
    r"(?=(?:ior )?(?:WARNING|ERROR)\b)",
    re.IGNORECASE | re.MULTILINE,
)

#: What leaves the numbers as they are.
_HARMLESS = re.compile(
    # How much was moved: the adapters compare the bytes (tasks, items) with what was asked for.
    r"(Expected|Stat\(\) of) aggregate file size|Using actual aggregate bytes moved|"
    r"Maybe caused by deadlineForStonewalling|More tasks requested|running with \d+ tasks|"
    # Attribute caches of network file systems. A size that all tasks agree on is judged by `lost_bytes`.
    r"inconsistent file size by different tasks|"
    # A transfer that continued where it stopped; one that cannot continue prints another warning.
    r"task \d+, partial (write|read)\(\), \d+ of \d+ bytes|"
    # What was asked for, in words.
    r"Read bytes is 0, thus|The file .* exists already and will be|"
    # A task that took much longer than others.
    r"for .*, task \d+, .* is [\d.]+ \(mean=|"
    # Descriptions, hints and tables beside the result.
    r"Backend (returned error during|doesn't implement) statfs|unable to (use realpath|statfs)|uname failed|"
    r"cannot get (platform name|HDF5 library version)|Couln't append to saveRankPerformanceDetailsCSV|"
    r"\w+ not supported (with|by) current VOL connector|gpfs_fcntl\(.*hint failed",
    re.IGNORECASE,
)
_MOVED = re.compile(r"\s*WARNING: Using actual aggregate bytes moved\s*=\s*(\d+)", re.MULTILINE)
_HELD = re.compile(r"\s*WARNING: Stat\(\) of aggregate file size\s*=\s*(\d+)", re.MULTILINE)


def invalidates(line: str) -> bool:
    """Return whether a line of IOR's or mdtest's output means that its numbers must not be used."""
    line = _LABEL.sub("", line, count=1)
    warning = _WARNING.match(line)
    return not _HARMLESS.match(warning[1]) if warning else _ERROR.match(line) is not None


def lost_bytes(text: str) -> str:
    """Return why what IOR wrote is not in its files, in one sentence; empty where it is."""
    if "inconsistent file size by different tasks" in text:
        return ""
    text = _LABEL.sub("", text)
    for held, moved in zip(_HELD.findall(text), _MOVED.findall(text), strict=False):
        if int(held) < int(moved):
            return f"IOR moved {moved} bytes and its files hold {held}"
    return ""
