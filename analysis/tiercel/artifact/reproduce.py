"""Makes an artifact's tables and figures again and compares them with the published ones."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from tiercel.artifact import layout
from tiercel.artifact.archive import unpack
from tiercel.artifact.checksums import Damage, damage
from tiercel.artifact.description import describe
from tiercel.artifact.remake import remake
from tiercel.artifact.software import environment, load_environment, other_versions
from tiercel.artifact.staging import runs_of, stage
from tiercel.errors import UserError
from tiercel.temporary import temporary_folder

_PREFIX = ".tiercel-again-"


@dataclass(frozen=True)
class Answer:
    """What came of it. `same` and `different` are the files that were made, as paths in the results."""

    damage: Damage
    same: tuple[str, ...] = ()
    different: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    """Published, and not made again."""
    added: tuple[str, ...] = ()
    """Made, and not published."""
    other_versions: tuple[str, ...] = ()
    """Of software, than where it was packed: what may explain a difference."""
    notes: tuple[str, ...] = ()

    @property
    def reproduced(self) -> bool:
        return not (self.damage or self.different or self.missing or self.added) and bool(self.same)


def reproduce(where: Path, scratch: Path, output: Path | None = None) -> Answer:
    """Make everything again from the raw files of an artifact, a folder or an archive, and compare it.

    The work is done in a folder below `scratch` that is gone afterwards; `output`, where given, gets what was
    made. Damaged files end it before anything is made. UserError for what is no artifact, of another format,
    or cannot be made.
    """
    if output is not None and (output.exists() or not output.absolute().parent.is_dir()):
        raise UserError(f"{output}: must be a new folder in one that is there")
    with ExitStack() as stack:
        work = stack.enter_context(temporary_folder(_PREFIX, scratch))
        folder = where
        if not where.is_dir():
            (work / "unpacked").mkdir()
            folder = unpack(where, work / "unpacked")
        about = describe(folder)
        if found := damage(folder, layout.PACKED):
            return Answer(found)
        made = work / about["site"]
        published = folder / layout.RESULTS
        stage(published, runs_of(published, about["study"]), made)
        if about["slim"]:
            for name in layout.TRACE_TABLES:
                if (published / name).is_file():
                    shutil.copyfile(published / name, made / name)
        study = folder / layout.STUDY / f"{about['study']}.yaml"
        notes = remake(made, (folder / layout.SITE).resolve(), study.resolve(), work / "caches")
        answer = _compare(published, made, notes, folder)
        if output is not None:
            for name in layout.SOURCES:
                shutil.rmtree(made / name, ignore_errors=True)
            shutil.move(made, output)
        return answer


def _compare(published: Path, made: Path, notes: list[str], folder: Path) -> Answer:
    theirs, ours = set(_made_files(published)), set(_made_files(made))
    both = sorted(theirs & ours)
    different = tuple(p for p in both if (published / p).read_bytes() != (made / p).read_bytes())
    locks = folder / layout.LOCKS
    lock = locks / "requirements.lock"
    return Answer(
        damage=Damage((), (), ()),
        same=tuple(p for p in both if p not in different),
        different=different,
        missing=tuple(sorted(theirs - ours)),
        added=tuple(sorted(ours - theirs)),
        other_versions=tuple(other_versions(load_environment(locks), environment(lock))),
        notes=tuple(notes),
    )


def _made_files(results: Path) -> Iterator[str]:
    for path in results.rglob("*"):
        name = path.relative_to(results)
        if path.is_file() and name.parts[0] not in layout.SOURCES:
            yield name.as_posix()
