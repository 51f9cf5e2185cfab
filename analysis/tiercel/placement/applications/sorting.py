"""GNU sort with little memory: it writes sorted runs to temporary files and reads them back to merge."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tiercel.placement.applications.base import Application, Variant, applications, lacks


@applications.register("sort")
class Sort(Application):
    name = "sort"
    variants = (
        Variant("small-buffer", {"lines": 300_000, "buffer": "1M"}),
        Variant("large-buffer", {"lines": 1_000_000, "buffer": "4M"}),
    )

    def missing(self) -> str | None:
        return lacks("sort", "Debian: coreutils")

    def prepare(self, folder: Path, options: Mapping[str, Any]) -> None:
        chance = random.Random(1)
        with (folder / "in.txt").open("w") as file:
            file.writelines(f"{chance.randrange(10**9)}\n" for _ in range(options["lines"]))

    def command(self, folder: Path, options: Mapping[str, Any]) -> list[str]:
        return [
            "sort",
            "-S",
            options["buffer"],
            "-T",
            str(folder),
            "-o",
            str(folder / "out.txt"),
            str(folder / "in.txt"),
        ]

    def environment(self) -> Mapping[str, str]:
        return {"LC_ALL": "C"}
