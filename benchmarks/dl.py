"""dlkernel: start-up, reading against upstream DLIO, generating against plain writing (ratios)."""

from __future__ import annotations

from tiercel.dl.bench import bench
from tiercel.dl.running import place


def main() -> int:
    """Print the ratios; return 0."""
    with place(None) as folder:
        answer = bench(folder)
    startup, made = answer["startup"], answer["generation"]
    print(f"start-up                {startup['seconds']:.2f} s (goal: below {startup['goal']:g} s)")
    print(f"generating / writing    {made['ratio']:.2f}")
    for case in answer["reading"]:
        if "samples_ratio" in case:
            said = f"samples/s {case['samples_ratio']:.2f}, CPU {case['cpu_ratio']:.2f} of upstream DLIO"
        else:
            said = f"{case['dlkernel']['samples_per_second']:.0f} samples/s, no upstream DLIO beside it"
        print(f"{case['case']:22}  {said}")
    for note in answer["notes"]:
        print(note)
    return 0
