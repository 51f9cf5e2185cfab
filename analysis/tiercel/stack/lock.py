"""What a spack.lock says: nodes, targets, externals; and whether all of them are for the site's machine."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tiercel.documents import read_yaml
from tiercel.errors import UserError


@dataclass(frozen=True)
class Node:
    """One package of a lock."""

    name: str
    version: str
    os: str
    target: str
    hash: str
    namespace: str
    external: str | None
    """Its prefix on the site, for what the site provides."""
    provides: frozenset[str]
    """Virtual packages (mpi, c...) that it provides to another node of the lock."""


@dataclass(frozen=True)
class Lock:
    nodes: tuple[Node, ...]
    roots: tuple[str, ...]
    spack: str
    root_hashes: frozenset[str]

    @property
    def externals(self) -> list[Node]:
        return sorted((n for n in self.nodes if n.external), key=lambda n: n.name)

    @property
    def to_build(self) -> list[Node]:
        return [n for n in self.nodes if not n.external]

    def provider(self, virtual: str) -> Node | None:
        """Return the node that provides `virtual`."""
        return next((n for n in self.nodes if virtual in n.provides), None)

    def foreign(self, os: str, target: str) -> list[Node]:
        """Return the nodes that are not for this operating system and target."""
        return [n for n in self.nodes if (n.os, n.target) != (os, target)]

    def summary(self) -> dict[str, Any]:
        """Return what one wants to know of a lock at a glance."""
        named = sorted(self.nodes, key=lambda n: n.name)
        return {
            "spack": self.spack,
            "nodes": len(self.nodes),
            "to_build": len(self.to_build),
            "externals": {n.name: {"version": n.version, "prefix": n.external} for n in self.externals},
            "architectures": dict(Counter(f"{n.os}-{n.target}" for n in self.nodes)),
            "roots": list(self.roots),
            "versions": {n.name: n.version for n in named if n.hash in self.root_hashes},
        }

    _root_hashes: frozenset[str] = frozenset()


def read_lock(path: Path) -> Lock:
    """Return the lock in `path`; UserError where there is none or it is damaged."""
    try:
        content = json.loads(path.read_text())
        specs: dict[str, dict[str, Any]] = content["concrete_specs"]
        provides: dict[str, set[str]] = {}
        for spec in specs.values():
            for edge in spec.get("dependencies", []):
                provides.setdefault(edge["hash"], set()).update(edge["parameters"]["virtuals"])
        nodes = tuple(_node(key, spec, frozenset(provides.get(key, ()))) for key, spec in specs.items())
        roots = content["roots"]
        return Lock(
            nodes,
            tuple(sorted(str(r["spec"]) for r in roots)),
            str(content.get("spack", {}).get("version", "unknown")),
            frozenset(str(r["hash"]) for r in roots),
        )
    except FileNotFoundError:
        raise UserError(f"{path}: not there yet: tiercel stack concretize") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{path}: not a lock file of Spack 1 ({type(error).__name__}: {error})") from None


def _node(key: str, spec: dict[str, Any], provides: frozenset[str]) -> Node:
    arch = spec["arch"]
    target = arch["target"]
    external = spec.get("external")
    return Node(
        name=spec["name"],
        version=str(spec["version"]),
        os=arch["platform_os"],
        target=target if isinstance(target, str) else target["name"],
        hash=key,
        namespace=spec.get("namespace", ""),
        external=external.get("path") if external else None,
        provides=provides,
    )


def required_architecture(scope: Path) -> tuple[str, str] | None:
    """Return (os, target) that the site's packages.yaml requires of every node; None for this machine."""
    path = scope / "packages.yaml"
    if not path.exists():
        return None
    required = ((read_yaml(path).get("packages") or {}).get("all") or {}).get("require", [])
    text = " ".join([required] if isinstance(required, str) else map(str, required))
    os, target = (re.search(rf"\b{word}=(\S+)", text) for word in ("os", "target"))
    if not (os and target):
        return None
    return os[1].strip("'\""), target[1].strip("'\"")
