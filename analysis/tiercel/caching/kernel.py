"""The HDF5 programs of the experiments, as a user would write them with h5py; nothing of them knows a cache.

``python -m tiercel.caching.kernel JSON``: the object says what to do, by the keys of `checkpoint`, `stream`
and `turns`; their answer is printed as JSON. With `processes`, as many do so at once, and all answers go to
the file `answer`. Times are in seconds, sizes in bytes; compute is emulated by sleeping, as in paper 002
(section IV.A).
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from tiercel import pagecache
from tiercel.children import killed_with_parent


def checkpoint(
    folder: str, steps: int, datasets: int, dataset_bytes: int, computes: list[float], flush: bool = False
) -> list[dict[str, float]]:
    """Write checkpoints to one shared file: `datasets` in a group for each step, then compute; for each of
    `computes` (seconds in all) anew.

    Answers for each: compute, total and observed (total without compute, from create to close) seconds, and
    bytes.
    """
    data = np.random.default_rng(1).integers(0, 255, dataset_bytes, dtype="u1").view("<f4")
    answers = []
    for number, compute in enumerate(computes):
        path = Path(folder) / f"checkpoint-{number}.h5"
        slept = 0.0
        begun = time.perf_counter()
        with h5py.File(path, "w") as file:
            for step in range(steps):
                group = file.create_group(f"step{step}")
                for which in range(datasets):
                    group.create_dataset(f"property{which}", data=data)
                if flush:
                    file.flush()
                asleep = time.perf_counter()
                if compute:
                    time.sleep(compute / steps)
                slept += time.perf_counter() - asleep
        total = time.perf_counter() - begun
        # What the file holds of it, not what was asked for.
        moved = min(steps * datasets * data.nbytes, path.stat().st_size)
        answers.append({"compute": compute, "total": total, "observed": total - slept, "bytes": moved})
        path.unlink()
    return answers


def make_samples(path: Path, samples: int, sample_bytes: int) -> None:
    """Write the file that `stream` reads: one dataset, one sample a row, whose content tells its number."""
    with h5py.File(path, "w") as file:
        dataset = file.create_dataset("samples", (samples, sample_bytes), "u1")
        for start in range(0, samples, 64):
            rows = np.arange(start, min(start + 64, samples))
            dataset[rows[0] : rows[-1] + 1] = np.repeat(
                (rows % 251).astype("u1")[:, None], sample_bytes, axis=1
            )


def epochs_of(
    file: h5py.File, batch: int, shuffled: bool, seed: int, compute: float = 0.0
) -> Iterator[dict[str, float]]:
    """Read all samples of a file once an epoch, for ever, `batch` rows a call, in order or in a new random
    order of batches; `compute` seconds of sleep after each batch.

    Yields for each epoch: seconds (without compute), cpu (seconds of all threads of this process, user and
    system) and bytes. Raises ValueError for a wrong sample.
    """
    rng = np.random.default_rng(seed)
    dataset = file["samples"]
    count = len(dataset)
    starts = np.arange(0, count, batch)
    while True:
        order = rng.permutation(starts) if shuffled else starts
        spent, moved, cpu = 0.0, 0, time.process_time()
        for start in order:
            stop = min(start + batch, count)
            begun = time.perf_counter()
            rows = dataset[start:stop]
            spent += time.perf_counter() - begun
            moved += rows.nbytes
            if not np.array_equal(rows[:, 0], np.arange(start, stop) % 251):
                raise ValueError(f"{file.filename}: samples {start} to {stop} are wrong")
            if compute:
                time.sleep(compute)
        yield {"seconds": spent, "cpu": time.process_time() - cpu, "bytes": float(moved)}


def stream(
    path: str, epochs: int, batch: int, shuffled: bool, seed: int, compute: float = 0.0
) -> list[dict[str, float]]:
    """Return the answers for so many epochs (see `epochs_of`)."""
    with h5py.File(path, "r") as file:
        return list(islice(epochs_of(file, batch, shuffled, seed, compute), epochs))


def turns(path: str, batch: int, shuffled: bool, seed: int) -> None:
    """Open the file and say so with an empty line; then, for each number that standard input has on a line,
    read so many epochs and print their answers. So several programs can take turns.
    """
    with h5py.File(path, "r") as file:
        epochs = epochs_of(file, batch, shuffled, seed)
        print(flush=True)
        for line in sys.stdin:
            print(json.dumps(list(islice(epochs, int(line)))), flush=True)


def evict(path: Path) -> None:
    """Drop a file from the page cache, and wait until the connector takes it for unchanged (two seconds)."""
    pagecache.evict([path])
    time.sleep(max(0.0, path.stat().st_mtime + 2.2 - time.time()))


def several(spec: dict[str, Any], processes: int) -> list[Any]:
    """Run the same kernel in `processes` processes at once; returns their answers.

    Each has its own folder for checkpoints, and its own order of reads.
    """
    children = []
    for number in range(processes):
        own = dict(spec)
        if own["kernel"] == "checkpoint":
            own["folder"] = str(Path(own["folder"]) / f"process{number}")
            Path(own["folder"]).mkdir()
        else:
            own["seed"] += number
        words = [sys.executable, "-m", "tiercel.caching.kernel", json.dumps(own)]
        children.append(
            subprocess.Popen(words, stdout=subprocess.PIPE, text=True, preexec_fn=killed_with_parent)  # noqa: PLW1509
        )
    answers = [child.communicate()[0] for child in children]
    if any(child.returncode for child in children):
        raise SystemExit(f"a process failed: exit codes {[child.returncode for child in children]}")
    return [json.loads(answer) for answer in answers]


def main() -> None:
    spec: dict[str, Any] = json.loads(sys.argv[1])
    answer, processes = spec.pop("answer", None), spec.pop("processes", None)
    if spec["kernel"] == "make":
        make_samples(Path(spec["path"]), spec["samples"], spec["sample_bytes"])
        return
    if processes is not None:
        if spec["kernel"] == "stream":
            evict(Path(spec["path"]))
        Path(answer).write_text(json.dumps(several(spec, processes)))
        return
    kernel = spec.pop("kernel")
    if kernel == "turns":
        turns(**spec)
    elif kernel == "checkpoint":
        print(json.dumps(checkpoint(**spec)))
    else:
        print(json.dumps(stream(**spec)))


if __name__ == "__main__":
    main()
