"""The sources that made and read the results, as one archive; their commit, locks and digests."""

from __future__ import annotations

import hashlib
import platform
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import tiercel
from tiercel.artifact.archive import write_archive
from tiercel.atomic_file import write_text
from tiercel.documents import read_yaml
from tiercel.errors import UserError
from tiercel.privacy import private
from tiercel.results.raw import RawRun, read_json, write_json

#: Lock files by their name in an artifact, and where they lie in a checkout.
PYTHON_LOCKS = {
    "requirements.lock": "requirements/evaluate.lock",
    "requirements-bootstrap.lock": "requirements/bootstrap.lock",
}
SPACK = ("spack.yaml", "spack.lock", "stack.json")

#: Of the checkout: what neither measures nor reads results.
_LEFT_OUT = ("tests/", "benchmarks/", ".ci/", ".github/")
#: Where a user's own files are part of what measured, also before they are committed.
_OWN = ("analysis/", "native/", "workflows/", "site-configs/")
#: What is tiercel's where git does not say it: all else that lies in the folder is the user's.
_SOURCES = re.compile(
    r"(?:analysis|changelog\.d|config|docs|native|recipes|requirements|site-configs|tools|workflow|workflows)/.+"
    r"|(?:CHANGELOG|CODE_OF_CONDUCT|CONTRIBUTING|README|SECURITY)\.md|CITATION\.cff|LICENSE|MANIFEST\.in"
    r"|Makefile|Snakefile|\.gitignore|\.snakemake-workflow-catalog\.yml|pyproject\.toml|setup\.py|spack\.yaml"
)
_DOTTED = (".gitignore", ".snakemake-workflow-catalog.yml")
_BUILT = re.compile(
    r"(?:^|/)(?:(?:__pycache__|build|target|[^/]+\.egg-info)/|\.[^/]+(?:/|$)|[^/]+\.pyc$)"
    r"|^site-configs/(?:local|slurm-virtual)/(?:facts|calibration)\.yaml$"
)


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
    own: tuple[str, ...] = ()
    """Of `files` those that are not in the commit: who packs wrote them."""

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
            if path in self.own:  # tiercel's own files name many a user and account, none of whom packs
                suspect = hidden.text(text) != text
            else:
                suspect = any(re.search(rf"{re.escape(word)}(?![\w-])", text) for word in words)
            if suspect:
                found.append(path)
        return found

    def sources_digest(self, part: str) -> str:
        """Return the SHA-256 over names and contents of native/`part`; empty where there is none."""
        files = [path for path in self.files if path.startswith(f"native/{part}/")]
        digest = hashlib.sha256()
        for path in files:
            digest.update(f"{path}\0".encode() + (self.root / path).read_bytes() + b"\0")
        return digest.hexdigest() if files else ""


def find_software(sources: Path | None = None) -> Software:
    """Return the sources of the tiercel that runs: those it runs from, or for an installed package `sources`.

    UserError where they are not there, or are of another tiercel.
    """
    package = Path(tiercel.__file__).resolve().parent
    root = package.parents[1] if sources is None else sources.resolve()
    if not (root / "Snakefile").is_file() or not (root / PYTHON_LOCKS["requirements.lock"]).is_file():
        raise UserError(
            f"{root}: tiercel's sources are not there: an artifact is packed from a checkout of it"
        )
    if sources is not None:
        _refuse_another(root, package)
    citation = read_yaml(root / "CITATION.cff")
    url = str(citation.get("repository-code") or citation.get("url") or "")
    listed = _git(root, "ls-files", "-z")
    if listed is None:
        return Software(root, _wanted(_sources(root)), "", False, url)
    own = _git(root, "ls-files", "-z", "--others", "--exclude-standard") or ""
    paths = [path for path in listed.split("\0") if path]
    added = [path for path in own.split("\0") if path.startswith(_OWN)]
    changed = bool(added or _git(root, "status", "--porcelain", "--untracked-files=no"))
    there = [p for p in paths + added if (root / p).exists() or (root / p).is_symlink()]
    commit = (_git(root, "rev-parse", "HEAD") or "").strip()
    return Software(root, _wanted(there), commit, changed, url, _wanted(added))


def _refuse_another(root: Path, package: Path) -> None:
    """Raise UserError unless the sources in `root` are those of the `package` that runs."""
    built_in = package / "builtin"
    pairs = {name: package / name.removeprefix("analysis/tiercel/") for name in _modules(root)}
    pairs |= {f"analysis/tiercel/{path.relative_to(package)}": path for path in package.rglob("*.py")
              if not path.is_relative_to(built_in)}  # fmt: skip
    if built_in.is_dir():
        of_the_workflow = [built_in / "Snakefile", *(built_in / "workflows").rglob("*.smk")]
        pairs |= {path.relative_to(built_in).as_posix(): path for path in of_the_workflow}
    for name, runs in sorted(pairs.items()):
        if _content(root / name) != _content(runs):
            raise UserError(
                f"{root / name}: is not what runs here ({package}): name the sources of tiercel "
                f"{tiercel.__version__} as it was installed"
            )


def _modules(root: Path) -> list[str]:
    return [path.relative_to(root).as_posix() for path in (root / "analysis" / "tiercel").rglob("*.py")]


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def _sources(root: Path) -> Iterator[str]:
    """Yield the sources in a folder that is no git repository: unpacked from an archive, or without a git."""
    for path in root.rglob("*"):
        name = path.relative_to(root).as_posix()
        known = _SOURCES.fullmatch(name) is not None and (name.endswith(_DOTTED) or not _BUILT.search(name))
        if known and (path.is_file() or path.is_symlink()):
            yield name


def _wanted(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(path for path in paths if not path.startswith(_LEFT_OUT)))


def _git(root: Path, *words: str) -> str | None:
    """Return what git says of the repository whose top `root` is; None where there is none, or no git."""
    # The checkout may be somebody else's, who installed it for all: its code runs here already.
    git = ["git", "-c", f"safe.directory={root}", "-c", "core.fsmonitor=false", "-C", str(root)]
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
    for name, place in PYTHON_LOCKS.items():
        shutil.copyfile(software.root / place, target / name)
    for name in SPACK:
        if (path := results / "stack" / name).is_file():
            (target / "spack").mkdir(exist_ok=True)
            text = path.read_text(encoding="utf-8", errors="surrogateescape")
            text = private().text(text.replace(str(software.root), "$CHECKOUT"))
            write_text(target / "spack" / name, text, errors="surrogateescape")
    write_json(target / "engines.json", _engines(software, runs))
    write_json(target / "environment.json", environment(software.root / PYTHON_LOCKS["requirements.lock"]))


def _engines(software: Software, runs: Sequence[RawRun]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in sorted({raw.run["engine"] for raw in runs}):
        versions = sorted({raw.run["engine_version"] for raw in runs if raw.run["engine"] == name})
        found[name] = {"versions": versions, "sources_sha256": software.sources_digest(name)}
    return found


def environment(lock: Path) -> dict[str, Any]:
    """Return the versions of Python and of the locked packages that are installed here."""
    try:
        names = re.findall(r"^([A-Za-z0-9_.-]+)==", lock.read_text(encoding="utf-8"), re.MULTILINE)
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{lock}: cannot be read: {error}") from None
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
    """Return the environment of an artifact's locks. UserError for what is none."""
    path = folder / "environment.json"
    found: dict[str, Any] = read_json(path)
    if not (
        isinstance(found.get("packages"), dict)
        and all(isinstance(found.get(name), str) for name in ("python", "machine"))
    ):
        raise UserError(f"{path}: does not say which versions it was packed with")
    return found
