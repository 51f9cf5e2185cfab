"""Makes the folder of a new site from what a survey of the machine found."""

from __future__ import annotations

import getpass
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType

from tiercel.errors import UserError
from tiercel.site.folder import render, site_files, write_folder
from tiercel.site.model import Storage, check_name
from tiercel.site.simulated import SUFFIX, is_simulated
from tiercel.site.survey import Survey

#: Without an answer of the scheduler.
_WALLTIME_MINUTES = 60


def new_site(name: str, root: Path, found: Survey, scripts: Mapping[str, str] = MappingProxyType({})) -> Path:
    """Write ``site-configs/<name>`` and the link in the root that Snakemake needs; return the folder.

    `scripts`: those that a scheduler brings itself (`schedulers.base.Scheduler.scripts`).
    """
    try:
        check_name(name)
    except ValueError as error:
        raise UserError(f"site {error}") from None
    if is_simulated(name):
        raise UserError(f"site {name}: names with {SUFFIX} are of simulated sites: name it otherwise")
    folder, link = root / "site-configs" / name, root / name
    if folder.exists() or link.is_symlink() or link.exists():
        raise UserError(
            f"{folder if folder.exists() else link}: is there already: remove it, or name another site"
        )
    if not folder.parent.exists() and os.access(root, os.W_OK):
        folder.parent.mkdir()
    for place in (folder.parent, root):
        if not os.access(place, os.W_OK):
            raise UserError(
                f"{place}: cannot be written to: a new site needs a project of your own (`tiercel init`)"
            )
    scheduler = "slurm" if found.scheduler == "sbatch" else found.scheduler
    nodes = f"{found.nodes} node{'s' * (found.nodes > 1)}"
    storages = _short_names(found.storages)
    if scheduler and not storages:
        # Something to begin with, so that the file can be loaded and planned: the question says what to do.
        storages["shared"] = Storage(
            type="nfs", mount="$TIERCEL_SHARED", scratch="$TIERCEL_SHARED/tiercel", medium="network"
        )
    text = render(
        "site",
        {
            "site": name, "scheduler": scheduler, "found": found,
            "description": f"{nodes} of {found.cores} cores ({found.processor})".replace(":", ""),
            "walltime": min(found.walltime_minutes or _WALLTIME_MINUTES, 24 * 60),
            "storages": {key: _without_user(storage) for key, storage in storages.items()},
        },
    )  # fmt: skip
    write_folder(folder, {"site.yaml": text, **site_files(name, found.scheduler, scripts=scripts)})
    link.symlink_to(Path("site-configs") / name)
    return folder


def _short_names(storages: Mapping[str, Storage]) -> dict[str, Storage]:
    """Return the storages by names for people: the type, and the last folder of the mount point.

    The folder is left out where one storage is of this type. Two alike keep the names of discovery.
    """
    named: dict[str, Storage] = {}
    for name, storage in storages.items():
        kind = name.partition("-")[0]
        folder = re.sub(r"[^a-z0-9]+", "-", Path(storage.mount).name.lower()).strip("-") or "root"
        alike = sum(each.partition("-")[0] == kind for each in storages)
        short = kind if alike == 1 else f"{kind}-{folder}"
        named[name if short in named else short] = storage
    return named


def _without_user(storage: Storage) -> Storage:
    """Return `storage` with $USER for this user's name: the file is for everybody."""
    user = os.environ.get("USER", "")
    with suppress(KeyError, OSError):  # a user id without a name
        user = user or getpass.getuser()
    scratch = (
        re.sub(rf"(?<=/){re.escape(user)}(?=/|$)", "$USER", storage.scratch) if user else storage.scratch
    )
    folder = "tiercel" if "$USER" in scratch else "tiercel-$USER"  # one for each user
    return storage.model_copy(update={"scratch": scratch.replace(f"tiercel-{os.getuid()}", folder)})
