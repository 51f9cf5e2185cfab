"""What only a Spack can tell: its audit of the recipes, each site's solution, an offline installation.

They run where SPACK_ROOT (or PATH) has a Spack and TIERCEL_SPACK_PACKAGES names a checkout of its packages
(github.com/spack/spack-packages, v2026.06.0), so that nothing is fetched. The first call indexes those
packages: minutes. Nothing of the user's Spack configuration is read or written.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest
import yaml

from tiercel.stack.environment import packages_repository
from tiercel.stack.lock import read_lock, required_architecture
from tiercel.stack.spack import spack_program

from .test_recipes import RECIPES
from .test_sites import NAMED

CHECKOUT = Path(__file__).resolve().parents[2]

pytestmark = [
    pytest.mark.skipif(spack_program() is None, reason="no Spack: set SPACK_ROOT"),
    pytest.mark.skipif(
        "TIERCEL_SPACK_PACKAGES" not in os.environ,
        reason="set TIERCEL_SPACK_PACKAGES to a checkout of Spack's packages",
    ),
]

Run = Callable[..., str]


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Spack configuration of its own: our recipes, then Spack's packages."""
    folder = tmp_path_factory.mktemp("spack")
    repos = {
        "tiercel": str(CHECKOUT / "recipes"),
        "builtin": str(packages_repository(Path(os.environ["TIERCEL_SPACK_PACKAGES"]))),
    }
    scope = folder / "scope"
    scope.mkdir()
    (scope / "repos.yaml").write_text(yaml.safe_dump({"repos": repos}, sort_keys=False))
    (scope / "config.yaml").write_text(
        yaml.safe_dump(
            {
                "config": {
                    "install_tree": {"root": str(folder / "opt")},
                    "build_stage": [str(folder / "stage")],
                }
            }
        )
    )
    return folder


@pytest.fixture(scope="session")
def variables(home: Path) -> dict[str, str]:
    # The index of the packages is kept from one session to the next where the user names a folder.
    cache = os.environ.get("SPACK_USER_CACHE_PATH", str(home / "cache"))
    return {
        **os.environ,
        "SPACK_DISABLE_LOCAL_CONFIG": "1",
        "SPACK_USER_CONFIG_PATH": str(home / "user"),
        "SPACK_USER_CACHE_PATH": cache,
        "SPACK_PYTHON": os.environ.get("SPACK_PYTHON", sys.executable),
    }


