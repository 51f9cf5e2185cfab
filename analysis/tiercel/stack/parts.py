"""Which parts of the stack a site builds: ``site-configs/<site>/spack/parts.yaml``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pydantic import Field, field_validator

from tiercel.documents import Document, parse, read_yaml
from tiercel.errors import UserError, suggest

#: The definitions of spack.yaml, each switched by its word in TIERCEL_PARTS.
PARTS = ("engines", "analysis", "layers", "tracing", "dl")


class SiteParts(Document):
    """What a site's file may say."""

    parts: list[str] = Field(default=["engines", "analysis", "layers"], min_length=1)
    build_before_measuring: bool = False

    @field_validator("parts")
    @classmethod
    def _known(cls, parts: list[str]) -> list[str]:
        return check_parts(parts)


def check_parts(parts: Sequence[str]) -> list[str]:
    """Return `parts` in the order of PARTS, each once; ValueError for an unknown one."""
    unknown = [part for part in parts if part not in PARTS]
    if unknown:
        raise ValueError(f"no part named {unknown[0]!r}: {suggest(unknown[0], PARTS)}")
    return [part for part in PARTS if part in parts]


def scope_folder(root: Path, site: str) -> Path:
    """Return the site's Spack scope; UserError where the site has none."""
    folder = root / "site-configs" / site / "spack"
    if not (root / "spack.yaml").is_file() and not folder.is_dir():
        raise UserError(f"{root}: no spack.yaml: the stack is built from a checkout of tiercel")
    if not folder.is_dir():
        having = sorted(p.parent.parent.name for p in root.glob("site-configs/*/spack/packages.yaml"))
        raise UserError(f"site {site}: no folder {folder}: {suggest(site, having)}")
    return folder


def site_parts(root: Path, site: str) -> SiteParts:
    """Return what the site builds (the defaults where it does not say)."""
    path = scope_folder(root, site) / "parts.yaml"
    return parse(SiteParts, read_yaml(path), str(path)) if path.exists() else SiteParts()


def chosen_parts(root: Path, site: str, words: str | None) -> list[str]:
    """Return the parts named in `words` (separated by spaces or commas), else the site's."""
    if not words:
        return site_parts(root, site).parts
    try:
        return check_parts(words.replace(",", " ").split())
    except ValueError as error:
        raise UserError(f"--parts: {error}") from None
