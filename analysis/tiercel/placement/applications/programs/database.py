"""Fills an SQLite database and asks it: python database.py FOLDER JOURNAL ROWS ROWS-PER-COMMIT."""

from __future__ import annotations

import sqlite3
import sys
from pathlib import Path


def _work(folder: Path, journal: str, rows: int, each: int) -> None:
    database = sqlite3.connect(folder / "table.db", isolation_level=None)
    database.execute(f"PRAGMA journal_mode = {journal}")
    if journal == "off":
        database.execute("PRAGMA synchronous = OFF")
    database.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, key INTEGER, text TEXT)")
    database.execute("CREATE INDEX k ON t (key)")
    for first in range(0, rows, each):
        database.execute("BEGIN")
        database.executemany(
            "INSERT INTO t (key, text) VALUES (?, ?)",
            ((n * 7919 % 100003, "x" * (50 + n % 100)) for n in range(first, min(rows, first + each))),
        )
        database.execute("COMMIT")
    database.close()
    again = sqlite3.connect(folder / "table.db")
    again.execute("PRAGMA cache_size = 10")
    for n in range(200):
        again.execute("SELECT text FROM t WHERE key = ?", (n * 7919 % 100003,)).fetchall()
    again.close()


if __name__ == "__main__":
    _work(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
