"""A real study packed, unpacked elsewhere, and made again there with the packed software."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tiercel.artifact.checksums import write_checksums

from ..archives import unpacked
from ..conftest import Project

PACK = ("artifact", "--study", "small", "--date", "2026-01-31", "--licence", "MIT", "--author", "Doe, Ada",
        "--repository", "https://example.org/us/study/")  # fmt: skip


def copy_of(measured: Project, folder: Path, *patterns: str) -> Project:
    """Return a copy of the project, of its runs those of `patterns` only (all where there is none)."""
    shutil.copytree(measured.root, folder, symlinks=True)
    project = Project(folder)
    kept = {p for pattern in patterns for p in (project.results / "raw").glob(pattern)}
    for path in (project.results / "raw").iterdir():
        if patterns and path not in kept:
            shutil.rmtree(path)
    return project


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A place for packed software, unpacked: Python compiles it once, not for each test."""
    return tmp_path_factory.mktemp("software")


def reproduce(folder: Path, shelf: Path, *more: str) -> tuple[int, dict[str, Any]]:
    """Make an unpacked artifact again with its own software, in an environment that knows nothing else."""
    (source,) = (folder / "software").iterdir()
    software = shelf / hashlib.sha256(source.read_bytes()).hexdigest()
    if not software.exists():
        unpacked(source, software)
    (root,) = software.iterdir()
    home = folder.parent / "home"
    home.mkdir(exist_ok=True)
    environment = {"PATH": os.defpath, "HOME": str(home), "PYTHONPATH": str(root / "analysis")}
    where = subprocess.run(
        [sys.executable, "-c", "import tiercel; print(tiercel.__file__)"],
        cwd=folder, env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert Path(where.stdout.strip()).is_relative_to(root)
    done = subprocess.run(
        [sys.executable, "-m", "tiercel", "reproduce", ".", "--json", *more],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stderr == "", done.stderr
    return done.returncode, json.loads(done.stdout)


@pytest.fixture(scope="module")
def packed(measured: Project, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("packed") / "mine.tar.gz"
    done = measured.tiercel(*PACK, "--output", str(target))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(
        f"{target}: 24 runs, "
    )  # 3 workloads on 2 storages, each 3 times and traced
    assert [p.name for p in target.parent.iterdir()] == ["mine.tar.gz"]
    return target


def test_made_again_elsewhere(packed: Path, shelf: Path, tmp_path: Path) -> None:
    folder = unpacked(packed, tmp_path / "there")
    assert folder.name == "mine"
    code, answer = reproduce(folder, shelf, "--output", str(tmp_path / "again"))
    assert (code, answer["reproduced"], answer["different"], answer["missing"]) == (0, True, [], [])
    published = {
        p.relative_to(folder / "results").as_posix()
        for p in (folder / "results").rglob("*")
        if p.is_file() and "raw" not in p.parts
    }
    assert set(answer["same"]) == published
    assert {"report/index.html", "report/tables/numbers.csv", "observations.parquet", "runs.parquet",
            "dataset.nc", "traces.parquet", "trace-groups.parquet", "traces.nc"} <= published  # fmt: skip
    figures = sorted(p.name for p in (tmp_path / "again" / "report" / "figures").iterdir())
    assert figures and figures == sorted(p.name for p in (folder / "results/report/figures").iterdir())


def test_a_changed_raw_file_is_found(packed: Path, shelf: Path, tmp_path: Path) -> None:
    """First by its checksum; then, where somebody wrote that anew, by the tables and figures."""
    folder = unpacked(packed, tmp_path / "there")
    (path,) = (folder / "results" / "raw").glob("scaling.cold-read.main.*.r1-*/read.json")
    content = json.loads(path.read_text())
    content["tests"][0]["Results"][0]["totalTime"] *= 2
    path.write_text(json.dumps(content))
    name = path.relative_to(folder).as_posix()
    code, answer = reproduce(folder, shelf)
    assert (code, answer["changed"], answer["same"]) == (1, [name], [])
    write_checksums(folder)
    code, answer = reproduce(folder, shelf)
    assert (code, answer["changed"]) == (1, [])
    assert {"observations.parquet", "report/tables/numbers.csv", "report/index.html"} <= {
        *answer["different"]
    }


def test_described_for_programs(packed: Path, tmp_path: Path) -> None:
    folder = unpacked(packed, tmp_path / "there")
    graph = {e["@id"]: e for e in json.loads((folder / "ro-crate-metadata.json").read_text())["@graph"]}
    root, action = graph["./"], graph["#measured"]
    assert "https://w3id.org/ro/wfrun/workflow/0.5" in {each["@id"] for each in root["conformsTo"]}
    assert root["mainEntity"] == action["instrument"] == {"@id": "workflow/Snakefile"}
    assert root["datePublished"] == "2026-01-31" and graph[root["author"]["@id"]]["name"] == "Ada Doe"
    assert graph["workflow/Snakefile"]["url"] == "https://example.org/us/study"
    parts = {each["@id"] for each in root["hasPart"]}
    assert all((folder / part).exists() for part in parts)
    # Everything but what describes it is described: raw files by their folder.
    there = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}
    apart = {"ro-crate-metadata.json", "manifest-sha256.txt"}
    assert {p for p in there - parts - apart if not p.startswith("results/raw/")} == set()
    assert {each["@id"] for each in action["object"]} == {"study/small.yaml", "site.yaml"}
    assert action["startTime"] < action["endTime"]
    locks = json.loads((folder / "locks" / "engines.json").read_text())
    assert set(locks) == {"dlkernel", "iokernel"} and len(locks["iokernel"]["sources_sha256"]) == 64


@pytest.mark.skipif(
    "TIERCEL_ROCRATE_VALIDATOR" not in os.environ,
    reason="TIERCEL_ROCRATE_VALIDATOR names no rocrate-validator in an environment of its own",
)
def test_the_official_validator_is_content(packed: Path, tmp_path: Path) -> None:
    folder = unpacked(packed, tmp_path / "there")
    validator = os.environ["TIERCEL_ROCRATE_VALIDATOR"].split()
    words = ["validate", "--no-paging", "-p", "workflow-run-crate", "-l", "required", str(folder)]
    done = subprocess.run([*validator, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_compared_as_an_archive(packed: Path, measured: Project) -> None:
    done = measured.tiercel("compare", str(packed), "local")
    assert done.returncode == 2 and "are the same 24 runs" in done.stderr  # so both were read


@pytest.mark.nightly
def test_slim_is_made_again_too(measured: Project, shelf: Path, tmp_path: Path) -> None:
    project = copy_of(measured, tmp_path / "project", "metadata.*")
    assert len(list((project.results / "raw").rglob("*.pfw.gz"))) >= 2
    target = tmp_path / "slim.tar.gz"
    done = project.tiercel(*PACK, "--slim", "--output", str(target))
    assert done.returncode == 0, done.stderr
    folder = unpacked(target, tmp_path / "there")
    assert not list(folder.rglob("*.pfw.gz")) and (folder / "results" / "traces.parquet").is_file()
    # One engine alone: a list of one would be no compact JSON-LD.
    graph = json.loads((folder / "ro-crate-metadata.json").read_text())["@graph"]
    assert not [(e["@id"], key) for e in graph for key, v in e.items() if isinstance(v, list) and len(v) == 1]
    code, answer = reproduce(folder, shelf)
    assert (code, answer["different"], answer["missing"], answer["added"]) == (0, [], [], [])


def test_nothing_private_is_packed(measured: Project, tmp_path: Path) -> None:
    """Results of a version that did not clean them, say: packing looks again, and leaves them as they are."""
    project = copy_of(measured, tmp_path / "project", "metadata.*.r?-*")
    run, other, *_ = sorted((project.results / "raw").iterdir())
    (run / "metadata.stderr").write_text("read /home/zelda/.config\n")
    with gzip.open(other / "log.gz", "wt") as file:
        file.write("user=zelda 0123-courage-4567\n")
    telling = {"USER": "zelda", "HOME": "/home/zelda", "SITE_TOKEN": "0123-courage-4567"}
    target = tmp_path / "o.tar.gz"
    done = project.tiercel(*PACK, "-o", str(target), env=telling)
    assert done.returncode == 0, done.stderr
    folder = unpacked(target, tmp_path / "there")
    assert (folder / "results/raw" / run.name / "metadata.stderr").read_text() == "read $HOME/.config\n"
    with gzip.open(folder / "results/raw" / other.name / "log.gz", "rt") as file:
        assert file.read() == "user=$USER $SITE_TOKEN\n"
    assert (run / "metadata.stderr").read_text() == "read /home/zelda/.config\n"
    # What is no text cannot be cleaned.
    (run / "binary").write_bytes(b"\0\1/home/zelda/x\0")
    done = project.tiercel(*PACK, "-o", str(tmp_path / "p.tar.gz"), env=telling)
    assert done.returncode == 2 and "holds your home folder or a secret, and is binary" in done.stderr
    assert not (tmp_path / "p.tar.gz").exists()


def broken(project: Project, how: str) -> str:
    """Damage one run; return its name."""
    run = min((project.results / "raw").iterdir())
    match how:
        case "engine's output":
            (path,) = [
                p for p in run.glob("*.json") if p.name not in {"run.json", "record.json", "context.json"}
            ]
            path.write_bytes(path.read_bytes()[:-100])
        case "record":
            (run / "record.json").write_text('{"run": ')
        case "another's record":
            (run / "record.json").write_text("{}")
        case "a link":
            (run / "more").symlink_to("/etc/passwd")
    return run.name


@pytest.mark.parametrize("how", ["engine's output", "record", "another's record", "a link"])
def test_damaged_results_are_not_packed(how: str, measured: Project, tmp_path: Path) -> None:
    project = copy_of(measured, tmp_path / "project", "metadata.*.r?-*")
    name = broken(project, how)
    (tmp_path / "out").mkdir()
    done = project.tiercel(*PACK, "--output", str(tmp_path / "out" / "x.tar.gz"))
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.count("\n") == 1 and name in done.stderr, done.stderr
    assert not list((tmp_path / "out").iterdir())


def test_killed_while_packing(measured: Project, tmp_path: Path) -> None:
    project = copy_of(measured, tmp_path / "project", "metadata.*.r?-*")
    out = tmp_path / "out"
    out.mkdir()
    words = [sys.executable, "-m", "tiercel", *PACK, "--output", str(out / "x.tar.gz")]
    started = subprocess.Popen(words, cwd=project.root)
    while not list(out.glob(".tiercel-artifact-*/staged/local/raw/*")):
        assert started.poll() is None
        time.sleep(0.01)
    started.send_signal(signal.SIGKILL)
    started.wait()
    assert not [p for p in out.iterdir() if not p.name.startswith(".tiercel-artifact-")]
    done = project.tiercel(*PACK, "--output", str(out / "x.tar.gz"))
    assert done.returncode == 0, done.stderr
    assert [p.name for p in out.iterdir()] == ["x.tar.gz"]
    # The same again would take its place.
    done = project.tiercel(*PACK, "--output", str(out / "x.tar.gz"))
    assert done.returncode == 2 and "is there already" in done.stderr


@pytest.mark.nightly
def test_two_at_once_pack_the_same(measured: Project, tmp_path: Path) -> None:
    project = copy_of(measured, tmp_path / "project", "metadata.*.r?-*")
    targets = [tmp_path / place / "x.tar.gz" for place in "ab"]
    started = []
    for target in targets:
        target.parent.mkdir()
        words = [sys.executable, "-m", "tiercel", *PACK, "--output", str(target)]
        started.append(subprocess.Popen(words, cwd=project.root))
    assert [process.wait() for process in started] == [0, 0]
    assert targets[0].read_bytes() == targets[1].read_bytes()


def test_a_full_disk(measured: Project, tmp_path: Path) -> None:
    project = copy_of(measured, tmp_path / "project", "metadata.*.r?-*")
    small = tmp_path / "small"
    small.mkdir()
    words = f"{sys.executable} -m tiercel {shlex.join(PACK)} --output {small}/x.tar.gz; code=$?"
    script = f"mount -t tmpfs -o size=1m none {small} || exit 77; {words}; ls -A {small}; exit $code"
    unshare = ["unshare", "--mount"] + ([] if os.getuid() == 0 else ["--user", "--map-root-user"])
    try:
        done = subprocess.run(
            [*unshare, "sh", "-c", script], cwd=project.root, capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        pytest.skip("unshare is not installed, and root mounts")
    if done.returncode in (1, 77):
        pytest.skip("mounting is not allowed here: as root")
    assert done.returncode == 2 and done.stdout == "", done.stderr
    assert done.stderr.count("\n") == 1 and "No space left on device" in done.stderr


def test_what_cannot_be_packed_or_made_again(measured: Project, tmp_path: Path) -> None:
    for words, said in (
        ((*PACK, "--output", "x.zip"), "ends in .tar.gz"),
        ((*PACK, "--output", "nowhere/x.tar.gz"), "there is no folder nowhere"),
        (("artifact", "--study", "tiny", "--author", "A", "--licence", "MIT"), "holds no run of study tiny"),
        ((*PACK, "--site", "elsewhere"), "no site named 'elsewhere', and no results of one"),
        (("reproduce", str(tmp_path)), "there is no artifact.json"),
        (("reproduce", str(tmp_path / "none.tar.gz")), "no such file"),
        (("reproduce", __file__), "damaged, or no archive"),
        (("reproduce", "/dev/zero"), "is no file"),
    ):
        done = measured.tiercel(*words)
        assert done.returncode == 2 and done.stdout == "" and said in done.stderr, (words, done.stderr)
        assert done.stderr.count("\n") == 1


@pytest.mark.nightly
def test_the_command_of_its_readme_in_an_empty_environment(packed: Path, tmp_path: Path) -> None:
    """Everything from nothing, as a reader does it: needs the network and minutes."""
    folder = unpacked(packed, tmp_path / "there")
    (tmp_path / "home").mkdir()
    kept = {
        k: v for k, v in os.environ.items() if k.startswith(("PIP_", "UV_", "SSL_")) or "proxy" in k.lower()
    }
    python = {"PYTHON": str(Path(sys.executable).resolve())}
    environment = {**kept, **python, "PATH": os.defpath, "HOME": str(tmp_path / "home")}
    done = subprocess.run(
        ["sh", "reproduce.sh"], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1].endswith("are made again from the raw files, byte for byte")
    assert (folder / "again" / "report" / "index.html").read_bytes() == (
        folder / "results" / "report" / "index.html"
    ).read_bytes()
