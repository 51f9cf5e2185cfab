"""The sources that made and read the results, as one archive; their commit, locks and digests."""

from __future__ import annotations

import hashlib
import json
import platform
import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import tiercel
from tiercel.artifact.archive import write_archive
from tiercel.documents import read_yaml
from tiercel.errors import UserError
from tiercel.privacy import private
from tiercel.results.raw import RawRun, write_json
from tiercel.whole import write_text

PYTHON_LOCKS = ("requirements.lock", "requirements-bootstrap.lock")
SPACK = ("spack.yaml", "spack.lock", "stack.json")

#: Of the checkout: what neither measures nor reads results.
_LEFT_OUT = ("tests/", "benchmarks/", ".ci/")
#: Where a user's own files are part of what measured, also before they are committed.
_OWN = ("analysis/", "native/", "workflows/", "site-configs/")
_BUILT = re.compile(r"(?:^|/)(?:__pycache__|build|target|\.[^/]+|[^/]+\.egg-info|[^/]+\.pyc)(?:/|$)")


@dataclass(frozen=True)
class Software:
    """The sources of a checkout."""

    root: Path
    files: tuple[str, ...]
    commit: str
    """Empty where the sources are not in a git repository."""
    modified: bool
    url: str
    """Of the project, as its CITATION.cff says; empty where it does not."""

    @property
    def name(self) -> str:
        return f"tiercel-{tiercel.__version__}"

    def pack(self, target: Path) -> None:
        """Write the sources as an archive with one folder."""
        write_archive({f"{self.name}/{path}": self.root / path for path in self.files}, target)

    def suspects(self) -> list[str]:
        """Return the files that hold something private of the user who packs."""
        hidden = private()
        # root's home folder tells nobody's name.
        homes = [home for home in hidden.homes if home != "/root"]
        found = []
        for path in self.files:
            content = (self.root / path).read_bytes() if (self.root / path).is_file() else b""
            text = content.decode("utf-8", "replace")
            words = [*homes, *(value for value, _ in hidden.secrets)]
            if any(re.search(rf"{re.escape(word)}(?![\w-])", text) for word in words):
                found.append(path)
        return found

    def sources_digest(self, part: str) -> str:
        """Return the SHA-256 over names and contents of native/`part`; empty where there is none."""
        files = [path for path in self.files if path.startswith(f"native/{part}/")]
        digest = hashlib.sha256()
        for path in files:
            digest.update(f"{path}\0".encode() + (self.root / path).read_bytes() + b"\0")
        return digest.hexdigest() if files else ""


def find_software() -> Software:
    """Return the sources of the tiercel that runs. UserError where it was installed without them."""
    root = Path(tiercel.__file__).resolve().parents[2]
    if not (root / "Snakefile").is_file() or not (root / PYTHON_LOCKS[0]).is_file():
        raise UserError(
            f"{root}: tiercel's sources are not there: an artifact is packed from a checkout of it"
        )
    citation = read_yaml(root / "CITATION.cff")
    url = str(citation.get("repository-code") or citation.get("url") or "")
    listed = _git(root, "ls-files", "-z")
    if listed is None:
        files = [p.relative_to(root).as_posix() for p in root.rglob("*") if p.is_file() or p.is_symlink()]
        files = [path for path in files if not _BUILT.search(path) and not path.startswith("results/")]
        return Software(root, _wanted(files), "", False, url)
    own = _git(root, "ls-files", "-z", "--others", "--exclude-standard") or ""
    paths = [path for path in listed.split("\0") if path]
    added = [path for path in own.split("\0") if path.startswith(_OWN)]
    changed = bool(added or _git(root, "status", "--porcelain", "--untracked-files=no"))
    there = [p for p in paths + added if (root / p).exists() or (root / p).is_symlink()]
    return Software(root, _wanted(there), (_git(root, "rev-parse", "HEAD") or "").strip(), changed, url)


def _wanted(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(path for path in paths if not path.startswith(_LEFT_OUT)))


def _git(root: Path, *words: str) -> str | None:
    """Return what git says of the repository whose top `root` is; None where there is none, or no git."""
    git = ["git", "-C", str(root)]
    try:
        top = subprocess.run(
            [*git, "rev-parse", "--show-toplevel"], capture_output=True, text=True, check=False
        )
        if top.returncode or Path(top.stdout.strip()).resolve() != root:
            return None
        done = subprocess.run([*git, *words], capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None


def write_locks(software: Software, results: Path, runs: Sequence[RawRun], target: Path) -> None:
    """Write what fixes all versions: of Python packages, of Spack's stack, of engines."""
    target.mkdir()
    for name in PYTHON_LOCKS:
        shutil.copyfile(software.root / name, target / name)
    for name in SPACK:
        if (path := results / "stack" / name).is_file():
            (target / "spack").mkdir(exist_ok=True)
            text = path.read_text(encoding="utf-8", errors="surrogateescape")
            text = private().text(text.replace(str(software.root), "$CHECKOUT"))
            write_text(target / "spack" / name, text, errors="surrogateescape")
    write_json(target / "engines.json", _engines(software, runs))
    write_json(target / "environment.json", environment(software.root / PYTHON_LOCKS[0]))


def _engines(software: Software, runs: Sequence[RawRun]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in sorted({raw.run["engine"] for raw in runs}):
        versions = sorted({raw.run["engine_version"] for raw in runs if raw.run["engine"] == name})
        found[name] = {"versions": versions, "sources_sha256": software.sources_digest(name)}
    return found


def environment(lock: Path) -> dict[str, Any]:
    """Return the versions of Python and of the locked packages that are installed here."""
    names = re.findall(r"^([A-Za-z0-9_.-]+)==", lock.read_text(), re.MULTILINE)
    packages = {}
    for name in sorted(set(names)):
        try:
            packages[name] = version(name)
        except PackageNotFoundError:  # of another platform
            continue
    return {"python": platform.python_version(), "machine": platform.machine(), "packages": packages}


def other_versions(published: dict[str, Any], here: dict[str, Any]) -> list[str]:
    """Return in words what is of another version here than where the artifact was packed."""
    words = [
        f"{name} {here[name]} (packed with {published[name]})"
        for name in ("python", "machine")
        if here[name] != published[name]
    ]
    theirs, ours = published["packages"], here["packages"]
    words += [
        f"{name} {ours.get(name, 'is missing')} (packed with {wanted})"
        for name, wanted in theirs.items()
        if ours.get(name) != wanted
    ]
    return words


def load_environment(folder: Path) -> dict[str, Any]:
    """Return the environment of an artifact's locks."""
    found: dict[str, Any] = json.loads((folder / "environment.json").read_text())
    return found
