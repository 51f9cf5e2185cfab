"""Packs a study's results on a site. What is published is made from the files that are published with it."""

from __future__ import annotations

import csv
import errno
import math
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import tiercel
from tiercel.artifact import layout
from tiercel.artifact.archive import write_archive
from tiercel.artifact.binaries import check_binaries
from tiercel.artifact.checksums import digest_of, write_checksums
from tiercel.artifact.crate import Measured, write_crate
from tiercel.artifact.documents import as_measured, write_site, write_study
from tiercel.artifact.metadata import Given, Metadata, find_metadata
from tiercel.artifact.publication import citation, zenodo
from tiercel.artifact.readme import Facts, write_readme
from tiercel.artifact.remake import remake
from tiercel.artifact.software import Software, find_software, write_locks
from tiercel.artifact.staging import runs_of, stage
from tiercel.atomic_file import write_text
from tiercel.errors import UserError
from tiercel.locked import FileLock
from tiercel.privacy import private
from tiercel.results.cleaning import clean_folder
from tiercel.results.observations import load_runs
from tiercel.results.raw import RawRun, write_json
from tiercel.runs.lock import EvaluationLock
from tiercel.site import load_site
from tiercel.site.measured import measured_folder
from tiercel.site.model import Site
from tiercel.site.supposition import Supposition, read_supposition
from tiercel.study.load import load_study, study_path
from tiercel.study.model import Study
from tiercel.temporary import temporary_folder
from tiercel.units import format_size

_PREFIX = ".tiercel-artifact-"
#: Another packing takes what it needs in less.
_PATIENCE_S = 60.0
#: How many files a line names.
_NAMED = 5
#: Of a number: what is less is no other number.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Packed:
    """An artifact on disk."""

    path: Path
    sha256: str
    size: int
    runs: int
    slim: bool
    notes: tuple[str, ...]
    """What its author should know before it is published."""


def pack(
    site: str,
    study: str,
    root: Path,
    target: Path,
    given: Given,
    citation_file: Path | None,
    slim: bool = False,
    sources: Path | None = None,
) -> Packed:
    """Pack the results of `study` on `site` into the archive `target`.

    `sources`: where tiercel's own lie; only for an installed package, which has none with it.

    Everything is put together in a folder beside it and takes its place in one step: killed at any moment,
    nothing half made stands under its name, and the next one removes what is left. UserError for damaged raw
    files, a target that is there already, a full disk, an evaluation that is going on.
    """
    if target.exists():
        raise UserError(f"{target}: is there already: move it away, or name another (--output)")
    if not target.parent.is_dir():
        raise UserError(f"{target}: there is no folder {target.parent}")
    known, results = load_study(study, root), measured_folder(site, root)
    loaded = load_site(site, root)
    software = find_software(sources)
    metadata = _metadata(given, citation_file, root, software, known, loaded)
    software = replace(software, url=metadata.repository or software.url)
    with (
        _room(target),
        temporary_folder(_PREFIX, target.parent.resolve()) as scratch,
    ):
        folder = scratch / _name(target)
        work = _Work(folder, scratch, results, loaded, known)
        notes = work.put_together(root, study_path(study, root), software, metadata, slim)
        draft = scratch / target.name
        files = {p.relative_to(scratch).as_posix(): p for p in sorted(folder.rglob("*")) if p.is_file()}
        write_archive(files, draft)
        with draft.open("rb") as file:
            os.fsync(file.fileno())
        digest, size = digest_of(draft), draft.stat().st_size
        try:
            os.link(draft, target)  # unlike a rename, it replaces nothing that came meanwhile
        except FileExistsError:
            raise UserError(f"{target}: is there already: another one was quicker") from None
        except OSError:  # a file system without links
            draft.replace(target)
    return Packed(target, digest, size, len(work.runs), slim, tuple(notes))


def default_name(site: str, study: str) -> str:
    """Return the name of an artifact's archive."""
    return f"{site}-{Path(study).stem}-artifact.tar.gz"


def _name(target: Path) -> str:
    name = target.name
    for ending in (".tar.gz", ".tgz"):
        if name.endswith(ending) and name != ending:
            return name.removesuffix(ending)
    raise UserError(f"{target}: an artifact's name ends in .tar.gz")


