"""The layers of the package: imports run one way only."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Collection, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import tiercel
from tiercel.subjects import subjects

PACKAGE = Path(tiercel.__file__).parent
#: Subjects: folders with a file ``subject.py`` (tiercel.subjects). What they bring is of the layer that asks
#: for it; it and its helpers begin with these words. `dl` has two folders of such helpers.
SUBJECTS = tuple(path.parent.name for path in sorted(PACKAGE.glob("*/subject.py")))

#: From the bottom to the top. A module may import from its own layer and from those before it.
LAYERS = (
    {
        "errors",
        "clock",
        "columns",
        "extras",
        "interruption",
        "children",
        "units",
        "quantities",
        "atomic_file",
        "deferred",
        "locked",
        "memory",
        "registry",
        "subjects",
        "temporary",
        "documents",
        "programs",
        "project",
        "native",
        "pagecache",
        "pages",
        "plain",
        "privacy",
        "s3",
        "called",
        "__init__",
    },
    {"site"},
    {"study"},
    {"launchers", "schedulers", "engines", "layers", "ceilings", "simulation"},
    {"results"},
    {"statistics", "traces"},
    {"runs"},
    {*SUBJECTS, "stack", "compare", "checklist", "papers"},
    {"advice", "traced", "doctor", "workflow"},
    {"report"},
    {"artifact"},
    {"notebook"},
    {"cli", "__main__"},
)
#: The package's own front: `tiercel.results(...)` is looked up in the highest layer when it is called.
FRONT = ("tiercel.__init__", "tiercel.called")
BRINGS = {"workload": "study", "study_workload": "study", "files": "study", "engine": "engines",
          "upstream": "engines", "section": "report", "findings": "report", "commands": "cli"}  # fmt: skip


def layer_of(module: str) -> int:
    parts = module.split(".")
    part = parts[1] if len(parts) > 1 else "__init__"
    if part in SUBJECTS and len(parts) > 2 and module != "tiercel.dl.workload":
        part = next((layer for word, layer in BRINGS.items() if parts[2].split("_")[0] == word
                     or parts[2] == word), part)  # fmt: skip
    return next(number for number, names in enumerate(LAYERS) if part in names)


def subject_of(module: str) -> str:
    """Return the subject whose module this is; empty for the core's."""
    part = (*module.split("."), "")[1]
    return part if part in SUBJECTS else ""


def names_in(tree: ast.AST) -> list[tuple[str, bool]]:
    """Return modules of tiercel that a file imports or names in a string (True: so programs are started)."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tiercel"):
            found.append((node.module or "", False))
        elif isinstance(node, ast.Import):
            found += [(a.name, False) for a in node.names if a.name.startswith("tiercel")]
        elif isinstance(node, ast.Constant) and re.fullmatch(r"tiercel(\.\w+)+", str(node.value)):
            found.append((str(node.value), True))
    return found


def module_of(path: Path) -> str:
    return "tiercel." + ".".join(path.relative_to(PACKAGE).with_suffix("").parts)


#: Here a class still offers what modules above it do, and these name it for types: not counted yet.
TYPES_NOT_COUNTED = ("tiercel.advice.", "tiercel.traces.")


def imported(path: Path, names: Collection[str], types: bool = True) -> set[str]:
    """Return the modules among `names` that a file imports when it is loaded, when a function of it is
    called, or (`types`) for its types."""
    tree = ast.parse(path.read_text())
    for_types = {
        id(below)
        for node in ast.walk(tree)
        if not types and isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for below in ast.walk(node)
    }
    found: set[str] = set()
    for node in ast.walk(tree):
        if id(node) in for_types:
            continue
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found & set(names)


def circle(uses: Mapping[str, set[str]]) -> list[str]:
    """Return the modules of one circle; empty where there is none."""
    try:
        TopologicalSorter(uses).prepare()
    except CycleError as error:
        return list(error.args[1][:-1])
    return []


def test_imports_run_one_way() -> None:
    wrong = []
    for path in PACKAGE.rglob("*.py"):
        module = module_of(path)
        for name, started in names_in(ast.parse(path.read_text())):
            above = layer_of(name) > layer_of(module)
            # A subject names what it brings; its engine starts the subject's own programs.
            if started and module in FRONT:
                continue
            own = started and subject_of(name) != "" and subject_of(name) == subject_of(module)
            wrong += [f"{module} {'names' if started else 'imports'} {name}"] * (above and not own)
    assert not wrong


def test_no_circles() -> None:
    """Modules import one another in no circle: at the top, when a function is called, or for types."""
    names = {module_of(path): path for path in PACKAGE.rglob("*.py")}
    uses = {
        name: imported(path, names, types=not name.startswith(TYPES_NOT_COUNTED)) - {name}
        for name, path in names.items()
    }
    assert circle(uses) == []


def test_a_circle_is_seen(tmp_path: Path) -> None:
    for name, text in {"a": "def f():\n    from tiercel import b\n", "b": "import tiercel.c\n",
                       "c": "if TYPE_CHECKING:\n    from tiercel.a import A\n"}.items():  # fmt: skip
        (tmp_path / f"{name}.py").write_text(text)
    names = {f"tiercel.{path.stem}": path for path in sorted(tmp_path.glob("*.py"))}
    assert circle({name: imported(path, names, types=False) for name, path in names.items()}) == []
    assert len(circle({name: imported(path, names) for name, path in names.items()})) == 3


def test_subjects_are_what_registers_itself() -> None:
    brought = [name for subject in subjects() for names in vars(subject).values() for name in names]
    assert {name.split(".")[1] for name in brought if name.startswith("tiercel.")} == set(SUBJECTS)
    assert {"caching", "dl", "inference", "placement", "sharing"} <= set(SUBJECTS)


def test_the_core_knows_no_subject() -> None:
    """What plans, runs and tabulates is the same for all subjects; they may be removed, and others added."""
    wrong = []
    for layer in (
        "site",
        "study",
        "launchers",
        "schedulers",
        "engines",
        "layers",
        "results",
        "runs",
        "statistics",
    ):
        for path in (PACKAGE / layer).rglob("*.py"):
            named = [name for name, _ in names_in(ast.parse(path.read_text()))]
            wrong += [f"{path.name}: {name}" for name in named if subject_of(name)]
    assert not wrong


def test_measuring_imports_no_tables() -> None:
    """A batch starts once for each job: pandas and its like would cost seconds each time."""
    code = (
        "import sys, tiercel.cli.main, tiercel.runs.batch, tiercel.runs.execute, tiercel.runs.planning;"
        "print([m for m in ('pandas', 'xarray', 'matplotlib') if m in sys.modules])"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"


def test_the_command_line_starts_without_what_single_commands_need() -> None:
    """`tiercel --help` and a typing mistake answer at once: tables and models take a second to import."""
    code = (
        "import sys, tiercel.cli.main\n"
        "print(*sorted({'numpy', 'pandas', 'pyarrow', 'duckdb', 'pydantic', 'xarray', 'matplotlib', 'h5py'} "
        "& set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
