"""What a machine's storages were found to carry: stages of their topologies, beside site.yaml.

``calibration.yaml`` is written by ``tiercel site calibrate``. A stage of it stands where site.yaml has none
of its kind with a figure: what somebody wrote down wins.
"""

from __future__ import annotations

from pathlib import Path

import yaml

from tiercel.atomic_file import write_text
from tiercel.documents import Document, parse, read_yaml
from tiercel.errors import UserError
from tiercel.project import provided
from tiercel.site.model import Site, Storage
from tiercel.site.topology import Stage, placed

CALIBRATION_FILE = "calibration.yaml"
_HEAD = """\
# What `tiercel site calibrate {site}` measured. Written anew by each; site.yaml wins where it says more.
"""


class Calibration(Document):
    """The content of a calibration.yaml."""

    site: str
    date: str
    tiercel: str = ""
    storages: dict[str, list[Stage]] = {}


def read_calibration(site: str, root: Path) -> Calibration | None:
    """Return what was measured, or None where nothing was; UserError for a file that is no such thing."""
    path = provided(root, f"site-configs/{site}/{CALIBRATION_FILE}")
    return parse(Calibration, read_yaml(path), str(path)) if path.exists() else None


def write_calibration(found: Calibration, root: Path) -> Path:
    """Write calibration.yaml whole or not at all; UserError where it cannot be."""
    path = root / "site-configs" / found.site / CALIBRATION_FILE
    # As it is read: a rate is a text with its unit.
    content = found.model_dump(exclude_defaults=True)
    for stages in content["storages"].values():
        for stage in stages:
            for key in [key for key in stage if key.endswith("bandwidth")]:
                stage[key] = f"{stage[key]:.0f}B/s"
    text = _HEAD.format(site=found.site) + yaml.safe_dump(content, sort_keys=False, width=110)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, text)
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror}") from None
    return path


def with_calibration(site: Site, root: Path) -> Site:
    """Return the site with the stages that were measured; UserError for a damaged calibration.yaml."""
    found = read_calibration(site.site, root)
    if found is None:
        return site
    storages = {
        name: _completed(storage, found.storages.get(name, [])) for name, storage in site.storages.items()
    }
    return site.model_copy(update={"storages": storages})


def _completed(storage: Storage, measured: list[Stage]) -> Storage:
    told = {stage.stage for stage in storage.topology if stage.figures or stage.absent}
    new = [stage for stage in measured if stage.stage not in told]
    instead = {stage.stage for stage in new}
    kept = [stage for stage in storage.topology if stage.stage not in instead]
    return storage.model_copy(update={"topology": placed(kept, new)})
