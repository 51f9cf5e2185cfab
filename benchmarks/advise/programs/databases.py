"""Databases: synced writes one by one, random reads of a cold one, a bulk import."""

from __future__ import annotations

import random
from pathlib import Path

from benchmarks.advise.programs.base import Program, path_of, programs, run, script


class _RocksDB(Program):
    needs = ("db_bench rocksdb-tools", "ldb rocksdb-tools")

    def _bench(self, folder: Path, *options: str) -> list[str]:
        return [
            path_of("db_bench"),
            f"--db={folder}/db",
            "--threads=1",
            "--seed=1",
            "--compression_type=none",
            *options,
        ]

    def _keys(self, folder: Path) -> int:
        said = run(path_of("ldb"), f"--db={folder}/db", "dump", "--count_only")
        return int(said.split("Keys in range:")[1].split()[0])


@programs.register("rocksdb-sync")
class RocksSync(_RocksDB):
    title = "RocksDB, 3,000 writes, each synced"
    _writes = 3000

    def make(self, folder: Path) -> None:
        (folder / "db").mkdir()

    def command(self, folder: Path) -> list[str]:
        return self._bench(folder, "--benchmarks=fillseq", "--sync=1", f"--num={self._writes}")

    def wrong(self, folder: Path) -> str | None:
        keys = self._keys(folder)
        return None if keys == self._writes else f"{keys} keys, not {self._writes}"


@programs.register("rocksdb-read")
class RocksRead(_RocksDB):
    title = "RocksDB, 6,000 random reads of 200 MB"
    _rows = 100_000

    def make(self, folder: Path) -> None:
        made = ("--benchmarks=fillseq,compact", f"--num={self._rows}", "--value_size=2000")
        run(*self._bench(folder, *made))

    def command(self, folder: Path) -> list[str]:
        known = ("--use_existing_db=1", f"--num={self._rows}", "--value_size=2000")
        return self._bench(folder, *known, "--benchmarks=readrandom", "--reads=6000")

    def wrong(self, folder: Path) -> str | None:
        keys = self._keys(folder)
        return None if keys == self._rows else f"{keys} keys, not {self._rows}"


@programs.register("leveldb")
class LevelDB(Program):
    title = "LevelDB, 120,000 writes in 600 synced batches, then all read"
    module = "plyvel Debian: apt install python3-plyvel"

    def make(self, folder: Path) -> None:
        (folder / "out").mkdir()

    def command(self, folder: Path) -> list[str]:
        return script("leveldb", folder / "base", folder / "out/sum", 600, 200, module="plyvel")

    def wrong(self, folder: Path) -> str | None:
        found = (folder / "out/sum").read_text()
        return None if found == f"120000 {120000 * 100}\n" else f"its sum is {found!r}"


class _Sqlite(Program):
    needs = ("sqlite3",)

    def _rows(self, folder: Path) -> str:
        base = f"file:{folder}/base.db?mode=ro"
        said = run(path_of("sqlite3"), base, "PRAGMA integrity_check; SELECT count(*), sum(a) FROM t;")
        return " ".join(said.split())


@programs.register("sqlite-import")
class SqliteImport(_Sqlite):
    title = "sqlite3, bulk import of a 30 MB CSV file, and an index"
    _count = 300_000

    def make(self, folder: Path) -> None:
        chance = random.Random(1)
        with (folder / "rows.csv").open("w") as rows:
            for number in range(self._count):
                rows.write(f"{number},{chance.random()},{chance.randbytes(36).hex()}\n")

    def command(self, folder: Path) -> list[str]:
        return [
            path_of("sqlite3"), str(folder / "base.db"), "CREATE TABLE t(a INTEGER, b REAL, c TEXT)",
            ".mode csv", f".import {folder}/rows.csv t", "CREATE INDEX byc ON t(c)",
        ]  # fmt: skip

    def wrong(self, folder: Path) -> str | None:
        found, sum_ = self._rows(folder), self._count * (self._count - 1) // 2
        return None if found == f"ok {self._count}|{sum_}" else found


@programs.register("sqlite-commits")
class SqliteCommits(_Sqlite):
    title = "sqlite3, 400 statements, each a transaction"
    _count = 400

    def make(self, folder: Path) -> None:
        lines = [f"INSERT INTO t VALUES({n}, '{'x' * 200}');" for n in range(self._count)]
        (folder / "load.sql").write_text("\n".join(["CREATE TABLE t(a INTEGER, b TEXT);", *lines, ""]))

    def command(self, folder: Path) -> list[str]:
        return [path_of("sqlite3"), str(folder / "base.db"), f".read {folder}/load.sql"]

    def wrong(self, folder: Path) -> str | None:
        found, sum_ = self._rows(folder), self._count * (self._count - 1) // 2
        return None if found == f"ok {self._count}|{sum_}" else found
