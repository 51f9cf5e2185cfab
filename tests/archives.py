"""Archives, unpacked by any Python."""

from __future__ import annotations

import tarfile
from pathlib import Path


def unpacked(archive: Path, target: Path) -> Path:
    """Unpack an archive of one folder into `target` and return that folder."""
    with tarfile.open(archive) as opened:
        if hasattr(tarfile, "data_filter"):
            opened.extractall(target, filter="data")
        else:  # Python before 3.11.4, as Debian 12 has it
            opened.extractall(target)
        (name,) = {Path(each).parts[0] for each in opened.getnames()}
    return target / name
