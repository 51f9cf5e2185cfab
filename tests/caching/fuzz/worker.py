"""The process that plays cases: ``python -m tests.caching.fuzz.worker play|contents FOLDER FIRST COUNT``.

One JSON line a case on standard output, at once, so that a case that crashes HDF5 is known by its absence.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from pathlib import Path

from tests.caching.fuzz.play import Player, contents


def one_case(mode: str, folder: Path, seed: int) -> dict[str, str | int]:
    path = folder / f"{seed}.h5"
    if mode == "contents":
        return {"seed": seed, "contents": contents(path)}
    player = Player(seed, folder)
    answer: dict[str, str | int] = {"seed": seed, "seen": player.play()}
    if player.how["libver"] == "earliest":  # later formats hold the times at which groups were made
        answer["bytes"] = hashlib.sha256(path.read_bytes()).hexdigest()
    return answer


def main() -> None:
    mode, folder, first, count = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    os.chdir(folder)  # relative names of external files go by it, and files hold no path of this run
    for seed in range(first, first + count):
        try:
            answer = one_case(mode, folder, seed)
        except Exception as error:
            answer = {
                "seed": seed,
                "failed": f"{type(error).__name__}: {str(error).replace(str(folder), '')}",
            }
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
