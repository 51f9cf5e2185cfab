"""Reads ``workflows/studies/<study>.yaml``."""

from __future__ import annotations

from pathlib import Path

from tiercel.documents import parse, read_yaml
from tiercel.errors import UserError, suggest
from tiercel.project import names, provided
from tiercel.study.model import Study


def known_studies(root: Path) -> list[str]:
    """Return the names of the studies that the project or tiercel itself holds."""
    return sorted(path.stem for path in names(root, "workflows/studies/*.yaml"))


def study_path(name: str, root: Path) -> Path:
    """Return the file of study `name`: a name, or the path of a YAML file anywhere."""
    if name.endswith((".yaml", ".yml")):
        return Path(name)
    known = known_studies(root)
    if name not in known:
        raise UserError(f"no study named {name!r} under workflows/studies/: {suggest(name, known)}")
    return provided(root, f"workflows/studies/{name}.yaml")


def load_study(name: str, root: Path) -> Study:
    """Return study `name`; UserError that names file, key and what is allowed for anything wrong."""
    path = study_path(name, root)
    study = parse(Study, read_yaml(path), str(path))
    if study.study != path.stem:
        raise UserError(f"{path}: study: must be {path.stem!r}, the file's name (given: {study.study!r})")
    return study
