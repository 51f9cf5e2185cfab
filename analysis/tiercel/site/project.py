"""Lays out a project of one's own: a folder whose sites and studies win over those that come with tiercel."""

from __future__ import annotations

import shutil
from pathlib import Path

from tiercel.errors import UserError, suggest
from tiercel.project import built_in
from tiercel.site.load import known_sites

_SNAKEFILE = """\
# The workflow of tiercel, from where it is installed: `snakemake --profile {site}`. Your own rules go below.
from tiercel.project import built_in


include: str(built_in() / "Snakefile")


rule evaluation:
    default_target: True
    localrule: True
    message:
        "everything that tiercel makes of a study"
    input:
        rules.all.input,
"""

_README = """\
# A storage evaluation with tiercel

    tiercel evaluate --site {site} --study {study}   # measures, and writes results/{site}/report/index.html
    tiercel site new NAME                     # describes another machine, from what is found on it

- site-configs/: the machines; `{site}` is a Snakemake profile, found by the link beside this file
- workflows/studies/: what is measured; workflows/dl-workloads/: deep-learning trainings, in DLIO's schema
- Snakefile: the workflow, and rules of your own
- results/: what was measured

A site or study here wins over the one of the same name that comes with tiercel; all others are there as well
(`tiercel site list`).
"""

#: Measured elsewhere; the stack is built from a checkout.
_NOT_COPIED = ("facts.yaml", "spack")
_IGNORED = "/results/\n/.snakemake/\n/site-configs/local/facts.yaml\n"


def new_project(folder: Path, sites: list[str], studies: list[str]) -> list[Path]:
    """Write a project into `folder` (made where it is not there) and return its files.

    `sites` and `studies` are copied from those that come with tiercel. UserError where one is not known, or
    where anything of a project is there already: nothing is ever overwritten.
    """
    ours = built_in()
    for word, given, there in (
        ("site", sites, known_sites(ours)),
        ("study", studies, sorted(path.stem for path in ours.glob("workflows/studies/*.yaml"))),
    ):
        for name in given:
            if name not in there:
                raise UserError(f"tiercel comes with no {word} {name!r}: {suggest(name, there)}")
    for name in ("Snakefile", "site-configs", "workflows", "README.md", ".gitignore", *sites):
        if (folder / name).exists() or (folder / name).is_symlink():
            raise UserError(f"{folder / name}: is there already: a new project needs a folder without one")
    words = {"site": sites[0], "study": studies[0]}
    for site in sites:
        shutil.copytree(
            ours / "site-configs" / site,
            folder / "site-configs" / site,
            ignore=shutil.ignore_patterns(*_NOT_COPIED),
        )
        (folder / site).symlink_to(Path("site-configs") / site)
    (folder / "workflows" / "studies").mkdir(parents=True)
    for study in studies:
        shutil.copy(ours / "workflows" / "studies" / f"{study}.yaml", folder / "workflows" / "studies")
    (folder / "Snakefile").write_text(_SNAKEFILE.format(**words))
    (folder / "README.md").write_text(_README.format(**words))
    (folder / ".gitignore").write_text(_IGNORED)
    return sorted(path for path in folder.rglob("*") if path.is_file() and not path.parent.is_symlink())
