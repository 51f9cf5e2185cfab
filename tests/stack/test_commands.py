"""The commands, with stand-ins for Spack that succeed, fail half-way, or answer nonsense."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
import yaml

from tiercel.programs import STACK_FILE, program, use_stack
from tiercel.stack import Environment, prepare
from tiercel.stack.prepare import is_installed
from tiercel.stack.spack import PATIENCE

from ..conftest import CHECKOUT
from .conftest import GOOD, Stack, Tiercel, lock_of


def test_install_resolves_builds_and_records_where_programs_are(
    stack_project: Stack, tiercel: Tiercel, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack_project.spack(GOOD)
    code, out, _ = tiercel("stack", "install", "--site", "small", "--jobs", "2")
    assert code == 0
    assert stack_project.said() == [
        "small engines concretize --force",
        "small engines install --fail-fast -j 2",
    ]
    folders = [str(stack_project.folder / "view" / "bin"), str(stack_project.mpi / "bin")]
    assert json.loads((stack_project.folder / STACK_FILE).read_text())["folders"] == folders
    assert ", ".join(folders) in out
    # What later steps find: the stack's ior before one that lies on PATH, and the site's own mpiexec.
    for place in (*map(Path, folders), stack_project.root / "elsewhere"):
        place.mkdir(exist_ok=True)
        for name in ("ior", "mpiexec") if place != Path(folders[0]) else ("ior",):
            (place / name).write_text("#!/bin/sh\n")
            (place / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(stack_project.root / "elsewhere"))
    program.cache_clear()
    try:
        assert use_stack(stack_project.folder) == folders
        assert program("ior") == Path(folders[0]) / "ior"
        assert program("mpiexec") == stack_project.mpi / "bin" / "mpiexec"
    finally:
        os.environ.pop("TIERCEL_STACK", None)
        program.cache_clear()


def test_a_spack_that_gave_up_waiting_for_another_one_is_asked_again(
    stack_project: Stack, tiercel: Tiercel
) -> None:
    """What Spack 1.1 said where two sites were resolved at once and neither's packages were indexed."""
    stack_project.spack(
        """
        tries = folder / "tries"
        tries.write_text((tries.read_text() if tries.exists() else "") + "x")
        if len(tries.read_text()) < 3:
            print("==> Error: Timed out waiting for a write lock after 120.148s."); sys.exit(3)
        concretize()
        """
    )
    code, _, err = tiercel("stack", "concretize", "--site", "small")
    assert code == 0, err
    assert stack_project.said() == ["small engines concretize --force"] * 3


def test_a_spack_that_waits_for_ever_is_given_up(stack_project: Stack, tiercel: Tiercel) -> None:
    stack_project.spack('print("==> Error: Timed out waiting for a read lock after 120.2s."); sys.exit(3)')
    code, _, err = tiercel("stack", "concretize", "--site", "small")
    assert code == 2 and err.splitlines()[-1].count("Timed out waiting for a read lock") == 1
    assert len(stack_project.said()) == PATIENCE


def test_the_lock_stays_while_nothing_changes_and_is_made_anew_when_something_does(
    stack_project: Stack, tiercel: Tiercel
) -> None:
    stack_project.spack(GOOD)
    for _ in range(2):
        assert tiercel("stack", "concretize", "--site", "small")[0] == 0
    assert len(stack_project.said()) == 1
    scope = stack_project.root / "site-configs" / "small" / "spack" / "packages.yaml"
    scope.write_text(scope.read_text() + "# another compiler\n")
    assert tiercel("stack", "concretize", "--site", "small")[0] == 0
    assert tiercel("stack", "concretize", "--site", "small", "--parts", "layers, engines")[0] == 0
    assert tiercel("stack", "concretize", "--site", "small", "--parts", "engines layers", "--fresh")[0] == 0
    assert [call.partition(" concretize")[0] for call in stack_project.said()] == [
        "small engines", "small engines", "small engines layers", "small engines layers",
    ]  # fmt: skip


def test_the_environment_names_absolute_paths_only(stack_project: Stack, tiercel: Tiercel) -> None:
    stack_project.spack(GOOD)
    packages = stack_project.root / "packages" / "repos" / "spack_repo" / "builtin"
    packages.mkdir(parents=True)
    (packages / "repo.yaml").touch()
    mirror = stack_project.root / "mirror"
    mirror.mkdir()
    words = ["--packages", "packages", "--mirror", "mirror"]
    assert tiercel("stack", "install", "--site", "small", *words)[0] == 0
    made = yaml.safe_load((stack_project.folder / "spack.yaml").read_text())["spack"]
    root = str(stack_project.root)
    assert made["include"][0]["path"] == root + "/site-configs/${TIERCEL_SITE}/spack"
    assert made["repos"] == {"tiercel": root + "/recipes", "builtin": str(packages)}
    assert made["develop"]["tiercel-iokernel"]["path"] == root + "/native/iokernel"
    assert made["view"]["default"]["root"] == str(stack_project.folder / "view")
    assert made["mirrors"] == {"tiercel": f"file://{mirror}"}
    # A target of another processor family is considered only where a package that is asked for names it.
    specs = [spec for part in made["definitions"] for key, v in part.items() if key != "when" for spec in v]
    assert len(specs) > 10
    assert all(spec.endswith(" os=rhel8 target=zen2") for spec in specs)
    assert made["specs"] == ["$engines", "$analysis", "$layers", "$tracing", "$dl"]


