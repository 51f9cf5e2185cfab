"""spack.yaml and the sites' scopes, without a Spack: complete, consistent, and naming packages that exist."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tiercel.stack.lock import required_architecture
from tiercel.stack.parts import PARTS, site_parts

from ..conftest import IN_OPERATION, SHIPPED
from .test_recipes import known, package_of

CHECKOUT = Path(__file__).resolve().parents[2]
SITES = [site for site in SHIPPED if site not in IN_OPERATION]
#: Sites that are a machine of their own; `local` is whatever machine this is.
NAMED = [site for site in SITES if site != "local"]

#: From the papers' machines: Lassen, Sierra and Summit are POWER9, Theta Knights Landing, ThetaGPU AMD Rome
#: (Zen 2), Wombat A64FX, Ruby and Frontera Cascade Lake, Quartz Broadwell.
TARGETS = {
    "lassen": "power9le", "sierra": "power9le", "summit": "power9le", "ruby": "cascadelake",
    "quartz": "broadwell",
    "wombat": "a64fx", "theta": "mic_knl", "thetagpu": "zen2", "frontera": "cascadelake",
    "slurm-virtual": "x86_64",
}  # fmt: skip


def scope(site: str) -> dict[str, dict[str, object]]:
    path = CHECKOUT / "site-configs" / site / "spack" / "packages.yaml"
    return yaml.safe_load(path.read_text())["packages"]


def stack() -> dict[str, object]:
    return yaml.safe_load((CHECKOUT / "spack.yaml").read_text())["spack"]


def test_every_paper_machine_is_there() -> None:
    assert set(TARGETS) <= set(NAMED)


@pytest.mark.parametrize("site", NAMED)
def test_every_node_is_for_the_site(site: str) -> None:
    architecture = required_architecture(CHECKOUT / "site-configs" / site / "spack")
    assert architecture is not None
    if site in TARGETS:
        assert architecture[1] == TARGETS[site]


@pytest.mark.parametrize("site", NAMED)
def test_compiler_mpi_scheduler_and_python_are_the_sites(site: str) -> None:
    packages = scope(site)
    (mpi,) = packages["all"]["providers"]["mpi"]  # type: ignore[index,call-overload]
    wanted = {"gcc", "python", mpi}
    # Cobalt is not in Spack, and nothing links to it.
    if site not in ("theta", "thetagpu"):
        wanted |= {"lsf"} if site in ("lassen", "sierra", "summit") else {"slurm"}
    architecture = required_architecture(CHECKOUT / "site-configs" / site / "spack")
    assert architecture is not None
    for name in wanted:
        (external,) = packages[name]["externals"]  # type: ignore[misc]
        assert package_of(external["spec"]) == name
        assert f"os={architecture[0]} target={architecture[1]}" in external["spec"]
        assert external["prefix"].startswith("/")
    compilers = packages["gcc"]["externals"][0]["extra_attributes"]["compilers"]  # type: ignore[index]
    assert set(compilers) == {"c", "cxx", "fortran"}
    # MPI and compiler are never built: they belong to the network and the operating system.
    assert not any(packages[name]["buildable"] for name in ("gcc", "mpi", mpi))


@pytest.mark.parametrize("site", SITES)
def test_scopes_name_packages_that_exist(site: str) -> None:
    assert set(scope(site)) - {"all"} <= known()


@pytest.mark.parametrize("site", SITES)
def test_parts_are_valid(site: str) -> None:
    parts = site_parts(CHECKOUT, site).parts
    # DFTracer 2 has wheels for x86_64 alone.
    if TARGETS.get(site) in ("power9le", "a64fx"):
        assert "tracing" not in parts


def test_every_spec_exists_and_every_part_has_specs() -> None:
    content = stack()
    seen: dict[str, list[str]] = {}
    for definition in content["definitions"]:  # type: ignore[attr-defined]
        for name, specs in definition.items():
            if name != "when":
                seen.setdefault(name, []).extend(specs)
    assert set(seen) == set(PARTS) == {s.removeprefix("$") for s in content["specs"]}  # type: ignore[attr-defined]
    for name, specs in seen.items():
        assert specs, f"part {name} is empty"
        assert {package_of(spec) for spec in specs} <= known()


def test_ior_4_is_pinned() -> None:
    """Spack prefers 3.3.0, whose options and numbers differ."""
    text = (CHECKOUT / "spack.yaml").read_text()
    assert "- ior@4.0.0" in text
