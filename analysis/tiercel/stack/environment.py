"""A site's Spack environment, ``results/<site>/stack/``: from spack.yaml, with lock and view of its own.

Sites do not share one: each has its own lock, kept with its results, and the checkout stays clean.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tiercel.documents import read_yaml
from tiercel.errors import UserError
from tiercel.privacy import private
from tiercel.project import results_folder
from tiercel.stack.lock import required_architecture
from tiercel.stack.parts import scope_folder


@dataclass(frozen=True)
class Environment:
    root: Path
    """The checkout."""
    site: str

    @property
    def folder(self) -> Path:
        return results_folder(self.root, self.site) / "stack"

    @property
    def lock(self) -> Path:
        return self.folder / "spack.lock"

    @property
    def view(self) -> Path:
        return self.folder / "view"

    @property
    def log(self) -> Path:
        return self.folder / "spack.log"

    @property
    def resolved(self) -> Path:
        """What the lock was made from (see `origin`), and its summary."""
        return self.folder / "stack.json"

    def variables(self, parts: list[str]) -> dict[str, str]:
        """Return the environment variables that spack.yaml reads."""
        return {"TIERCEL_SITE": self.site, "TIERCEL_PARTS": " ".join(parts)}

    def write(self, packages: Path | None = None, mirror: str | None = None) -> None:
        """Write the environment's own spack.yaml: the project's, with absolute paths.

        packages: a checkout of Spack's packages, for machines that cannot clone it.
        mirror: a URL where sources are looked for first.
        """
        source = self.root / "spack.yaml"
        content = read_yaml(source).get("spack")
        if not isinstance(content, dict):
            raise UserError(f"{source}: must have one key, spack, that holds a mapping")
        content = dict(content)
        content["definitions"] = self._for_the_site(content.get("definitions", []))
        content["include"] = [self._absolute(entry) for entry in content.get("include", [])]
        repos = {
            name: self._absolute(place) if isinstance(place, str) else place
            for name, place in content.get("repos", {}).items()
        }
        if packages:
            repos["builtin"] = str(packages_repository(packages))
        content["repos"] = repos
        content["develop"] = {n: self._absolute(d) for n, d in content.get("develop", {}).items()}
        content["view"] = {"default": {"root": str(self.view), "link": "roots", "link_type": "symlink"}}
        if mirror:
            content["mirrors"] = {"tiercel": mirror}
        self.folder.mkdir(parents=True, exist_ok=True)
        text = f"# Made from {source} by tiercel stack; changes here are lost.\n"
        text += yaml.safe_dump({"spack": content}, sort_keys=False)
        target = self.folder / "spack.yaml"
        if not target.exists() or target.read_text() != text:
            target.write_text(text)

    def _for_the_site(self, definitions: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the parts with the site's target at each package: Spack's solver considers targets of other
        processor families than this machine's only where a package that was asked for names one."""
        wanted = required_architecture(scope_folder(self.root, self.site))
        if not wanted:
            return definitions
        at = f" os={wanted[0]} target={wanted[1]}"
        return [
            {key: value if key == "when" else [spec + at for spec in value] for key, value in part.items()}
            for part in definitions
        ]

    def _absolute(self, entry: Any) -> Any:
        if isinstance(entry, Mapping):
            return {k: self._absolute(v) if k == "path" else v for k, v in entry.items()}
        path = Path(str(entry))
        return str(path if path.is_absolute() else self.root / path)

    def lock_digest(self) -> str:
        """Return a digest of the lock; an empty word where there is none."""
        return hashlib.sha256(self.lock.read_bytes()).hexdigest() if self.lock.exists() else ""

    def origin(self, parts: list[str], packages: Path | None) -> str:
        """Return a digest of everything that the lock follows from: a changed one makes another lock."""
        place = private().text(str(packages or ""))  # as stack.json holds it
        digest = hashlib.sha256(json.dumps([self.site, parts, place]).encode())
        files = [self.root / "spack.yaml", *sorted(scope_folder(self.root, self.site).glob("*.yaml"))]
        files += sorted((self.root / "recipes").rglob("*.py"))
        for path in files:
            if path.name != "parts.yaml":  # its parts are in already
                digest.update(path.read_bytes())
        return digest.hexdigest()


def packages_repository(packages: Path) -> Path:
    """Return the repository in a checkout of Spack's packages, or `packages` where it is one itself."""
    for folder in (packages / "repos" / "spack_repo" / "builtin", packages):
        if (folder / "repo.yaml").is_file():
            return folder.resolve()
    raise UserError(f"--packages {packages}: no repos/spack_repo/builtin/repo.yaml in it")
