"""A small checkout with a stack, and stand-ins for Spack that do what a test needs of it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]


def node(name: str, target: str = "zen2", **more: object) -> dict[str, object]:
    """A package as Spack 1.1 writes it in a lock."""
    arch = {"platform": "linux", "platform_os": "rhel8", "target": target}
    return {"name": name, "version": "1.0", "arch": arch, "namespace": "builtin", **more}


def lock_of(target: str = "zen2", mpi: str = "/nowhere/mpi") -> dict[str, object]:
    edge = {"name": "openmpi", "hash": "mmm", "parameters": {"deptypes": ["link"], "virtuals": ["mpi"]}}
    return {
        "_meta": {"file-type": "spack-lockfile", "lockfile-version": 6, "specfile-version": 5},
        "spack": {"version": "1.1.0", "type": "release"},
        "roots": [{"hash": "iii", "spec": "ior@4.0.0"}, {"hash": "fff", "spec": "fio"}],
        "concrete_specs": {
            "iii": node("ior", target, dependencies=[edge]),
            "fff": node("fio", target),
            "mmm": node("openmpi", target, external={"path": mpi, "module": None}),
        },
    }


class Stack:
    """A checkout with one site `small`, and a Spack that is a script."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = root
        self.calls = root / "calls.txt"
        self._monkeypatch = monkeypatch
        scope = root / "site-configs" / "small" / "spack"
        scope.mkdir(parents=True)
        (root / "Snakefile").touch()
        (root / "recipes").mkdir()
        (root / "spack.yaml").write_text((CHECKOUT / "spack.yaml").read_text())
        (scope / "packages.yaml").write_text(
            "packages:\n  all:\n    require: ['os=rhel8 target=zen2']\n    providers: {mpi: [openmpi]}\n"
        )
        (scope / "parts.yaml").write_text("parts: [engines]\nbuild_before_measuring: true\n")
        self.folder = root / "results" / "small" / "stack"
        self.mpi = root / "mpi"
        (self.mpi / "bin").mkdir(parents=True)
        monkeypatch.chdir(root)
        # What use_stack sets must not reach other tests.
        monkeypatch.setenv("TIERCEL_STACK", "")
        monkeypatch.delenv("TIERCEL_STACK")

    def spack(self, body: str, version: str = "1.1.0 (abc)") -> Path:
        """Put a Spack at SPACK_ROOT: it notes each call, then runs `body`, in Python (`words`, `folder`)."""
        program = self.root / "spack-root" / "bin" / "spack"
        program.parent.mkdir(parents=True, exist_ok=True)
        script = f"""\
            #!{sys.executable}
            import json, os, pathlib, sys
            words = [w for w in sys.argv[1:] if not w.startswith("--color")]
            if words == ["--version"]:
                print({version!r}); sys.exit()
            folder = pathlib.Path(words[1])
            words = words[2:]
            with open({str(self.calls)!r}, "a") as calls:
                print(os.environ.get("TIERCEL_SITE"), os.environ.get("TIERCEL_PARTS"), *words, file=calls)
            lock = {json.dumps(lock_of(mpi=str(self.mpi))).replace("null", "None")}
            def concretize():
                (folder / "spack.lock").write_text(json.dumps(lock))
            def build():
                (folder / "view" / "bin").mkdir(parents=True)
            """
        program.write_text(dedent(script) + dedent(body))
        program.chmod(0o755)
        self._monkeypatch.setenv("SPACK_ROOT", str(program.parent.parent))
        return program

    def said(self) -> list[str]:
        """Return the calls that Spack got."""
        return self.calls.read_text().splitlines() if self.calls.exists() else []


#: A Spack in which everything goes well.
GOOD = """
if words[0] == "concretize": concretize()
if words[0] == "install":
    print("[+] /opt/fio"); print("[+] /opt/ior"); build()
"""


@pytest.fixture
def stack_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stack:
    return Stack(tmp_path, monkeypatch)


@pytest.fixture
def without_spack(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPACK_ROOT", raising=False)
    empty = tmp_path_factory.mktemp("empty")
    monkeypatch.setenv("PATH", str(empty))


Tiercel = Callable[..., tuple[int, str, str]]


@pytest.fixture
def tiercel(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Tiercel:
    """Return a function that runs the command line: (exit code, stdout, stderr)."""
    from tiercel.cli.main import main  # noqa: PLC0415

    def run(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["tiercel", *words])
        code = 0
        try:
            main()
        except SystemExit as end:
            code = int(end.code or 0)
        finally:
            os.environ.pop("TIERCEL_STACK", None)
        out, err = capsys.readouterr()
        return code, out, err

    return run
