"""The Snakemake profile of a site: that it is the site's own.

``snakemake --profile NAME`` takes the name of a folder, and which site is measured stands in the file that
the profile names as its ``configfile``. A profile that was copied from another site would measure that one.
"""

from __future__ import annotations

import argparse
import glob
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tiercel.documents import read_yaml
from tiercel.errors import UserError
from tiercel.project import provided
from tiercel.site.load import known_sites


def profile_of(site: str, root: Path) -> str:
    """Return what ``snakemake --profile`` is told: the site's name, or the folder of a site of tiercel's."""
    own = provided(root, f"site-configs/{site}")
    return site if own.parent.parent == root else str(own)


def check_profile(site: str, root: Path) -> None:
    """Raise UserError unless `root` has a profile that measures `site`, with scripts that are there."""
    path = root / profile_of(site, root) / "config.yaml"
    if not path.is_file():
        own_folder = f"site-configs/{site}"
        if not provided(root, f"{own_folder}/config.yaml").is_file():  # a link to the folder brings none
            pattern = provided(root, "site-configs/local/config.yaml")
            raise UserError(
                f"{own_folder}/config.yaml: is not there: a Snakemake profile, as `tiercel site new` writes "
                f"it next to site.yaml; without a scheduler: "
                f"`cp {pattern} {own_folder}/ && ln -sfn {own_folder} {site}`"
            )
        raise UserError(
            f"no Snakemake profile {site}/config.yaml in {root}: "
            f"link it with `ln -s site-configs/{site} {site}`"
        )
    # Taken for a pattern, which matches nothing: not a word is said.
    if glob.has_magic(profile_of(site, root)):
        raise UserError(
            f"{path.parent}: Snakemake finds no profile in a folder whose name holds *, ? or [: install "
            f"tiercel elsewhere, or make a project (`tiercel init --site {site}`)"
        )
    profile, own = read_yaml(path), provided(root, f"site-configs/{site}")
    if (own / "site.yaml").resolve() not in {file.resolve() for file in _files(profile, path.parent, root)}:
        named = profile.get("configfile", "nothing")
        raise UserError(f"{path}: configfile: must be site.yaml, the site's own (it names {named})")
    _check_executor(path, profile.get("executor"), read_yaml(own / "site.yaml").get("scheduler"))
    prefix = profile.get("slurm-jobname-prefix", f"tiercel-{site}")
    if prefix != f"tiercel-{site}":
        raise UserError(f"{path}: slurm-jobname-prefix: must be tiercel-{site} (it is {prefix})")
    if _allocating(own) and "{resources.allocate}" not in str(profile.get("cluster-generic-submit-cmd", "")):
        raise UserError(
            f"{path}: cluster-generic-submit-cmd: does not hand on {{resources.allocate}}, which site.yaml "
            "needs: take config.yaml and submit of a new site (`tiercel site new NAME --scheduler flux`)"
        )
    for key in ("submit", "status", "cancel"):
        command = str(profile.get(f"cluster-generic-{key}-cmd", "")).split()
        if not command:
            continue
        if own.parent.parent != root:  # the profile calls its scripts from the project's folder
            raise UserError(f"site {site}: its scripts must lie in a project: `tiercel init --site {site}`")
        script = _file(command[0], path.parent, root)
        if script.parent.resolve() != own.resolve():
            raise UserError(
                f"{path}: cluster-generic-{key}-cmd: must be the site's own, site-configs/{site}/{key}"
            )
        if not os.access(script, os.X_OK):
            raise UserError(f"{path}: {command[0]}: is not there, or not executable")


def _allocating(folder: Path) -> bool:
    """Return whether a storage of the site in `folder` is made for each job."""
    storages = read_yaml(folder / "site.yaml").get("storages")
    return isinstance(storages, Mapping) and any(
        isinstance(storage, Mapping) and storage.get("allocate") for storage in storages.values()
    )


def _check_executor(profile: Path, executor: object, scheduler: object) -> None:
    """Raise UserError where a profile would not send runs to the scheduler that its site.yaml names."""
    name = scheduler.get("name") if isinstance(scheduler, Mapping) else None
    here = executor in (None, "local")
    if name and here:
        raise UserError(
            f"{profile}: executor: is missing: runs would start on this machine instead of in {name} jobs: "
            f"write `executor: {'slurm' if name == 'slurm' else 'cluster-generic'}`"
        )
    if not name and not here:
        raise UserError(
            f"{profile}: executor: {executor}: site.yaml names no scheduler: write `scheduler: name: ...` "
            "there, or remove the executor here"
        )
    if name != "slurm" and executor == "slurm":
        raise UserError(f"{profile}: executor: slurm: site.yaml names scheduler {name}")


def check_executor(site: str, scheduled: bool, executor: str) -> None:
    """Raise UserError where this Snakemake's `executor` takes jobs elsewhere than the site's runs belong.

    A profile of the user's own, which may stand in the environment, names no site but an executor.
    """
    if scheduled == (executor != "local"):
        return
    name = os.environ.get("SNAKEMAKE_PROFILE", "")
    own = f"snakemake --profile {site}"
    if scheduled:
        raise UserError(f"site {site}: has a scheduler, and Snakemake would run its jobs here: `{own}`")
    raise UserError(
        f"site {site}: is measured on this machine, and Snakemake would submit its jobs (executor {executor}"
        f"{f', SNAKEMAKE_PROFILE is {name}' if name else ''}): `{own}`"
    )


def check_named_profile(site: str, arguments: Sequence[str], root: Path) -> None:
    """Raise UserError where Snakemake's `arguments` name the profile of another site than `site`.

    `site` is what the profile's configfile says, so what would be measured.
    """
    sites = known_sites(root)
    for named in _named(arguments, os.environ):
        for path in (Path(named), (root / named).resolve()):  # as it is called, and where it lies
            other = path.parent.name if path.suffix == ".yaml" else path.name
            if other in sites and other != site:
                raise UserError(
                    f"profile {named}: would measure site {site}: its configfile: must be site.yaml, the "
                    "site's own, and nothing on the command line may name another"
                )


def _named(arguments: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    parser = argparse.ArgumentParser(add_help=False, exit_on_error=False)
    parser.add_argument("--profile", action="append")
    parser.add_argument("--workflow-profile", action="append", default=[])
    known, _ = parser.parse_known_args(list(arguments))
    own = known.profile or [name for name in (environment.get("SNAKEMAKE_PROFILE", ""),) if name]
    return own + [str(name) for name in known.workflow_profile]


def _files(profile: Mapping[str, Any], folder: Path, root: Path) -> list[Path]:
    """Return the files that Snakemake reads as this profile's configuration."""
    named = profile.get("configfile", [])
    if isinstance(named, list):  # as it is: only a single name is looked for in the profile's folder
        return [root / str(name) for name in named]
    return [_file(str(named), folder, root)]


def _file(named: str, folder: Path, root: Path) -> Path:
    """Return what a name in a profile means: a file of the profile's folder, else one of the project's."""
    return folder / named if (folder / named).exists() else root / named
