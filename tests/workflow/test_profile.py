"""What is measured is the site that the command names: a profile copied from another site is refused."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tiercel.errors import UserError
from tiercel.site.profile import check_executor, check_profile

from ..conftest import CHECKOUT, ONE, Project, needs_iokernel
from .at_once import Call, at_once

pytestmark = needs_iokernel

SNAKEMAKE = [sys.executable, "-m", "snakemake"]


def snakemake(project: Project, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*SNAKEMAKE, *words], cwd=project.root, capture_output=True, text=True, timeout=300, check=False,
        env={**os.environ, **environment},
    )  # fmt: skip


@pytest.fixture
def copied(project: Project) -> Project:
    """A project with a second site, `blind`, whose folder is a copy of `local`'s with its name changed."""
    sites = project.root / "site-configs"
    shutil.copytree(sites / "local", sites / "blind")  # follows links: the profile is a file of its own
    site = sites / "blind" / "site.yaml"
    site.write_text(site.read_text().replace("site: local", "site: blind"))
    (project.root / "blind").symlink_to("site-configs/blind")
    return project


def profile(project: Project, old: str, new: str) -> None:
    path = project.root / "site-configs" / "blind" / "config.yaml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def refused(answer: subprocess.CompletedProcess[str], *words: str) -> None:
    lines = [line for line in answer.stderr.splitlines() if line.startswith("tiercel: ")]
    assert answer.returncode == 2, answer.stderr
    assert len(lines) == 1
    assert all(word in lines[0] for word in words), lines


def test_a_copied_profile_is_the_copys_own(copied: Project) -> None:
    copied.study("tiny", ONE)
    answer = copied.tiercel("evaluate", "--site", "blind", "--study", "tiny")
    assert answer.returncode == 0, answer.stderr
    assert (copied.root / "results" / "blind" / "report" / "index.html").exists()
    assert not copied.results.exists()  # those of site local


def test_a_folder_without_a_profile_is_told_what_lacks(copied: Project) -> None:
    (copied.root / "site-configs" / "blind" / "config.yaml").unlink()
    with pytest.raises(
        UserError, match=r"site-configs/blind/config\.yaml: is not there.*site-configs/local/"
    ):
        check_profile("blind", copied.root)


@pytest.mark.parametrize("named", ["../local/site.yaml", "[site-configs/local/site.yaml]"])
def test_a_profile_that_names_another_sites_file_is_refused(copied: Project, named: str) -> None:
    """However that is written, by both front ends."""
    profile(copied, "configfile: site.yaml", f"configfile: {named}")
    refused(
        copied.tiercel("evaluate", "--site", "blind", "--study", "tiny"),
        "blind",
        "configfile: must be site.yaml",
    )
    refused(
        snakemake(copied, "--profile", "blind", "--config", "study=tiny"), "blind", "would measure site local"
    )
    assert not (copied.root / "results").exists()


def test_however_snakemake_gets_such_a_profile(copied: Project, tmp_path: Path) -> None:
    profile(copied, "configfile: site.yaml", "configfile: site-configs/local/site.yaml")
    root, study = str(copied.root), ["--config", "study=tiny"]
    ways = [
        ["--profile", "blind"],
        ["--profile=site-configs/blind/"],
        ["--profile", "blind/config.yaml"],
        ["--workflow-profile", "blind"],
        ["--profile", "local", "--workflow-profile", "blind"],
    ]
    calls = [Call(root, [*way, *study]) for way in ways]
    calls.append(Call(root, ["-n"], {"SNAKEMAKE_PROFILE": "blind"}))
    for call, (code, _, errors) in zip(calls, at_once(calls, tmp_path / "said"), strict=True):
        lines = [line for line in errors.splitlines() if line.startswith("tiercel: ")]
        assert (code, len(lines)) == (2, 1), (call, errors)
        assert "blind" in lines[0] and "would measure site local" in lines[0], (call, lines)
    assert not (copied.root / "results").exists()


def test_a_profile_without_a_configfile_measures_no_other_site(copied: Project) -> None:
    profile(copied, "configfile: site.yaml", "")
    refused(copied.tiercel("evaluate", "--site", "blind", "--study", "tiny"), "it names nothing")
    refused(snakemake(copied, "--profile", "blind", "--config", "study=tiny"), "would measure site local")


