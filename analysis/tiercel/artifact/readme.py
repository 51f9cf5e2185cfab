"""The page that a reader of an artifact sees first, and the three commands that it names."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

import tiercel
from tiercel.artifact import layout
from tiercel.artifact.crate import Measured
from tiercel.artifact.identifiers import doi_address
from tiercel.artifact.metadata import Metadata
from tiercel.artifact.software import Software
from tiercel.atomic_file import write_text
from tiercel.site.simulated import real_name
from tiercel.site.supposition import Supposition
from tiercel.study.model import Study
from tiercel.units import format_size


@dataclass(frozen=True)
class Facts:
    metadata: Metadata
    study: Study
    site: str
    simulated: bool
    measured: Measured
    software: Software
    size: int
    """Bytes, unpacked."""
    slim: bool
    supposed: Supposition | None
    """What a simulated site supposes of other hardware."""


def write_readme(folder: Path, facts: Facts) -> None:
    """Write README.md and its scripts into `folder`."""
    made = Environment(  # Markdown and shell: nothing to escape for HTML
        loader=PackageLoader("tiercel.artifact"), undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, keep_trailing_newline=True, autoescape=False,
    )  # fmt: skip
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    known = {
        "facts": facts, "layout": layout, "version": tiercel.__version__, "python": python,
        "size": format_size(facts.size),
        "began": _day(facts.measured.started), "ended": _day(facts.measured.ended),
        "doi_address": doi_address, "again": _again(facts),
    }  # fmt: skip
    for name in (layout.README, *layout.SCRIPTS):
        text = made.get_template(f"{name}.j2").render(known)
        path = write_text(folder / name, text)
        if name in layout.SCRIPTS:
            path.chmod(0o755)


def _again(facts: Facts) -> str:
    """Return the options that simulate a site as it was, for a shell."""
    if facts.supposed is None:
        return shlex.join(["--simulate", "--site", real_name(facts.site)])
    sets = [word for change in facts.supposed.set for word in ("--set", change)]
    return shlex.join(["--simulate", "--site", facts.supposed.site, *sets])


def _day(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d}"
