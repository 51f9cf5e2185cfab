"""The wheel in an environment of its own, without checkout and compiler: `make wheel` makes it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

TINY = """
study: tiny
title: A study of seconds
repetitions: {minimum: 2, maximum: 2}
timeout: 60s
experiments:
  scaling:
    processes_per_node: [2]
    workloads:
      write: {operation: write, transfer_size: 64KiB, data_per_process: 1MiB, fsync: phase}
"""


@pytest.fixture(scope="module")
def wheel() -> Path:
    checkout = Path(__file__).resolve().parents[2]
    subprocess.run(["make", "-s", "wheel", f"PYTHON={sys.executable}"], cwd=checkout, check=True)
    [found] = (checkout / "dist").glob("tiercel-*.whl")
    return found


def environment(folder: Path, package: str) -> Path:
    """Make an environment that holds `package` and what it asks for, and return its bin folder."""
    uv = [str(Path(sys.executable).with_name("uv")), "--quiet"]
    subprocess.run([*uv, "venv", "--python", sys.executable, folder], check=True)
    words = ["--system-certs", "--python", str(folder / "bin" / "python")]
    subprocess.run([*uv, "pip", "install", *words, package], check=True)
    return folder / "bin"


#: What builds programs; /bin may be /usr/bin, where they lie beside everything else.
BUILDERS = re.compile(
    r"(.*-)?(gcc|g\+\+|cc|c\+\+|c\d\d|clang|cpp|ld|as|make|cmake|cargo|rustc|go|mpi\w*)([-.\d].*)?"
)


def without_compiler(folder: Path) -> Path:
    """Return a folder with links to all programs of the machine that build nothing."""
    if not folder.is_dir():
        folder.mkdir()
        for path in Path("/usr/bin").iterdir():
            if not BUILDERS.fullmatch(path.name):
                (folder / path.name).symlink_to(path)
    assert not [n for n in ("cc", "gcc", "make", "ld", "mpicc") if shutil.which(n, path=str(folder))]
    return folder


def run(bin_folder: Path, where: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run tiercel as a user who has no compiler."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("TIERCEL", "PYTHON"))}
    others = without_compiler(bin_folder.parent.parent / "programs")
    return subprocess.run(
        [bin_folder / "tiercel", *words], cwd=where, capture_output=True, text=True, check=False, timeout=600,
        env={**plain, "PATH": f"{bin_folder}:{others}", "CC": "none"},
    )  # fmt: skip


@pytest.mark.nightly
def test_the_wheel_says_how_old_a_linux_may_be_and_holds_only_what_is_tiercels(wheel: Path) -> None:
    tag = re.search(r"-py3-none-manylinux_2_(\d+)_x86_64\.whl$", wheel.name)
    assert tag is not None, wheel.name
    with zipfile.ZipFile(wheel) as archive:
        files = archive.namelist()
        asked = b"".join(archive.read(name) for name in files if "/builtin/bin/" in name)
        record = next(archive.read(name).decode() for name in files if name.endswith("/RECORD"))
    newest = max(int(number) for number in re.findall(rb"GLIBC_2\.(\d+)", asked))
    assert newest <= int(tag[1])
    programs = {Path(name).name for name in files if "/builtin/bin/" in name}
    assert {"iokernel", "iokernel-mpi", "tiercel-replay"} <= programs
    assert not [name for name in files if name.endswith(("facts.yaml", ".smk~"))]
    assert not [name for name in files if "libmpi" in name]
    assert str(Path(__file__).resolve().parents[2]) not in record


@pytest.mark.nightly
def test_the_package_alone_reads_traces_and_says_what_measuring_needs(wheel: Path, tmp_path: Path) -> None:
    bin_folder = environment(tmp_path / "light", str(wheel))
    there = {path.name for path in (tmp_path / "light").glob("lib/python*/site-packages/*")}
    assert not there & {"snakemake", "mpi4py", "ipykernel", "sklearn", "dftracer"}
    log = next((Path(__file__).resolve().parents[1] / "data" / "traces" / "strace").glob("*.strace*"))
    done = run(bin_folder, tmp_path, "trace", "summary", str(log), "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)
    done = run(bin_folder, tmp_path, "evaluate")
    assert done.returncode == 2
    assert "pip install 'tiercel[evaluate]'" in done.stderr and done.stderr.count("\n") == 1
    done = run(bin_folder, tmp_path, "artifact")  # which packages bring nothing to
    assert (done.returncode, done.stderr.count("\n")) == (2, 1) and "name a clone" in done.stderr


@pytest.mark.nightly
def test_evaluate_in_an_empty_folder(wheel: Path, tmp_path: Path) -> None:
    bin_folder = environment(tmp_path / "all", f"tiercel[evaluate] @ {wheel.as_uri()}")
    place = tmp_path / "empty"
    place.mkdir()
    (place / "tiny.yaml").write_text(TINY)
    done = run(bin_folder, place, "evaluate", "--study", "tiny.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (place / "results" / "local" / "report" / "index.html").is_file()
    records = [json.loads(path.read_text()) for path in place.glob("results/local/raw/*/record.json")]
    assert records and all("iokernel" in json.dumps(record) for record in records)