def _nobody_measures(results: Path) -> AbstractContextManager[object]:
    """Wait until nobody evaluates there, or packs at this moment; UserError where that takes long."""
    if not os.access(results, os.W_OK):  # somebody else's: no lock can be made
        return nullcontext()
    return FileLock(results / EvaluationLock.name, EvaluationLock.held, patience=_PATIENCE_S)


@contextmanager
def _room(target: Path) -> Iterator[None]:
    """Say of a full disk which one it is."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            free = format_size(shutil.disk_usage(target.parent).free)
            raise UserError(f"{target.parent}: {error.strerror} ({free} free): nothing was packed") from None
        raise


def _metadata(
    given: Given, citation_file: Path | None, root: Path, software: Software, study: Study, site: Site
) -> Metadata:
    own = software.root / layout.CITATION
    path = citation_file or root / layout.CITATION
    kind, how = "a storage evaluation", "measured"
    if site.simulated:
        kind, how = "a simulated storage evaluation", "simulated by its topology (nothing was measured)"
    title = f"{study.title or study.study}: {kind} ({site.site})"
    description = (
        f"Raw results, tables, figures and report of study {study.study} on site {site.site}, {how} with "
        f"tiercel {tiercel.__version__}, with the software and the commands that make them again."
    )
    return find_metadata(given, path if citation_file or path.is_file() else None, own, title, description)


class _Work:
    """An artifact's folder while it is put together."""

    def __init__(self, folder: Path, scratch: Path, results: Path, site: Site, study: Study) -> None:
        self.folder, self.scratch, self.results, self.site, self.study = folder, scratch, results, site, study
        self.runs: list[RawRun] = []

    def put_together(
        self, root: Path, study_file: Path, software: Software, metadata: Metadata, slim: bool
    ) -> list[str]:
        """Make everything in the folder and return what its author should know."""
        self.folder.mkdir()
        # The report says where it lies: results/<site>, whatever the artifact is called.
        staged = self.scratch / "staged" / self.site.site
        with _nobody_measures(self.results):
            stage(self.results, runs_of(self.results, self.study.study), staged)
        clean_folder(staged, private())
        named = check_binaries(staged)
        self.runs = runs_of(staged, self.study.study)
        site_file = self.folder / layout.SITE
        write_site(as_measured(self.site, self.runs), site_file)
        written = self.folder / layout.STUDY / "as-written" / f"{self.study.study}.yaml"
        written.parent.mkdir(parents=True)
        write_text(written, private().text(study_file.read_text(encoding="utf-8")))
        copy = self.folder / layout.STUDY / written.name
        write_study(self.study, copy)
        notes = remake(staged, site_file, copy, self.scratch / "caches")
        self._refuse_damaged(staged)
        notes += self._stale(staged)
        if slim:
            for run in self.runs:
                shutil.rmtree(staged / "raw" / run.folder.name / layout.TRACE, ignore_errors=True)
        staged.rename(self.folder / layout.RESULTS)
        self._add_software(software)
        self._describe(software, metadata, slim, read_supposition(self.site.site, root))
        if metadata.borrowed:
            notes.append("it is said to be by the authors of tiercel: --author says who measured")
        if software.modified:
            notes.append("the sources differ from their commit: what is packed is what lies here")
        if software.own:
            notes.append(f"packed with the sources, and yours: {_some(software.own)}")
        if not software.commit:
            notes.append(
                f"the commit of the sources is not known: git knows no repository at {software.root}"
            )
        if named:
            notes.append(
                f"your or your account's name is in binary files, or in names of files: {_some(named)}"
            )
        notes += [f"software: {path} names you, your account or a secret" for path in software.suspects()]
        return notes

    def _refuse_damaged(self, staged: Path) -> None:
        """UserError where a run whose record says that it went well cannot be read."""
        table = load_runs(staged)
        lost = table[table["status"] != "ok"].set_index("run")["reason"]
        for raw in self.runs:
            if raw.ok and (name := raw.folder.name) in lost.index:
                raise UserError(
                    f"{self.results / 'raw' / name}: damaged: its record reports success, but: "
                    f"{lost[name]}; move the folder away, or measure it again"
                )

    def _stale(self, staged: Path) -> list[str]:
        """Say which tables of the report in the results are not what the raw files give now."""
        mine, theirs = staged / "report" / "tables", self.results / "report" / "tables"
        if not theirs.is_dir():
            return []
        names = sorted({p.name for p in mine.iterdir()} | {p.name for p in theirs.iterdir()})
        other = [n for n in names if not same_table(mine / n, theirs / n)]
        if not other:
            return []
        return [
            f"{', '.join(other)} in {theirs}: not what the raw files give now (another study's, or another "
            "version's): the artifact holds what they give"
        ]

    def _add_software(self, software: Software) -> None:
        (self.folder / layout.SOFTWARE).mkdir()
        software.pack(self.folder / layout.SOFTWARE / f"{software.name}.tar.gz")
        write_locks(software, self.results, self.runs, self.folder / layout.LOCKS)
        workflow = self.folder / layout.WORKFLOW
        (workflow / "workflows").mkdir(parents=True)
        shutil.copyfile(software.root / "Snakefile", workflow / "Snakefile")
        for path in sorted((software.root / "workflows").glob("*.smk")):
            shutil.copyfile(path, workflow / "workflows" / path.name)

    def _describe(
        self, software: Software, metadata: Metadata, slim: bool, supposed: Supposition | None
    ) -> None:
        measured = measured_of(self.runs)
        about: dict[str, Any] = {
            "format": layout.FORMAT, "tiercel": tiercel.__version__, "commit": software.commit,
            "modified": software.modified, "site": self.site.site, "study": self.study.study, "slim": slim,
            "origin": "simulated" if self.site.simulated else "measured",
            "runs": measured.runs, "failed": measured.failed, "title": metadata.title,
        }  # fmt: skip
        write_json(self.folder / layout.DESCRIPTION, about)
        write_text(self.folder / layout.CITATION, citation(metadata))
        write_json(self.folder / layout.ZENODO, zenodo(metadata))
        shutil.copyfile(software.root / "LICENSE", self.folder / layout.LICENCE)
        size = sum(p.stat().st_size for p in self.folder.rglob("*") if p.is_file())
        facts = Facts(
            metadata,
            self.study,
            self.site.site,
            self.site.simulated,
            measured,
            software,
            size,
            slim,
            supposed,
        )
        write_readme(self.folder, facts)
        write_crate(self.folder, metadata, self.study, software, measured)
        write_checksums(self.folder)


