"""Makes upstream DLIO's first epoch cold: ``python -m tiercel.dl.upstream.evict REPORT FOLDER``.

DLIO cannot do it itself; started on every node. Drops the folder's files from this node's page cache, looks
at what stayed, and writes that as JSON: bytes, resident_fraction (null: unknown), resident_method,
resident_unknown (why null), memory_backed.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tiercel.atomic_file import write_text
from tiercel.pagecache import evict, residency


def main() -> int:
    report, folder = Path(sys.argv[1]), Path(sys.argv[2])
    paths = sorted(str(p) for p in folder.rglob("*") if p.is_file())
    try:
        evict(paths)
        found = residency(paths)
        content = {
            "bytes": sum(Path(p).stat().st_size for p in paths),
            "resident_fraction": found.fraction,
            "resident_method": found.method,
            "resident_unknown": found.unknown or None,
            "memory_backed": found.memory_backed,
        }
    except OSError as error:
        print(f"evict: error: {error.filename or folder}: {error.strerror}", file=sys.stderr)
        return 1
    # Processes of several nodes write the same file: whole, and the last one stays.
    write_text(report, json.dumps(content))
    return 0


if __name__ == "__main__":
    sys.exit(main())
