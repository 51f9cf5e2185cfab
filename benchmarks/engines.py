"""Engines against the baseline (IOR where it is installed, else iokernel): ratios, never bare times."""

from __future__ import annotations

from tiercel.project import project_root
from tiercel.runs.compare import compare_engines


def main() -> int:
    """Print the full comparison; return 0."""
    answer = compare_engines(None, quick=False, root=project_root())
    print("versions: " + ", ".join(f"{name} {version}" for name, version in answer["engines"].items()))
    heads = f"{'engine':14} {'baseline':10} {'case':36} {'metric':18}"
    print(f"{heads} {'ratio':>6} {'interval':>13} {'A/A floor':>13}")
    for pair in answer["pairs"]:
        print(
            f"{pair['engine']:14} {pair['baseline']:10} {pair['case']:36} {pair['metric']:18} "
            f"{pair['ratio']:6.2f} {_range(pair['low'], pair['high']):>13} {_range(*pair['floor']):>13} "
            f"{pair['verdict']}"
        )
    for note in answer["notes"]:
        print(note)
    return 0


def _range(low: float, high: float) -> str:
    return f"{low:.2f} to {high:.2f}"
