"""Many small files: tar unpacks and packs a tree, git stores one and packs it."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tiercel.placement.applications.base import Application, Variant, applications, lacks, make_files


@applications.register("tar")
class Tar(Application):
    name = "tar"
    variants = (
        Variant("unpack-small", {"files": 400, "size": 2000}),
        Variant("unpack-large", {"files": 12, "size": 1_500_000}),
        Variant("pack", {"files": 200, "size": 20000, "pack": True}),
    )

    def missing(self) -> str | None:
        return lacks("tar", "Debian: tar")

    def prepare(self, folder: Path, options: Mapping[str, Any]) -> None:
        if options.get("pack"):
            make_files(folder / "tree", options["files"], options["size"])
            return
        with tempfile.TemporaryDirectory(prefix="tiercel-tar-") as place:
            make_files(Path(place) / "tree", options["files"], options["size"])
            subprocess.run(["tar", "-C", place, "-cf", str(folder / "in.tar"), "tree"], check=True)

    def command(self, folder: Path, options: Mapping[str, Any]) -> list[str]:
        if options.get("pack"):
            return ["tar", "-C", str(folder), "-cf", str(folder / "out.tar"), "tree"]
        return ["tar", "-C", str(folder), "-xf", str(folder / "in.tar")]


@applications.register("git")
class Git(Application):
    name = "git"
    variants = (
        Variant("add", {"files": 120, "size": 3000, "fsync": "none"}),
        Variant("add-synced", {"files": 60, "size": 3000, "fsync": "all"}),
        Variant("repack", {"files": 120, "size": 30000, "repack": True}),
    )

    def missing(self) -> str | None:
        return lacks("git", "Debian: git")

    def prepare(self, folder: Path, options: Mapping[str, Any]) -> None:
        make_files(folder / "repository", options["files"], options["size"])
        self._git(folder, "init", "-q")
        if options.get("repack"):
            self._git(folder, "add", ".")
            self._git(
                folder, "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-q", "-m", "all"
            )

    def command(self, folder: Path, options: Mapping[str, Any]) -> list[str]:
        head = ["git", "-C", str(folder / "repository")]
        if options.get("repack"):
            return [*head, "repack", "-a", "-d", "-q"]
        return [*head, "-c", f"core.fsync={options['fsync']}", "add", "."]

    def environment(self) -> Mapping[str, str]:
        return {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}

    def _git(self, folder: Path, *words: str) -> None:
        import os  # noqa: PLC0415

        subprocess.run(
            ["git", "-C", str(folder / "repository"), *words],
            check=True, capture_output=True, env={**os.environ, **self.environment()},
        )  # fmt: skip