def _some(paths: Sequence[str]) -> str:
    more = len(paths) - _NAMED
    return ", ".join(paths[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def measured_of(runs: Sequence[RawRun]) -> Measured:
    """Return when and with what the runs were made."""
    engines = {
        name: sorted(
            {r.run["engine_version"] for r in runs if r.run["engine"] == name and r.run["engine_version"]}
        )
        for name in {r.run["engine"] for r in runs}
    }
    said: dict[str, set[str]] = {}
    for run in runs:
        for key, name in (
            ("cores", "Cores"),
            ("memory_bytes", "Memory"),
            ("kernel", "Kernel"),
            ("host", "Host"),
        ):
            if (value := run.context.get(key)) is not None:
                shown = format_size(value) if key == "memory_bytes" else str(value)
                said.setdefault(name, set()).add(shown)
    return Measured(
        started=min(r.record["started"] for r in runs),
        ended=max(r.record["started"] + r.record["duration"] for r in runs),
        runs=len(runs),
        failed=sum(not r.ok for r in runs),
        engines=engines,
        conditions={name: ", ".join(sorted(values)) for name, values in said.items()},
    )


def same_table(one: Path, other: Path) -> bool:
    """Return whether two tables say the same: numbers may differ in what rounding makes of a last digit.

    A report is made with all that a processor can, an artifact with what all processors of a kind can.
    """
    if not (one.is_file() and other.is_file()):
        return False
    if one.read_bytes() == other.read_bytes():
        return True
    rows = [list(csv.reader(path.read_text(encoding="utf-8").splitlines())) for path in (one, other)]
    return [len(row) for row in rows[0]] == [len(row) for row in rows[1]] and all(
        _same_cell(a, b)
        for mine, theirs in zip(*rows, strict=True)
        for a, b in zip(mine, theirs, strict=True)
    )


def _same_cell(one: str, other: str) -> bool:
    try:
        return one == other or math.isclose(float(one), float(other), rel_tol=_ROUNDING)
    except ValueError:
        return False
