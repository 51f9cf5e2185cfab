"""Which sources are packed: tiercel's, and nothing that only lies beside them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

import tiercel
from tiercel.artifact.software import environment, find_software, load_environment
from tiercel.errors import UserError

CHECKOUT = Path(__file__).resolve().parents[2]


def checkout(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a copy of what find_software asks for, and make it the tiercel that runs."""
    (folder / "analysis" / "tiercel").mkdir(parents=True)
    (folder / "requirements").mkdir()
    for name in ("Snakefile", "requirements/evaluate.lock", "CITATION.cff"):
        shutil.copyfile(CHECKOUT / name, folder / name)
    (folder / "analysis" / "tiercel" / "__init__.py").touch()
    monkeypatch.setattr(tiercel, "__file__", str(folder / "analysis" / "tiercel" / "__init__.py"))
    return folder.resolve()


def test_without_git_the_same_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sources that were unpacked from an archive, in a folder that is used."""
    listed = find_software()
    if not listed.commit:
        pytest.skip("this checkout is no git repository")
    folder = tmp_path / "unpacked"
    for name in listed.files:
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(CHECKOUT / name, target, follow_symlinks=False)
    for name in ("local-quick-artifact.tar.gz", "notes.txt", "results/x", ".venv/x", "dist/x.whl",
                 "other/x.py", "site-configs/local/facts.yaml", "native/iokernel/build/x"):  # fmt: skip
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    monkeypatch.setattr(tiercel, "__file__", str(folder / "analysis" / "tiercel" / "__init__.py"))
    found = find_software()
    assert found.files == listed.files and found.commit == ""


def test_a_checkout_of_somebody_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """git refuses to read it (dubious ownership) unless it is told that it may."""
    folder = checkout(tmp_path / "theirs", monkeypatch)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(folder)]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "all"]):
        subprocess.run([*git, *words], check=True)
    (folder / "notes.txt").touch()
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    found = find_software()
    assert len(found.commit) == 40
    assert "Snakefile" in found.files and "notes.txt" not in found.files


def test_an_installed_package_packs_named_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wheel brings no sources: those named are taken where they are what runs, file by file."""
    sources = checkout(tmp_path / "clone", monkeypatch)
    installed = tmp_path / "site-packages" / "tiercel"
    shutil.copytree(sources / "analysis" / "tiercel", installed)
    (installed / "builtin" / "workflows").mkdir(parents=True)
    (sources / "workflows").mkdir()
    for root in (sources, installed / "builtin"):
        (root / "workflows" / "common.smk").write_text("# rules\n")
    shutil.copyfile(sources / "Snakefile", installed / "builtin" / "Snakefile")
    (installed / "builtin" / "site-configs" / "x.py").parent.mkdir()
    (installed / "builtin" / "site-configs" / "x.py").touch()  # no module of the package
    monkeypatch.setattr(tiercel, "__file__", str(installed / "__init__.py"))
    with pytest.raises(UserError, match="sources are not there"):
        find_software()
    assert "analysis/tiercel/__init__.py" in find_software(sources).files
    for name, changed in (
        ("analysis/tiercel/__init__.py", installed / "__init__.py"),
        ("analysis/tiercel/new.py", sources / "analysis" / "tiercel" / "new.py"),
        ("analysis/tiercel/more.py", installed / "more.py"),
        ("workflows/common.smk", installed / "builtin" / "workflows" / "common.smk"),
    ):
        before = changed.read_bytes() if changed.is_file() else None
        changed.write_text("x = 1\n")
        with pytest.raises(UserError, match=rf"{name}: is not what runs here"):
            find_software(sources)
        changed.unlink() if before is None else changed.write_bytes(before)
    with pytest.raises(UserError, match="sources are not there"):
        find_software(tmp_path)


def test_files_of_who_packs_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = checkout(tmp_path / "mine", monkeypatch)
    (folder / "workflows").mkdir()
    (folder / "workflows" / "known.smk").write_text("# written at /data/ada, by user=ada\n")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(folder)]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "all"]):
        subprocess.run([*git, *words], check=True)
    for name, text in (
        ("mine", "scratch: /data/ada/x"),
        ("other", "title: nobody"),
        ("ghost", "x: /data/bob"),
    ):
        (folder / "site-configs" / name).mkdir(parents=True)
        (folder / "site-configs" / name / "site.yaml").write_text(f"{text}\n")
    for variable in ("USER", "LOGNAME"):
        monkeypatch.setenv(variable, "ada")
    found = find_software()
    assert found.modified
    assert found.own == tuple(f"site-configs/{name}/site.yaml" for name in ("ghost", "mine", "other"))
    assert found.suspects() == ["site-configs/mine/site.yaml"]


@pytest.mark.parametrize("text", [None, "", "{}", "[]", '{"python": "3", "machine": "m", "packages": []}'])
def test_an_environment_that_is_none(text: str | None, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / "environment.json").write_text(text)
    with pytest.raises(UserError, match=r"environment\.json"):
        load_environment(tmp_path)
    with pytest.raises(UserError, match=r"requirements\.lock"):
        environment(tmp_path / "requirements.lock")
