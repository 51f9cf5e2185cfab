"""SQLite, a database: small writes all over one file, a journal beside it, and many synchronisations."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tiercel.placement.applications.base import Application, Variant, applications, python


@applications.register("sqlite")
class Sqlite(Application):
    name = "sqlite"
    tracer = "dftracer"
    variants = (
        Variant("commit-each", {"journal": "delete", "rows": 200, "each": 1}),
        Variant("commit-100", {"journal": "delete", "rows": 20000, "each": 100}),
        Variant("wal", {"journal": "wal", "rows": 3000, "each": 10}),
        Variant("bulk", {"journal": "off", "rows": 60000, "each": 60000}),
    )

    def command(self, folder: Path, options: Mapping[str, Any]) -> list[str]:
        return python("database", folder, options["journal"], options["rows"], options["each"])