def test_a_build_that_fails_half_way_is_told_and_goes_on(stack_project: Stack, tiercel: Tiercel) -> None:
    """The stand-in builds one package in each call and fails, until both are there: as Spack resumes."""
    stack_project.spack(
        """
        if words[0] == "concretize": concretize()
        if words[0] == "install":
            built = folder / "built.txt"
            before = built.read_text().split() if built.exists() else []
            for name in before: print(f"[+] /opt/{name}")
            if len(before) == 2: build(); sys.exit()
            new = ["fio", "ior"][len(before)]
            print(f"==> Installing {new}-1.0 [{len(before) + 1}/2]")
            built.write_text(" ".join([*before, new]))
            print(f"[+] /opt/{new}")
            print("==> Error: ProcessError: Command exited with status 2:")
            print("    'make' '-j2'")
            sys.exit(1)
        """.replace("\n        ", "\n")
    )
    code, _, err = tiercel("stack", "install", "--site", "small")
    assert code == 2
    last = err.splitlines()[-1]
    assert (
        "spack install ended with 1 after 1 of 3 packages: ProcessError: Command exited with status 2" in last
    )
    assert "run the same command again to resume" in last
    assert "'make' '-j2'" in (stack_project.folder / "spack.log").read_text()
    assert not (stack_project.folder / STACK_FILE).exists()
    assert (
        tiercel("stack", "status", "--site", "small")[1].splitlines()[-1].startswith("not built to its end")
    )
    assert tiercel("stack", "install", "--site", "small")[0] == 2
    assert tiercel("stack", "install", "--site", "small")[0] == 0
    assert tiercel("stack", "status", "--site", "small")[1].splitlines()[-1] == "built"
    # Resolved once: the failures did not throw the lock away.
    assert [call for call in stack_project.said() if "concretize" in call] == [
        "small engines concretize --force"
    ]


def test_no_solution_is_told_with_spacks_reason(stack_project: Stack, tiercel: Tiercel) -> None:
    stack_project.spack(
        'print("==> Error: failed to concretize `ior@4.0.0` for the following reasons:"); sys.exit(1)'
    )
    code, _, err = tiercel("stack", "concretize", "--site", "small")
    assert code == 2
    assert "spack concretize ended with 1: failed to concretize `ior@4.0.0`" in err
    assert not (stack_project.folder / "stack.json").exists()


def test_a_lock_for_another_machine_is_refused(stack_project: Stack, tiercel: Tiercel) -> None:
    """zen2 is required; one package comes out for the machine that resolves, as under a wrong scope."""
    wrong = json.dumps(lock_of("zen2")).replace('"target": "zen2"', '"target": "skylake"', 1)
    stack_project.spack(f'(folder / "spack.lock").write_text({wrong!r})')
    code, _, err = tiercel("stack", "concretize", "--site", "small")
    assert code == 2
    assert "1 of 3 packages are not for rhel8-zen2, ior for one (rhel8-skylake)" in err


def test_an_external_that_is_not_on_this_machine_stops_before_the_build(
    stack_project: Stack, tiercel: Tiercel
) -> None:
    stack_project.spack(GOOD)
    (stack_project.mpi / "bin").rmdir()
    stack_project.mpi.rmdir()
    code, _, err = tiercel("stack", "install", "--site", "small")
    assert code == 2
    assert f"not on this machine: openmpi@1.0 ({stack_project.mpi})" in err
    assert not any("install" in call for call in stack_project.said())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--site", "smal"], "did you mean small?"),
        (["--site", "small", "--parts", "engine"], "--parts: no part named 'engine': did you mean engines?"),
        (["--site", "small", "--mirror", "nowhere"], "--mirror nowhere: no such folder"),
        (["--site", "small", "--packages", "recipes"], "no repos/spack_repo/builtin/repo.yaml"),
    ],
)
def test_bad_input(stack_project: Stack, tiercel: Tiercel, words: list[str], message: str) -> None:
    stack_project.spack(GOOD)
    code, _, err = tiercel("stack", "install", *words)
    assert (code, len(err.splitlines())) == (2, 1)
    assert message in err


