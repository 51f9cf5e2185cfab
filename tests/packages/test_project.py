"""A project of one's own: what it has wins, what it has not comes with tiercel."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tiercel import project
from tiercel.errors import UserError
from tiercel.project import names, project_root, provided
from tiercel.site.load import known_sites, load_site
from tiercel.site.profile import check_profile, profile_of
from tiercel.site.project import new_project
from tiercel.study.load import known_studies, load_study, study_path


def tiercel(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tiercel", *words], cwd=folder, capture_output=True, text=True, check=False
    )


@pytest.fixture
def own(tmp_path: Path) -> Path:
    new_project(tmp_path / "own", ["local", "lassen"], ["quick"])
    return tmp_path / "own"


def test_what_a_project_has_wins_and_the_rest_comes_with_tiercel(own: Path, checkout: Path) -> None:
    (own / "workflows" / "studies" / "mine.yaml").write_text(
        (checkout / "workflows" / "studies" / "quick.yaml").read_text().replace("study: quick", "study: mine")
    )
    site = own / "site-configs" / "local" / "site.yaml"
    site.write_text(site.read_text() + "processes_per_node: 3\n")
    assert load_site("local", own).processes_per_node == 3
    assert load_study("mine", own).study == "mine"
    assert study_path("quick", own) == own / "workflows" / "studies" / "quick.yaml"
    assert study_path("full", own) == checkout / "workflows" / "studies" / "full.yaml"
    assert {"mine", "quick", "full"} <= set(known_studies(own))
    assert "summit" in known_sites(own)


def test_a_checkout_takes_nothing_from_another(tmp_path: Path) -> None:
    (tmp_path / "workflows").mkdir()
    (tmp_path / "workflows" / "common.smk").touch()
    (tmp_path / "pyproject.toml").touch()
    assert names(tmp_path, "site-configs/*/site.yaml") == set()
    assert provided(tmp_path, "Snakefile") == tmp_path / "Snakefile"


def test_the_project_is_found_from_a_folder_below(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    below = own / "workflows" / "studies"
    monkeypatch.chdir(below)
    assert project_root() == own


def test_profiles_of_a_project_and_of_tiercel(own: Path, checkout: Path) -> None:
    assert profile_of("lassen", own) == "lassen"
    check_profile("lassen", own)
    assert profile_of("summit", own) == str(checkout / "site-configs" / "summit")
    with pytest.raises(UserError, match="tiercel init --site summit"):
        check_profile("summit", own)


def test_an_environment_in_a_folder_whose_name_is_a_pattern(
    tmp_path: Path, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Snakemake looks for the profile's file as for a pattern: it found none, and ended without a word."""
    built_in = tmp_path / "env[all]"
    shutil.copytree(checkout / "site-configs" / "local", built_in / "site-configs" / "local")
    monkeypatch.setattr("tiercel.site.profile.provided", lambda _root, name: built_in / name)
    with pytest.raises(UserError, match="tiercel init --site local"):
        check_profile("local", tmp_path)
    new_project(tmp_path / "mine [1]", ["local"], ["quick"])  # its own profile has a plain name
    monkeypatch.undo()
    check_profile("local", tmp_path / "mine [1]")


def test_nothing_is_overwritten(own: Path) -> None:
    before = (own / "Snakefile").read_text()
    done = tiercel(own, "init")
    assert (done.returncode, done.stdout) == (2, "")
    assert "is there already" in done.stderr and done.stderr.count("\n") == 1
    assert (own / "Snakefile").read_text() == before


@pytest.mark.parametrize("words", [("--site", "lasen"), ("--study", "quik")])
def test_an_unknown_name_leaves_the_folder_as_it_was(tmp_path: Path, words: tuple[str, str]) -> None:
    done = tiercel(tmp_path, "init", *words)
    assert done.returncode == 2 and "did you mean" in done.stderr and done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_snakemake_plans_in_a_new_project_with_rules_of_its_own(tmp_path: Path) -> None:
    """The Snakefile of `tiercel init` finds tiercel's workflow, and a rule below it is there."""
    assert tiercel(tmp_path, "init").returncode == 0
    with (tmp_path / "Snakefile").open("a") as file:
        file.write('\n\nrule mine:\n    output: "mine.txt"\n    shell: "echo own > {output}"\n')
    words = [sys.executable, "-m", "snakemake", "--profile", "local"]
    done = subprocess.run([*words, "-n"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "scaling" in done.stdout + done.stderr
    subprocess.run([*words, "mine"], cwd=tmp_path, capture_output=True, check=True)
    assert (tmp_path / "mine.txt").read_text() == "own\n"
    shutil.rmtree(tmp_path / ".snakemake")


def test_an_installed_package_has_no_sources_to_pack(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert (project.checkout() / "Snakefile").is_file()
    monkeypatch.setattr(project, "_PACKAGE", tmp_path / "lib" / "site-packages" / "tiercel")
    with pytest.raises(UserError, match="name a clone of the same version"):
        project.checkout()