def test_the_command_line_names_no_other_site_than_the_profile(copied: Project) -> None:
    other = ["--configfile", "site-configs/local/site.yaml"]
    refused(
        snakemake(copied, "--profile", "blind", *other, "--config", "study=tiny"), "would measure site local"
    )
    refused(
        snakemake(copied, "--profile", "blind", "--config", "study=tiny", "site=local"),
        "would measure site local",
    )


def test_another_sites_scripts_and_jobs_names_are_refused(tmp_path: Path) -> None:
    """Jobs are found again by the site's name, and submitted with the site's own options."""
    for name in ("lassen", "ruby"):
        shutil.copytree(CHECKOUT / "site-configs" / name, tmp_path / "site-configs" / name)
        shutil.copytree(CHECKOUT / "site-configs" / name, tmp_path / "site-configs" / f"new-{name}")
        (tmp_path / f"new-{name}").symlink_to(f"site-configs/new-{name}")
    with pytest.raises(UserError, match="slurm-jobname-prefix: must be tiercel-new-ruby"):
        check_profile("new-ruby", tmp_path)
    with pytest.raises(UserError, match="cluster-generic-submit-cmd: must be the site's own"):
        check_profile("new-lassen", tmp_path)
    config = tmp_path / "new-lassen" / "config.yaml"
    config.write_text(
        config.read_text().replace("site-configs/lassen/submit", "site-configs/new-lassen/submit")
    )
    check_profile("new-lassen", tmp_path)
    (tmp_path / "new-lassen" / "cancel").chmod(0o644)
    with pytest.raises(UserError, match="cancel: is not there, or not executable"):
        check_profile("new-lassen", tmp_path)


@pytest.mark.parametrize(
    ("site", "old", "new", "said"),
    [
        # Else a login node would be measured.
        ("ruby", "executor: slurm\n", "", "executor: is missing: .* write `executor: slurm`"),
        ("lassen", "cluster-generic\n", "local\n", "in lsf jobs.* write `executor: cluster-generic`"),
        ("lassen", "cluster-generic\n", "slurm\n", "executor: slurm: site.yaml names scheduler lsf"),
        ("local", "cores: all\n", "cores: all\nexecutor: slurm\n", "site.yaml names no scheduler"),
    ],
)
def test_a_profile_sends_jobs_where_the_site_has_a_scheduler(
    tmp_path: Path, site: str, old: str, new: str, said: str
) -> None:
    folder = tmp_path / "site-configs" / site
    shutil.copytree(CHECKOUT / "site-configs" / site, folder)
    (tmp_path / site).symlink_to(folder)
    check_profile(site, tmp_path)
    text = (folder / "config.yaml").read_text()
    assert old in text
    (folder / "config.yaml").write_text(text.replace(old, new, 1))
    with pytest.raises(UserError, match=said):
        check_profile(site, tmp_path)


def test_a_profile_of_the_users_own_sends_no_site_elsewhere(project: Project, tmp_path: Path) -> None:
    """As people have one for all their workflows, in SNAKEMAKE_PROFILE: it names an executor, and no site."""
    own = tmp_path / "own"
    own.mkdir()
    (own / "config.yaml").write_text(
        "executor: cluster-generic\ncluster-generic-submit-cmd: false\njobs: 1\ncores: 1\nnolock: true\n"
    )
    said = snakemake(project, "--config", "study=tiny", SNAKEMAKE_PROFILE=str(own))
    assert said.returncode == 2, said.stderr
    assert "site local: is measured on this machine, and Snakemake would submit its jobs" in said.stderr
    assert f"SNAKEMAKE_PROFILE is {own}" in said.stderr
    assert not list(project.results.glob("raw/*"))


def test_a_site_with_a_scheduler_is_not_measured_here() -> None:
    with pytest.raises(UserError, match=r"site ruby: .* would run its jobs here: `snakemake --profile ruby`"):
        check_executor("ruby", True, "local")
    check_executor("ruby", True, "slurm")
    check_executor("local", False, "local")
