"""Writes the files of a site's folder that follow from its scheduler: the profile, and scripts that submit.

They are a beginning: from then on they belong to the site, and whoever knows it better changes them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from tiercel.errors import UserError

_TEMPLATES = Path(__file__).resolve().parent / "templates"

#: What the profile hands to `submit`, and its defaults.
_WORDS = ("{resources.nodes} {resources.runtime} {resources.queue}", ["queue=default"])
#: Which templates a scheduler's scripts are made from, and their words.
_SCRIPTS = {
    "lsf": ("lsf", *_WORDS),
    "flux": ("flux", f"{_WORDS[0]} {{resources.allocate}}", [*_WORDS[1], "allocate=none"]),
    "cobalt": ("cobalt", *_WORDS),
    # Where Snakemake's Slurm executor does not do: it hides SLURM_* from the job, which ibrun reads.
    "sbatch": (
        "sbatch",
        "{resources.nodes} {resources.tasks_per_node} {resources.runtime} {resources.slurm_partition}",
        ["tasks_per_node=1", "slurm_partition=default"],
    ),
}


def site_files(
    site: str,
    scheduler: str,
    account: str = "",
    account_option: str = "",
    options: Sequence[str] = (),
    scripts: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, str]:
    """Return name and content of the profile (``config.yaml``) and of the scripts that `scheduler` needs.

    `scheduler`: slurm, sbatch (Slurm without Snakemake's own executor), lsf, flux, cobalt, or empty; or
    another with its `scripts`: submit, status and cancel.
    """
    values: dict[str, Any] = {
        "site": site, "account": account, "account_option": account_option, "options": list(options),
    }  # fmt: skip
    if scheduler in ("", "slurm"):
        return {"config.yaml": render("profile-slurm" if scheduler else "profile-local", values)}
    if scripts:
        profile = render("profile-scripts", {**values, "words": _WORDS[0], "defaults": _WORDS[1]})
        return {"config.yaml": profile, **scripts}
    if scheduler not in _SCRIPTS:
        raise UserError(f"no scheduler named {scheduler!r} (allowed: slurm, {', '.join(_SCRIPTS)})")
    kind, words, defaults = _SCRIPTS[scheduler]
    files = {"config.yaml": render("profile-scripts", {**values, "words": words, "defaults": defaults})}
    for script in ("submit", "status", "cancel"):
        files[script] = render(f"{script}-{kind}", values)
    return files


def write_folder(folder: Path, files: dict[str, str]) -> None:
    """Write `files` into `folder`; scripts are made executable. Existing ones are left alone (UserError)."""
    taken = [name for name in files if (folder / name).exists()]
    if taken:
        raise UserError(f"{folder}: has {', '.join(taken)} already: remove it, or name another site")
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        path = folder / name
        path.write_text(content)
        if content.startswith("#!"):
            path.chmod(0o755)


def render(template: str, values: dict[str, Any]) -> str:
    """Return a template of this folder, filled in."""
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        keep_trailing_newline=True, autoescape=False,
    )  # fmt: skip
    return environment.get_template(f"{template}.j2").render(values)