@pytest.fixture(scope="session")
def spack(home: Path, variables: dict[str, str]) -> Run:
    def run(*words: str, offline: bool = False) -> str:
        before = ["unshare", "--net"] if offline and os.geteuid() == 0 else []
        before += ["nice", "-n", "10"]
        ended = subprocess.run(
            [*before, str(spack_program()), "--color=never", "-C", str(home / "scope"), *words],
            env=variables, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert ended.returncode == 0, ended.stdout[-3000:] + ended.stderr[-3000:]
        return ended.stdout

    return run


def test_audit_of_the_recipes_is_clean(spack: Run) -> None:
    said = spack("audit", "packages", *[path.parent.name for path in RECIPES])
    assert "PKG-DIRECTIVES: passed" in said
    assert "issue" not in said


@pytest.mark.nightly
@pytest.mark.parametrize("site", NAMED)
def test_every_node_of_a_site_is_for_the_site(site: str, variables: dict[str, str], tmp_path: Path) -> None:
    """The command that a user types, in a copy of what it reads; each node's os and target, one by one."""
    for name in ("spack.yaml", "Snakefile"):
        shutil.copy(CHECKOUT / name, tmp_path)
    for name in ("recipes", "site-configs", "native", "analysis"):
        (tmp_path / name).symlink_to(CHECKOUT / name)
    words = ["stack", "concretize", "--site", site, "--packages", os.environ["TIERCEL_SPACK_PACKAGES"]]
    ended = subprocess.run(
        [sys.executable, "-m", "tiercel", *words],
        cwd=tmp_path,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    lock = read_lock(tmp_path / "results" / site / "stack" / "spack.lock")
    assert {(n.os, n.target) for n in lock.nodes} == {
        required_architecture(CHECKOUT / "site-configs" / site / "spack")
    }
    # What the site has is taken from it, and our own packages come from our recipes.
    assert {"gcc", "python"} <= {n.name for n in lock.externals}
    mpi = lock.provider("mpi")
    assert mpi is not None and mpi.external
    assert {n.version for n in lock.nodes if n.name == "ior"} == {"4.0.0"}
    ours = {path.parent.name for path in RECIPES}
    assert {n.namespace for n in lock.nodes if n.name in ours} == {"tiercel"}


needs_mirror = pytest.mark.skipif(
    "TIERCEL_SPACK_MIRROR" not in os.environ,
    reason="set TIERCEL_SPACK_MIRROR to a folder made by: spack mirror create -d FOLDER compiler-wrapper",
)


@pytest.mark.nightly
@needs_mirror
def test_our_own_packages_install_without_network(spack: Run, tmp_path: Path) -> None:
    """From the checkout and a source mirror, without any network where this user may make such a place."""
    make = re.search(
        r"[0-9.]+", subprocess.run(["make", "--version"], capture_output=True, text=True, check=True).stdout
    )
    assert make
    native = ("iokernel", "tracescan", "dlkernel", "replay")
    prefix = Path(shutil.which("make") or "/usr/bin/make").parent.parent
    content = {
        "specs": ["tiercel-iokernel ~mpi", *(f"tiercel-{name}" for name in native[1:])],
        "develop": {
            f"tiercel-{name}": {"spec": f"tiercel-{name}@=main", "path": str(CHECKOUT / "native" / name)}
            for name in native
        },
        "view": str(tmp_path / "view"),
        "packages": {
            "gmake": {"buildable": False, "externals": [{"spec": f"gmake@{make[0]}", "prefix": str(prefix)}]}
        },
        "mirrors": {"sources": Path(os.environ["TIERCEL_SPACK_MIRROR"]).resolve().as_uri()},
        "concretizer": {"reuse": False},
    }
    environment = tmp_path / "environment"
    environment.mkdir()
    (environment / "spack.yaml").write_text(yaml.safe_dump({"spack": content}))
    spack("-e", str(environment), "concretize")
    spack("-e", str(environment), "install", "--fail-fast", offline=True)
    answer = subprocess.run(
        [tmp_path / "view" / "bin" / "iokernel", "--version"], capture_output=True, text=True, check=True
    )
    assert answer.stdout.startswith("iokernel ")
    assert (tmp_path / "view" / "bin" / "tiercel-replay").is_file()
    assert {p.name for p in (tmp_path / "view" / "lib").glob("libtracescan.so")} == {"libtracescan.so"}
    assert all(
        n.external or n.name.startswith(("tiercel-", "compiler-", "gcc-runtime"))
        for n in read_lock(environment / "spack.lock").nodes
    )


def external(spec: str, prefix: Path | str) -> dict[str, object]:
    return {"buildable": False, "externals": [{"spec": spec, "prefix": str(prefix)}]}


def python_packages() -> dict[str, dict[str, object]]:
    """Return py-tiercel's dependencies as this environment has them, so that only our own package is built.

    What it cannot lend (distributed, where it is not installed) is a variant that the test turns off.
    """
    recipe = (CHECKOUT / "recipes" / "packages" / "py-tiercel" / "package.py").read_text()
    wanted = {str(name) for name in re.findall(r'depends_on\("((?:py-|snakemake)[a-z0-9-]*)', recipe)}
    found = {}
    for name in wanted | {"py-pip"}:
        with suppress(PackageNotFoundError):
            found[name] = external(f"{name}@{version(name.removeprefix('py-'))}", sys.prefix)
    # setuptools 70 and newer make wheels themselves; Spack's recipes still name it.
    found["py-wheel"] = external("py-wheel@0.45.1", sys.prefix)
    found["python"] = external(f"python@{platform.python_version()}", sys.base_prefix)
    return found


def _with_crates(folder: Path) -> Path:
    """Copy fairshare to `folder`, with its crates beside it as its recipe says."""
    shutil.copytree(
        CHECKOUT / "native" / "fairshare", folder, ignore=shutil.ignore_patterns("build-*", "target")
    )
    done = subprocess.run(
        ["cargo", "vendor", "--locked"], cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip("cargo vendor got no crates of fairshare: no network?")
    (folder / ".cargo").mkdir()
    (folder / ".cargo" / "config.toml").write_text(done.stdout)
    return folder


@pytest.mark.nightly
@needs_mirror
def test_every_package_of_ours_is_built_by_a_real_spack(spack: Run, tmp_path: Path) -> None:
    """What `stack install` builds of this checkout: each recipe with its own checks, and the program runs.

    HDF5 are the headers that `make layers` unpacked, Rust and Python are this machine's.
    """
    headers, rustc = CHECKOUT / "native" / "cachevol" / "build", shutil.which("rustc")
    if not (headers / "include" / "H5pubconf.h").is_file() or rustc is None:
        pytest.skip("no Rust, or no headers of HDF5: run `make layers`")

    def answer(*words: str) -> str:
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout

    stack = yaml.safe_load((CHECKOUT / "spack.yaml").read_text())["spack"]
    release = answer(rustc, "--version").split()[1]
    packages = {
        "gmake": external(f"gmake@{answer('make', '--version').split()[2]}", "/usr"),
        "hdf5": external("hdf5@1.14.6 ~mpi", headers),
        "rust": external(f"rust@{release}", answer(rustc, "--print", "sysroot").strip()),
        **python_packages(),
    }
    cluster = "+cluster" if "py-distributed" in packages else "~cluster"
    places = {"tiercel-fairshare": _with_crates(tmp_path / "fairshare")}
    variants = {"py-tiercel": f" {cluster}", "tiercel-iokernel": " ~mpi"}
    content = {
        "specs": [name + variants.get(name, "") for name in stack["develop"]],
        "develop": {
            name: {**place, "path": str(places.get(name, CHECKOUT / place["path"]))}
            for name, place in stack["develop"].items()
        },
        "view": str(tmp_path / "view"),
        "packages": packages,
        "mirrors": {"sources": Path(os.environ["TIERCEL_SPACK_MIRROR"]).resolve().as_uri()},
        "concretizer": {"reuse": False, "unify": True},
    }
    environment = tmp_path / "environment"
    environment.mkdir()
    (environment / "spack.yaml").write_text(yaml.safe_dump({"spack": content}))
    spack("-e", str(environment), "concretize")
    spack("-e", str(environment), "install", "--fail-fast", offline=True)

    nodes = read_lock(environment / "spack.lock").nodes
    ours = {n.name for n in nodes if n.namespace == "tiercel" and not n.external}
    assert ours == set(stack["develop"])
    view = tmp_path / "view"
    assert (view / "lib" / "cachevol" / "libcachevol.so").is_file()
    for program in ("iokernel", "tiercel-replay", "cachevol-log"):
        assert (view / "bin" / program).is_file(), program
    # tiercel as Spack installed it, in an empty folder; what it needs is this environment's.
    said = subprocess.run(
        [view / "bin" / "tiercel", "site", "list"], cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": sysconfig.get_path("purelib")},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert said.returncode == 0, said.stderr
    assert "lassen" in said.stdout
