"""Data analysis: DuckDB over Parquet files, with less memory than its sort needs."""

from __future__ import annotations

from pathlib import Path

from benchmarks.advise.programs.base import Program, programs, run, script

_FILES, _ROWS = 4, 500_000


@programs.register("duckdb-spill")
class DuckSpill(Program):
    title = "DuckDB, a sort of 4 Parquet files in 60 MB of memory, which spills"
    module = "duckdb pip install duckdb"

    def make(self, folder: Path) -> None:
        (folder / "spill").mkdir()
        run(*script("parquet", folder, _FILES, _ROWS, module="duckdb"))

    def command(self, folder: Path) -> list[str]:
        return script("duckdb_sort", folder, "60MB", module="duckdb")

    def wrong(self, folder: Path) -> str | None:
        found = run(*script("in_order", folder / "sorted.parquet", module="duckdb")).strip()
        return None if found == f"{_FILES * _ROWS} True" else f"rows, and whether in order: {found!r}"
