"""Programs that this benchmark had not used before advice by trials, chosen before its code was finished.

They wait for sockets, map files, use Linux AIO or io_uring, sleep, or leave the work to a server.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from benchmarks.advise.programs.base import (
    Program,
    make_tree,
    path_of,
    programs,
    run,
    script,
    text,
)

_SCRIPTS = Path(__file__).parent / "scripts"


class _New(Program):
    new = True
    warm = True


@programs.register("redis")
class Redis(_New):
    title = "redis-server and redis-benchmark, 2,000 writes, each synced"
    needs = ("redis-server", "redis-benchmark redis-tools")

    def make(self, folder: Path) -> None:
        (folder / "empty").touch()

    def command(self, folder: Path) -> list[str]:
        return ["sh", str(_SCRIPTS / "redis.sh"), str(folder)]

    def wrong(self, folder: Path) -> str | None:
        size = sum(p.stat().st_size for p in folder.glob("appendonlydir/*"))
        return None if size > 60_000 else f"its log has {size} bytes"


@programs.register("pgbench")
class Pgbench(_New):
    title = "PostgreSQL and pgbench, 150 transactions"

    def missing(self) -> str | None:
        if os.geteuid() == 0:
            return "PostgreSQL does not run as root: run the benchmark as an ordinary user, too"
        return (
            None if list(Path("/usr/lib/postgresql").glob("*/bin/initdb")) else "no PostgreSQL (postgresql)"
        )

    def make(self, folder: Path) -> None:
        binaries = sorted(Path("/usr/lib/postgresql").glob("*/bin"))[-1]
        base = folder / "base"
        run(binaries / "initdb", "-D", base, "-A", "trust", "--no-sync")
        single = ("-D", base, "-s", "-o", f"-k {folder} -c listen_addresses=")
        run(binaries / "pg_ctl", *single, "-l", folder / "log", "start")
        run(binaries / "pgbench", "-h", folder, "-i", "-q", "postgres")
        run(binaries / "pg_ctl", *single, "-m", "fast", "stop")

    def command(self, folder: Path) -> list[str]:
        return ["sh", str(_SCRIPTS / "pgbench.sh"), str(folder)]

    def wrong(self, folder: Path) -> str | None:
        said = (folder / "answer").read_text()
        return None if "actually processed: 150/150" in said else said[-200:]


@programs.register("lmdb")
class Lmdb(_New):
    title = "LMDB, 300 commits to a mapped database"
    module = "lmdb Debian: apt install python3-lmdb"

    def make(self, folder: Path) -> None:
        (folder / "base").mkdir()

    def command(self, folder: Path) -> list[str]:
        return script("lmdb_commits", folder / "base", 300, module="lmdb")

    def wrong(self, folder: Path) -> str | None:
        size = (folder / "base/data.mdb").stat().st_size
        return None if size >= 300 * 400 else f"its database has {size} bytes"


@programs.register("maildir")
class Maildir(_New):
    title = "delivery of 150 mails into a Maildir"

    def make(self, folder: Path) -> None:
        for name in ("cur", "new", "tmp"):
            (folder / "mail" / name).mkdir(parents=True)

    def command(self, folder: Path) -> list[str]:
        return script("deliver", folder / "mail", 150, module="mailbox")

    def wrong(self, folder: Path) -> str | None:
        count = len(list((folder / "mail/new").iterdir()))
        return None if count == 150 else f"{count} mails"


@programs.register("gnu-sort")
class GnuSort(_New):
    title = "sort of 30 MB with 4 MB of memory, through temporary files"

    def make(self, folder: Path) -> None:
        (folder / "temporary").mkdir()
        (folder / "lines").write_bytes(text(30_000_000, 5).replace(b" ", b"\n"))

    def command(self, folder: Path) -> list[str]:
        files = ["-T", f"{folder}/temporary", "-o", f"{folder}/sorted", f"{folder}/lines"]
        return [path_of("sort"), "-S", "4M", "--parallel=1", *files]

    def environment(self) -> Mapping[str, str]:
        return {"LC_ALL": "C"}

    def wrong(self, folder: Path) -> str | None:
        sizes = [(folder / name).stat().st_size for name in ("lines", "sorted")]
        return None if sizes[1] - sizes[0] in (0, 1) else f"sizes {sizes}"


@programs.register("nco")
class Nco(_New):
    title = "ncra, the mean of 6 netCDF files of 6.4 MB"
    needs = ("ncra nco",)

    def make(self, folder: Path) -> None:
        run(*script("netcdf_files", folder, 6, 400_000, module="scipy.io"))

    def command(self, folder: Path) -> list[str]:
        return [path_of("ncra"), "-O", "-h", *(f"{folder}/in{n}.nc" for n in range(6)), f"{folder}/out.nc"]

    def wrong(self, folder: Path) -> str | None:
        size = (folder / "out.nc").stat().st_size
        return None if size >= 400_000 * 8 else f"the mean has {size} bytes"


@programs.register("numpy-memmap")
class Memmap(_New):
    title = "numpy, 25 rounds of changes to 32 MB through a mapping, each flushed"
    module = "numpy Debian: apt install python3-numpy"

    def make(self, folder: Path) -> None:
        (folder / "array").write_bytes(bytes(1 << 25))

    def command(self, folder: Path) -> list[str]:
        return script("memmap", folder / "array", 25, module="numpy")

    def wrong(self, folder: Path) -> str | None:
        count = (folder / "array").read_bytes().count(1)
        return None if count == 25 * (1 << 25) // (64 * 1024) else f"{count} bytes are changed"


class _Fio(_New):
    engine = ""

    needs = ("fio",)

    def make(self, folder: Path) -> None:
        (folder / "data").write_bytes(bytes(1 << 24))

    def command(self, folder: Path) -> list[str]:
        fixed = [
            "--name=one", "--size=16M", "--bs=4k", "--rw=randwrite", "--iodepth=8", "--number_ios=1200",
            "--fsync=8",
        ]  # fmt: skip
        files = [f"--filename={folder}/data", f"--output={folder}/said"]
        return [path_of("fio"), *fixed, f"--ioengine={self.engine}", *files]

    def wrong(self, folder: Path) -> str | None:
        return None if "err= 0" in (folder / "said").read_text() else "fio reports an error"


@programs.register("fio-libaio")
class FioAio(_Fio):
    title, engine = "fio, Linux AIO, 1,200 random writes, a sync for each eight", "libaio"


@programs.register("fio-uring")
class FioUring(_Fio):
    title, engine = "fio, io_uring, 1,200 random writes, a sync for each eight", "io_uring"


@programs.register("git-gc")
class GitGc(_New):
    title = "git gc, 1,500 loose objects"
    needs = ("git",)

    def make(self, folder: Path) -> None:
        make_tree(folder / "repo", 1500, 2000)
        options = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "gc.auto=0"]
        git = (path_of("git"), "-C", folder / "repo", *options)
        run(path_of("git"), "init", "-q", folder / "repo")
        run(*git, "add", ".")
        run(*git, "commit", "-q", "-m", "all")

    def command(self, folder: Path) -> list[str]:
        # Of whoever owns the repository: the benchmark may lie elsewhere.
        options = ["-c", "safe.directory=*", "-c", "pack.threads=1"]
        return [path_of("git"), *options, "-C", f"{folder}/repo", "gc", "-q"]

    def wrong(self, folder: Path) -> str | None:
        run(path_of("git"), "-c", "safe.directory=*", "-C", folder / "repo", "fsck", "--no-progress")
        return None if list((folder / "repo/.git/objects/pack").glob("*.pack")) else "there is no pack"


@programs.register("cargo-build")
class CargoBuild(_New):
    title = "cargo build of a crate of 12 modules"
    needs = ("cargo",)

    def make(self, folder: Path) -> None:
        (folder / "src").mkdir()
        (folder / "Cargo.toml").write_text('[package]\nname = "small"\nversion = "0.1.0"\nedition = "2021"\n')
        names = [f"part{n}" for n in range(12)]
        for name in names:
            body = "\n".join(f"pub fn f{n}(x: u64) -> u64 {{ x * {n} + 1 }}" for n in range(40))
            (folder / f"src/{name}.rs").write_text(body)
        calls = " + ".join(f"{name}::f7(3)" for name in names)
        (folder / "src/main.rs").write_text(
            "".join(f"mod {name};\n" for name in names) + f'fn main() {{ println!("{{}}", {calls}); }}\n'
        )

    def command(self, folder: Path) -> list[str]:
        return [path_of("cargo"), "build", "-q", "--offline", "--manifest-path", f"{folder}/Cargo.toml"]

    def environment(self) -> Mapping[str, str]:
        return {"RUSTFLAGS": "-Awarnings"}

    def wrong(self, folder: Path) -> str | None:
        said = run(folder / "target/debug/small").strip()
        return None if said == str(12 * (3 * 7 + 1)) else f"it prints {said}"


@programs.register("polling")
class Polling(_New):
    title = "a shell loop that writes, syncs, sleeps and looks"

    def make(self, folder: Path) -> None:
        (folder / "empty").touch()

    def command(self, folder: Path) -> list[str]:
        loop = (
            'for n in 1 2 3 4 5 6 7 8; do echo $n >"$1/f$n"; sync "$1/f$n"; sleep 0.03; [ -s "$1/f$n" ]; done'
        )
        return ["sh", "-c", loop, "polling", str(folder)]

    def wrong(self, folder: Path) -> str | None:
        count = len(list(folder.glob("f*")))
        return None if count == 8 else f"{count} files"
