"""The native parts in layers: no circle of files that include or use one another; each uses what is below."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

#: A file, and the files that it uses, each with what it uses of it.
Uses = dict[str, dict[str, set[str]]]

#: Folders with C, and how names begin that other files use. In a library that stands in front of libc, the
#: others are libc's.
C_PARTS = {
    "iokernel/src": "",
    "cachevol/src": "cv_",
    "cachevol/throttle": "",
    "replay/src": "",
    "dlkernel/src": "",
    "tracescan/src": "",
    "fairshare/client/src": "fs_",
    "fairshare/load/src": "",
}
RUST_PARTS = ("fairshare/policy/src", "fairshare/wire/src", "fairshare/server/src", "fairshare/sim/src")


#: From the bottom to the top. A file may use those of its own layer and of those before it.
LAYERS = {
    "iokernel/src": {
        "ground": "clock.h comm.h failure.* histogram.* json.* order.* pattern.* size.* timeseries.* usage.* "
        "version.h",
        "processes": "job.* layout.* collect.* comm_*.c filesystem.* residency.*",
        "interfaces": "backend*.* hdf5_library.* transfer.* options_*.*",
        "document": "document.*",
        "personalities": "behind.* data.* phase.* reorder.* result.* space.* md*.* steps*.*",
        "program": "main.c",
    },
    "cachevol/src": {
        "ground": "api.* checksum.* config.* guard.* store.* thread.* rates.h stats.* reasons.*",
        "log": "log.* logscan.* marker.* superblock.* left.* tool.c",
        "staging": "stage*.*",
        "copies": "copy*.* evict.* evident.* fill.* relay.* session.*",
        "objects": "object.* info.*",
        "neighbours": "mpi_api.* mpi_peers.* mpi_parts.h mpi_directory.* mpi_transfer.* mpi_window.*",
        "driver": "reader.* driver_common.* driver.*",
        "parallel files": "mpi_open.* mpi_driver.* mpi_areas.* mpi_writer.* mpi_methods.* mpi_begin.c "
        "mpi_write.*",
        "connector": "vol_*.* operations.* connector.c",
    },
    "fairshare/client/src": {
        "declarations": "*.h",
        "transport": "copy.c segment.c session.c ways.c",
        "transfers": "bulk.c",
        "calls": "calls.c",
    },
    "fairshare/server/src": {
        "ground": "accounts errno safe cgroup config copy fault jobs slurm log sent_away seat patience area "
        "creds epoll budget rights writes members apart",
        "wire": "segment session connection outcome",
        "files": "tree mapping handles locks caches identity data door vouchers",
        "scheduler": "queue charges hot arrivals strangers",
        "state": "server",
        "operations": "call ops ops::* control status",
        "front ends": "server::* inside fuse fuse::* lanes link metrics peers",
        "program": "worker start lib",
    },
}


def without_text(source: str) -> str:
    """Return C or Rust without comments and what stands in quotes."""
    source = re.sub(r"/\*.*?\*/", " ", source, flags=re.S)
    source = re.sub(r"//[^\n]*", "", source)
    return re.sub(r'"(\\.|[^"\\\n])*"', '""', source)


FUNCTION = re.compile(
    r"^(?!static\b|#|typedef\b|extern\b|return\b)[A-Za-z_][\w \t*\n]*?[\s*](\w+)\s*\([^;{}]*?\)[^;{}()]*\{",
    re.M,
)
VARIABLE = re.compile(
    r"^(?!static\b|#|typedef\b|extern\b|return\b)(?:[A-Za-z_]\w*[ \t*]+)+(\w+)(?:\[[^\]]*\])*\s*(?:=|;)", re.M
)


def c_uses(folder: Path, prefix: str = "") -> Uses:
    """Return who includes whom, and whose functions and variables a source uses that another one defines."""
    sources = {path.name: path.read_text() for path in sorted(folder.rglob("*.[ch]"))}
    code = {name: without_text(text) for name, text in sources.items()}
    home: dict[str, set[str]] = {}
    for name in (name for name in sources if name.endswith(".c")):
        for pattern in (FUNCTION, VARIABLE):
            for symbol in pattern.findall(code[name]):
                if symbol.startswith(prefix) and symbol != "main":
                    home.setdefault(symbol, set()).add(name)
    uses: Uses = {name: {} for name in sources}
    for name, text in sources.items():
        for included in re.findall(r'^\s*#\s*include\s+"(?:[^"]*/)?([^"/]+)"', text, flags=re.M):
            if included in sources and included != name:
                uses[name].setdefault(included, set()).add("#include")
        for word in set(re.findall(r"\b[A-Za-z_]\w*\b", code[name])) if name.endswith(".c") else ():
            for other in home.get(word, set()) if name not in home.get(word, set()) else ():
                uses[name].setdefault(other, set()).add(word)
    return uses


def imported(text: str) -> Iterator[list[str]]:
    """Yield the paths of a `use`, each as its names: ``a::{b, c::d}`` gives two."""
    text = re.sub(r"\s+", " ", text).strip()
    group = re.fullmatch(r"((?:\w+::)*)\{(.*)\}", text)
    if group is None:
        yield text.split(" as ")[0].strip().split("::")
        return
    before, depth, part = group[1].split("::")[:-1], 0, ""
    for letter in group[2] + ",":
        if letter == "," and depth == 0:
            for path in imported(part) if part.strip() else ():
                yield before + path
            part = ""
        else:
            depth += (letter == "{") - (letter == "}")
            part += letter


def rust_uses(folder: Path) -> Uses:
    """Return which module names which other one of its crate: `crate::`, `super::`, `self::`, a child's name.

    That a module has children (`mod a;`) is no use of them.
    """
    modules: dict[tuple[str, ...], str] = {}
    for source in sorted(folder.rglob("*.rs")):
        names = source.relative_to(folder).with_suffix("").parts
        program = names[0] == "bin" or (names == ("main",) and (folder / "lib.rs").exists())
        if not program:  # a program beside a library is a crate of its own
            code = without_text(source.read_text()).split("#[cfg(test)]")[0]
            modules[names[:-1] if names[-1] in ("mod", "lib", "main") else names] = code
    uses: Uses = {"::".join(module): {} for module in modules}
    for module, code in modules.items():
        children = {other[-1] for other in modules if other[:-1] == module and other}
        paths = [path for text in re.findall(r"\buse\s+([^;]+);", code) for path in imported(text)]
        rest = re.sub(r"\buse\s+[^;]+;", "", code)
        paths += [path.split("::") for path in re.findall(r"\b((?:crate|super|self)(?:::\w+)+)", rest)]
        paths += [
            ["self", *found] for found in re.findall(r"(?<![:\w])(\w+)::(\w+)", rest) if found[0] in children
        ]
        for whole in paths:
            at, path = list(module), list(whole)
            if path[0] in ("crate", "self"):
                at = at if path.pop(0) == "self" else []
            elif path[0] not in ("super", *children):
                continue
            while path and path[0] == "super":
                at, path = at[:-1], path[1:]
            at += path
            while at and tuple(at) not in modules:
                at.pop()
            if tuple(at) != module:
                uses["::".join(module)].setdefault("::".join(at), set()).add("::".join(whole))
    return uses


def circle(uses: Mapping[str, Mapping[str, set[str]]]) -> list[str]:
    """Return one circle, in words; empty where there is none."""
    try:
        TopologicalSorter({name: set(others) for name, others in uses.items()}).prepare()
    except CycleError as error:
        names = list(reversed(error.args[1]))  # graphlib lists predecessors first
        return [
            f"{a or 'lib'} uses {b or 'lib'}: {', '.join(sorted(uses[a][b])[:5])}"
            for a, b in itertools.pairwise(names)
        ]
    return []


@pytest.mark.parametrize("part", C_PARTS)
def test_no_circles_in_c(checkout: Path, part: str) -> None:
    assert circle(c_uses(checkout / "native" / part, C_PARTS[part])) == []


@pytest.mark.parametrize("part", RUST_PARTS)
def test_no_circles_in_rust(checkout: Path, part: str) -> None:
    assert circle(rust_uses(checkout / "native" / part)) == []


def layer_of(name: str, layers: Mapping[str, str]) -> int:
    fitting = [
        n for n, names in enumerate(layers.values()) if any(fnmatchcase(name, one) for one in names.split())
    ]
    assert len(fitting) == 1, f"{name} is of {len(fitting)} layers"
    return fitting[0]


@pytest.mark.parametrize("part", LAYERS)
def test_layers_use_what_is_below(checkout: Path, part: str) -> None:
    folder, layers = checkout / "native" / part, LAYERS[part]
    uses = rust_uses(folder) if part in RUST_PARTS else c_uses(folder, C_PARTS[part])
    place = {name: layer_of(name or "lib", layers) for name in uses}
    assert [
        f"{name} uses {other}: {', '.join(sorted(what))}"
        for name, others in uses.items()
        for other, what in others.items()
        if place[other] > place[name]
    ] == []


def test_circles_are_seen(tmp_path: Path) -> None:
    """The test above could not fail if the reading of sources missed what it looks for."""
    (tmp_path / "a.h").write_text("int a_first(void);\n")
    (tmp_path / "a.c").write_text('#include "a.h"\nint a_first(void)\n{\n    return b_second();\n}\n')
    (tmp_path / "b.c").write_text("/* not a_first() */\nint b_second(void)\n{\n    return 1; // a_first\n}\n")
    assert circle(c_uses(tmp_path)) == []
    (tmp_path / "b.c").write_text("int b_second(void)\n{\n    return a_first();\n}\n")
    assert sorted(circle(c_uses(tmp_path))) == ["a.c uses b.c: b_second", "b.c uses a.c: a_first"]
    assert circle(c_uses(tmp_path, "c_")) == []
    rust = tmp_path / "rust"
    (rust / "deep").mkdir(parents=True)
    (rust / "lib.rs").write_text("mod one;\nmod deep;\npub use deep::Thing;\n")
    (rust / "one.rs").write_text("use crate::{deep::Thing, deep::{inner}};\n")
    (rust / "deep" / "mod.rs").write_text("mod inner;\npub struct Thing;\n")
    (rust / "deep" / "inner.rs").write_text(
        "// use crate::one;\n#[cfg(test)]\nmod tests { use crate::one; }\n"
    )
    assert circle(rust_uses(rust)) == []
    (rust / "deep" / "inner.rs").write_text("fn f() { crate::one::g() }\n")
    assert sorted(circle(rust_uses(rust))) == [
        "deep::inner uses one: crate::one::g",
        "one uses deep::inner: crate::deep::inner",
    ]
    (rust / "deep" / "inner.rs").write_text("use super::Thing;\n")
    (rust / "one.rs").write_text("use crate::Thing;\n")
    assert circle(rust_uses(rust)) == []
    (rust / "deep" / "mod.rs").write_text("mod inner;\npub use inner::Thing;\n")
    assert sorted(circle(rust_uses(rust)))[0].startswith("deep uses deep::inner")
