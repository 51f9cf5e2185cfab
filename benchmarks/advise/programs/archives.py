"""Trees of small files: a package unpacked, a wheel installed, a tree copied, an archive unpacked."""

from __future__ import annotations

import os
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

from benchmarks.advise.programs.base import (
    Program,
    make_tree,
    path_of,
    programs,
    python_with,
    run,
    same_tree,
)

_FILES, _SIZE = 1000, 8000


def _made(folder: Path, count: int = _FILES) -> str | None:
    """Return how `folder` differs from the tree that was packed."""
    with tempfile.TemporaryDirectory(prefix="tiercel-tree-") as name:
        make_tree(Path(name), count, _SIZE)
        return same_tree(Path(name), folder)


@programs.register("dpkg-unpack")
class Dpkg(Program):
    title = "dpkg, unpacks a package of 300 files, each synced"
    _count = 300

    needs = ("dpkg", "dpkg-deb dpkg")

    def missing(self) -> str | None:
        return "dpkg unpacks only as root (it sets owners)" if os.geteuid() else super().missing()

    def make(self, folder: Path) -> None:
        database = folder / "root/var/lib/dpkg"
        for part in ("info", "updates", "triggers"):
            (database / part).mkdir(parents=True)
        (database / "status").touch()
        with tempfile.TemporaryDirectory(prefix="tiercel-package-") as name:
            tree = Path(name)
            (tree / "DEBIAN").mkdir()
            tree.chmod(0o755)
            (tree / "DEBIAN/control").write_text(
                "Package: made\nVersion: 1\nArchitecture: all\nMaintainer: nobody\nDescription: made files\n"
            )
            make_tree(tree / "usr/share/made", self._count, _SIZE)
            run(path_of("dpkg-deb"), "--root-owner-group", "-Zgzip", "-b", tree, folder / "made.deb")

    def command(self, folder: Path) -> list[str]:
        return [
            path_of("dpkg"),
            f"--root={folder}/root",
            "--force-not-root",
            "--unpack",
            f"{folder}/made.deb",
        ]

    def wrong(self, folder: Path) -> str | None:
        return _made(folder / "root/usr/share/made", self._count)


@programs.register("pip-install")
class Pip(Program):
    title = f"pip, installs a wheel of {_FILES} files"
    module = "pip Debian: apt install python3-pip"

    def make(self, folder: Path) -> None:
        with tempfile.TemporaryDirectory(prefix="tiercel-wheel-") as name:
            tree = Path(name)
            make_tree(tree / "made", _FILES, _SIZE)
            about = tree / "made-1.dist-info"
            about.mkdir()
            (about / "METADATA").write_text("Metadata-Version: 2.1\nName: made\nVersion: 1\n")
            (about / "WHEEL").write_text(
                "Wheel-Version: 1.0\nGenerator: made\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
            )
            paths = sorted(p for p in tree.rglob("*") if p.is_file())
            names = [str(p.relative_to(tree)) for p in paths]
            (about / "RECORD").write_text("".join(f"{n},,\n" for n in [*names, "made-1.dist-info/RECORD"]))
            with zipfile.ZipFile(folder / "made-1-py3-none-any.whl", "w", zipfile.ZIP_DEFLATED) as wheel:
                for path in [*paths, about / "RECORD"]:
                    wheel.write(path, path.relative_to(tree))

    def command(self, folder: Path) -> list[str]:
        options = ["--no-index", "--no-deps", "--no-compile", "--no-cache-dir", "--disable-pip-version-check"]
        quiet = ["--quiet", "--ignore-installed", "--no-warn-script-location", "--root-user-action=ignore"]
        files = [f"--prefix={folder}/environment", f"{folder}/made-1-py3-none-any.whl"]
        return [str(python_with("pip")), "-m", "pip", "install", *options, *quiet, *files]

    def environment(self) -> Mapping[str, str]:
        return {"PIP_CONFIG_FILE": "/dev/null", "PYTHONDONTWRITEBYTECODE": "1"}

    def wrong(self, folder: Path) -> str | None:
        found = sorted((folder / "environment").rglob("site-packages/made")) or sorted(
            (folder / "environment").rglob("dist-packages/made")
        )
        return _made(found[0]) if found else "nothing was installed"


@programs.register("rsync")
class Rsync(Program):
    title = "rsync, copies a tree of 1,000 small files"
    _count = 1000

    needs = ("rsync",)

    def make(self, folder: Path) -> None:
        make_tree(folder / "tree", self._count, _SIZE)

    def command(self, folder: Path) -> list[str]:
        return [path_of("rsync"), "-a", f"{folder}/tree/", f"{folder}/copy/"]

    def wrong(self, folder: Path) -> str | None:
        return _made(folder / "copy", self._count)


@programs.register("7z-unpack")
class SevenUnpack(Program):
    title = f"7z, unpacks {_FILES} files"
    needs = ("7z p7zip-full",)

    def make(self, folder: Path) -> None:
        with tempfile.TemporaryDirectory(prefix="tiercel-7z-") as name:
            make_tree(Path(name) / "tree", _FILES, _SIZE)
            run(path_of("7z"), "a", "-bd", "-mx=1", folder / "made.7z", f"{name}/tree")

    def command(self, folder: Path) -> list[str]:
        return [path_of("7z"), "x", "-bd", "-y", f"-o{folder}/out", f"{folder}/made.7z"]

    def wrong(self, folder: Path) -> str | None:
        return _made(folder / "out/tree")


@programs.register("grep-warm")
class Grep(Program):
    title = "grep, through 800 files that are in the page cache"
    warm = True
    _count = 800

    needs = ("grep",)

    def make(self, folder: Path) -> None:
        make_tree(folder / "tree", self._count, 100_000)

    def command(self, folder: Path) -> list[str]:
        count = 'grep -r -c -E "(aa|bb)[0-9]+ .*(cc|dd)$" "$1/tree" > "$1/counts"'
        return [path_of("sh"), "-c", f"{count} || test $? = 1", "sh", str(folder)]

    def wrong(self, folder: Path) -> str | None:
        counts = (folder / "counts").read_text().splitlines()
        return None if len(counts) == self._count else f"{len(counts)} counts, not {self._count}"
