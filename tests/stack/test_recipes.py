"""Every recipe, without a Spack: it parses, is checksummed, and names only packages that exist."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest
import yaml

CHECKOUT = Path(__file__).resolve().parents[2]
RECIPES = sorted((CHECKOUT / "recipes" / "packages").glob("*/package.py"))

#: The packages that this checkout itself is the source of.
OWN = {
    "py-tiercel",
    "tiercel-cachevol",
    "tiercel-dlkernel",
    "tiercel-fairshare",
    "tiercel-iokernel",
    "tiercel-replay",
    "tiercel-tracescan",
}


@cache
def upstream() -> frozenset[str]:
    lines = (CHECKOUT / "tests" / "data" / "stack" / "upstream-packages.txt").read_text().splitlines()
    return frozenset(line for line in lines if line and not line.startswith("#"))


def known() -> set[str]:
    return {path.parent.name for path in RECIPES} | upstream()


def package_of(spec: str) -> str:
    return re.match(r"[a-z0-9-]+", spec)[0]  # type: ignore[index]


def calls(path: Path, *names: str) -> list[ast.Call]:
    return [
        node
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names
    ]


def arguments(call: ast.Call) -> dict[str | None, object]:
    return {k.arg: k.value.value for k in call.keywords if isinstance(k.value, ast.Constant)}


def by_name(paths: list[Path]) -> list[object]:
    return [pytest.param(path, id=path.parent.name) for path in paths]


@pytest.mark.parametrize("path", by_name(RECIPES))
def test_class_is_named_as_spack_expects(path: Path) -> None:
    expected = "".join(part.capitalize() for part in path.parent.name.split("-"))
    classes = [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.ClassDef)]
    assert [c.name for c in classes] == [expected]
    assert ast.get_docstring(classes[0])


@pytest.mark.parametrize("path", by_name(RECIPES))
def test_sources_are_pinned(path: Path) -> None:
    versions = calls(path, "version")
    assert versions
    for version in versions:
        given = arguments(version)
        if path.parent.name in OWN:
            assert given == {"branch": "main"}
        elif "tag" in given:
            assert re.fullmatch(r"[0-9a-f]{40}", str(given["commit"]))
        else:
            assert re.fullmatch(r"[0-9a-f]{64}", str(given["sha256"]))


@pytest.mark.parametrize("path", by_name(RECIPES))
def test_dependencies_exist(path: Path) -> None:
    named = {package_of(call.args[0].value) for call in calls(path, "depends_on")}  # type: ignore[attr-defined]
    assert named <= known(), (
        f"not in recipes/ nor in tests/data/stack/upstream-packages.txt: {named - known()}"
    )


@pytest.mark.parametrize("path", by_name(RECIPES))
def test_variants_that_conditions_name_are_declared(path: Path) -> None:
    """``when="+pytorch"`` of a variant that is not there would switch its dependency off, silently."""
    declared = {call.args[0].value for call in calls(path, "variant")}  # type: ignore[attr-defined]
    for call in calls(path, "depends_on", "when"):
        condition = arguments(call).get("when") or (
            call.args[0].value if call.func.id == "when" else ""  # type: ignore[attr-defined]
        )
        used = re.findall(r"[+~]([a-z]+)|\b([a-z]+)=", str(condition))
        names = {plain or valued for plain, valued in used}
        assert names <= declared


def test_every_dependency_of_the_package_is_in_its_recipe() -> None:
    """pyproject.toml and recipes/packages/py-tiercel say the same, but for what the site brings."""
    import tomllib  # noqa: PLC0415

    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    wanted = {re.match(r"[A-Za-z0-9-]+", d)[0].lower() for d in project["dependencies"]}  # type: ignore[index]
    wanted -= {"mpich"}  # MPI is the site's
    wanted -= {"dftracer"}  # the part `tracing`: not for every target
    recipe = CHECKOUT / "recipes" / "packages" / "py-tiercel" / "package.py"
    named = {package_of(c.args[0].value).removeprefix("py-") for c in calls(recipe, "depends_on")}  # type: ignore[attr-defined]
    assert wanted <= named, f"missing in the recipe: {wanted - named}"


def test_every_native_part_has_a_recipe_and_is_built_from_the_checkout() -> None:
    native = {path.parent.name for path in (CHECKOUT / "native").glob("*/Makefile")}
    develop = yaml.safe_load((CHECKOUT / "spack.yaml").read_text())["spack"]["develop"]
    assert {f"tiercel-{name}" for name in native} | {"py-tiercel"} == set(develop) == OWN
    for name in native:
        assert develop[f"tiercel-{name}"]["path"] == f"native/{name}"