def test_wrong_parts_file(stack_project: Stack, tiercel: Tiercel) -> None:
    path = stack_project.root / "site-configs" / "small" / "spack" / "parts.yaml"
    path.write_text("parts: [engines, pytorch]\n")
    code, _, err = tiercel("stack", "concretize", "--site", "small")
    assert code == 2
    assert str(path) in err
    assert "no part named 'pytorch'" in err


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"concrete_specs": {}}', '{"concrete_specs": {"a": 1}, "roots": []}']
)
def test_damaged_lock(stack_project: Stack, tiercel: Tiercel, text: str) -> None:
    stack_project.folder.mkdir(parents=True)
    (stack_project.folder / "spack.lock").write_text(text)
    code, _, err = tiercel("stack", "status", "--site", "small")
    assert code == 2
    assert "spack.lock: not a lock file of Spack 1" in err


def test_old_and_broken_spacks(stack_project: Stack, tiercel: Tiercel) -> None:
    program_ = stack_project.spack(GOOD, version="0.23.1")
    assert (
        "is Spack 0.23.1; spack.yaml needs 1.1 or newer" in tiercel("stack", "install", "--site", "small")[2]
    )
    program_.write_text("#!/bin/sh\necho python3 is too old >&2\nexit 1\n")
    assert "--version failed: python3 is too old" in tiercel("stack", "install", "--site", "small")[2]
    program_.unlink()
    assert "no program bin/spack in it" in tiercel("stack", "install", "--site", "small")[2]


@pytest.mark.usefixtures("without_spack")
def test_without_spack(stack_project: Stack, tiercel: Tiercel) -> None:
    code, _, err = tiercel("stack", "install", "--site", "small")
    assert (code, len(err.splitlines())) == (2, 1)
    assert "load its module or set SPACK_ROOT" in err
    code, out, _ = tiercel("stack", "status", "--site", "small", "--json")
    assert json.loads(out)["spack"] is None


def measurable(project: Stack) -> None:
    (project.root / "site-configs" / "small" / "site.yaml").write_text(
        "site: small\nlauncher: fork\n"
        f"storages: {{disk: {{type: ext4, mount: /, scratch: {project.root}/scratch}}}}\n"
    )
    studies = project.root / "workflows" / "studies"
    studies.mkdir(parents=True)
    (studies / "tiny.yaml").write_text(
        "study: tiny\ntitle: t\nexperiments: {e: {workloads: {w: {operation: write, transfer_size: 4KiB, "
        "data_per_process: 4KiB}}}}\n"
    )


def test_before_measuring_the_stack_is_built_once(stack_project: Stack) -> None:
    stack_project.spack(GOOD)
    measurable(stack_project)
    assert prepare("small", stack_project.root)  # so what is planned changes
    assert [call.split()[2] for call in stack_project.said()] == ["concretize", "install"]
    assert not prepare("small", stack_project.root)
    assert len(stack_project.said()) == 2
    # A changed scope is another stack.
    environment = Environment(stack_project.root, "small")
    assert is_installed(environment, ["engines"])
    assert not is_installed(environment, ["engines", "layers"])


def test_a_wrong_study_is_told_before_anything_is_built(stack_project: Stack, tiercel: Tiercel) -> None:
    stack_project.spack(GOOD)
    measurable(stack_project)
    folder = stack_project.root / "site-configs" / "small"
    shutil.copy(CHECKOUT / "site-configs" / "local" / "config.yaml", folder)
    (stack_project.root / "small").symlink_to(folder)
    code, _, err = tiercel("evaluate", "--site", "small", "--study", "tinny")
    assert code == 2 and "tinny" in err
    assert not stack_project.said()


@pytest.mark.usefixtures("without_spack")
def test_before_measuring_without_spack_goes_on(
    stack_project: Stack, capsys: pytest.CaptureFixture[str]
) -> None:
    measurable(stack_project)
    prepare("small", stack_project.root)
    assert "its stack is not built; going on with the engines that are there" in capsys.readouterr().err


def test_mirror_counts_files_and_tells_what_could_not_be_fetched(
    stack_project: Stack, tiercel: Tiercel
) -> None:
    stack_project.spack(
        GOOD
        + """
if words[0] == "mirror":
    place = pathlib.Path(words[-1]); (place / "ior").mkdir()
    (place / "ior" / "ior-4.0.0.tar.gz").touch()
"""
    )
    code, out, _ = tiercel("stack", "mirror", "--site", "small", "--to", "m")
    assert (code, out) == (0, "m: 1 files; on the site: tiercel stack install --site small --mirror m\n")
    stack_project.spack(
        GOOD
        + """
if words[0] == "mirror": print("==> Error: could not fetch fio"); sys.exit(0)
"""
    )
    code, _, err = tiercel("stack", "mirror", "--site", "small", "--to", "m")
    assert code == 2
    assert "could not fetch fio" in err
