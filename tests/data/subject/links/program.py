"""``python -m links.program FOLDER RESULT CHAIN NAMES``: make the chains, open each name, say how long it took."""

import json
import sys
import time
from pathlib import Path

folder, result, chain, names = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
for name in range(names):
    before = folder / f"{name}.file"
    before.write_text(str(name))
    for link in range(chain):
        after = folder / f"{name}.{link}"
        after.symlink_to(before)
        before = after
began = time.perf_counter()
for name in range(names):
    with (folder / f"{name}.{chain - 1}").open() as file:
        assert file.read() == str(name)
seconds = time.perf_counter() - began
result.write_text(json.dumps({"opened": names, "chain": chain, "seconds": seconds}))
