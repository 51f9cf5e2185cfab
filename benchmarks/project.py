"""A project of its own for a trial: one site, one study, and the workflow of this checkout."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tiercel.site.mounts import Mount

_CHECKOUT = Path(__file__).resolve().parent.parent


def make_scratch(root: Path) -> tuple[Path, Mount]:
    """Make a folder for a storage to measure; return it and the mount that it lies on."""
    from tiercel.site.mounts import mount_of, read_mounts  # noqa: PLC0415 -- its memory, see growth.studies

    scratch = root / "scratch"
    scratch.mkdir(parents=True)
    mount = mount_of(scratch, read_mounts())
    assert mount is not None
    return scratch, mount


def make_project(root: Path, site: str, study: str) -> Path:
    """Make a project with site `local` and study `trial`; return its folder."""
    for folder in ("workflows/studies", "site-configs/local"):
        (root / folder).mkdir(parents=True)
    (root / "workflows/studies/trial.yaml").write_text(study)
    (root / "site-configs/local/site.yaml").write_text(site)
    for target in ("Snakefile", *(f"workflows/{p.name}" for p in (_CHECKOUT / "workflows").glob("*.smk"))):
        (root / target).symlink_to(_CHECKOUT / target)
    (root / "site-configs/local/config.yaml").symlink_to(_CHECKOUT / "site-configs/local/config.yaml")
    (root / "local").symlink_to("site-configs/local")
    return root
