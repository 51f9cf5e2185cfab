"""Makes tables, dataset, figures and report from raw files: the same bytes from the same files.

    python -m tiercel.artifact.remake RESULTS SITE.yaml STUDY.yaml

It runs in a process of its own: on one processor, because a sum of fractions hangs on how it is shared out;
without the user's settings of matplotlib; with caches that are gone afterwards.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np

from tiercel.artifact.layout import TRACE, TRACE_TABLES
from tiercel.children import killed_with_parent
from tiercel.documents import parse, read_yaml
from tiercel.errors import UserError
from tiercel.report.build import build
from tiercel.results.study_tables import make_tables
from tiercel.results.validity import FLAGS
from tiercel.site.model import Site
from tiercel.study.model import Study
from tiercel.traced import collect as collect_traces
from tiercel.traced import load_traces
from tiercel.traced.dataset import write_dataset as write_trace_dataset


def remake(results: Path, site: Path, study: Path, caches: Path) -> list[str]:
    """Make everything in the folder `results` from what is staged there, in another process.

    `caches` is a folder for what need not be kept. Returns what there is to mind. UserError where something
    is damaged, or cannot be made.
    """
    environment = plain_environment(caches)
    (caches / "matplotlib").mkdir(parents=True, exist_ok=True)
    words = [sys.executable, "-m", "tiercel.artifact.remake", *map(str, (results, site, study))]
    done = subprocess.run(
        words, env=environment, cwd=caches, capture_output=True, text=True, check=False,
        preexec_fn=killed_with_parent,
    )  # fmt: skip
    if done.returncode:
        said = done.stderr.strip().splitlines() or [f"ended with code {done.returncode}"]
        reason = said[-1].removeprefix("tiercel: ")
        if "No space left" in done.stderr:
            raise UserError(f"{results}: No space left on device")
        raise UserError(f"{study.stem}: the figures cannot be made from the raw files: {reason}")
    return [line for line in done.stdout.splitlines() if line]


def plain_environment(caches: Path) -> dict[str, str]:
    """Return the environment in which the same bytes come out on every processor of a kind.

    Newer processors add up eight numbers at once where older ones add up two, which changes last digits: the
    libraries are held to what all have. The user's settings of matplotlib do not count.
    """
    own = ("MPL", "MATPLOTLIBRC", "OMP_", "MKL_", "OPENBLAS_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(own)}
    simd = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
    off = [*kept.get("NPY_DISABLE_CPU_FEATURES", "").replace(",", " ").split(), *simd]
    if platform.machine() == "x86_64":
        kept["OPENBLAS_CORETYPE"] = "Nehalem"
        kept["GLIBC_TUNABLES"] = "glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4"
    return kept | {
        "NPY_DISABLE_CPU_FEATURES": " ".join(dict.fromkeys(off)), "ARROW_USER_SIMD_LEVEL": "NONE",
        "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8",
        "TZ": "UTC", "XDG_CACHE_HOME": str(caches), "TMPDIR": str(caches),
        "MPLCONFIGDIR": str(caches / "matplotlib"),
    }  # fmt: skip


def make_all(results: Path, site: Site, study: Study) -> list[str]:
    """Make everything in this process; return what there is to mind."""
    said = []
    if why := make_tables(results, study):
        said.append(f"dataset.nc is without the points of sweeps: {why}")
    traces = results / "raw"
    if any(traces.glob(f"*/{TRACE}")):
        collect_traces(results)
    if (results / TRACE_TABLES[0]).exists():
        table = load_traces(results, study.study)
        write_trace_dataset(table, results / "traces.nc")
        lost = table[table["reason"] != ""]
        said += [f"{run}: {why}" for run, why in zip(lost["run"], lost["reason"], strict=True)]
    build(results, site, study, FLAGS)
    return said


def main(words: list[str]) -> int:
    results, site, study = map(Path, words)
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    try:
        made = make_all(
            results,
            parse(Site, read_yaml(site), str(site), dumped=True),
            parse(Study, read_yaml(study), str(study)),
        )
    except UserError as error:
        print(f"tiercel: {error}", file=sys.stderr)
        return 2
    print("\n".join(made))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
