"""The layers of the package: imports run one way only."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

#: From the bottom to the top. A module may import from its own layer and from those before it.
LAYERS = (
    {
        "errors",
        "extras",
        "children",
        "units",
        "quantities",
        "whole",
        "locked",
        "registry",
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
    {"launchers", "schedulers", "engines", "layers"},
    {"results"},
    {"statistics", "traces"},
    {"runs"},
    {"dl", "placement", "sharing", "caching", "stack", "ceilings", "compare", "checklist"},
    {"advice", "traced", "doctor", "workflow"},
    {"report"},
    {"artifact"},
    {"notebook"},
    {"cli", "__main__"},
)


def layer_of(module: str) -> int:
    part = module.split(".")[1] if "." in module else "__init__"
    return next(number for number, names in enumerate(LAYERS) if part in names)


def test_imports_run_one_way(checkout: Path) -> None:
    package = checkout / "analysis" / "tiercel"
    wrong = []
    for path in package.rglob("*.py"):
        module = "tiercel." + ".".join(path.relative_to(package).with_suffix("").parts)
        for node in ast.walk(ast.parse(path.read_text())):
            names = []
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tiercel"):
                names = [node.module or ""]
            elif isinstance(node, ast.Import):
                names = [a.name for a in node.names if a.name.startswith("tiercel")]
            wrong += [f"{module} imports {n}" for n in names if layer_of(n) > layer_of(module)]
    assert not wrong


def test_measuring_imports_no_tables(checkout: Path) -> None:
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
