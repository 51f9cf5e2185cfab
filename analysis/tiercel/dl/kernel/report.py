"""What a run leaves: DLIO's files, and one of our own with all that the analysis needs.

``summary.json``, ``<rank>_output.json`` and ``per_epoch_stats.json`` have DLIO's keys; ``dlkernel.json`` has
a row for each epoch, evaluation and checkpoint, over all processes.
"""

from __future__ import annotations

import json
import os
import platform
import socket
import statistics
from array import array
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from tiercel.dl.kernel.checkpoint import Saved
from tiercel.dl.kernel.comm import Comm
from tiercel.dl.kernel.epoch import Epoch
from tiercel.dl.kernel.failure import Failure
from tiercel.dl.kernel.spans import length, minus, union
from tiercel.dl.kernel.spec import Spec
from tiercel.pagecache import Residency

Row = dict[str, Any]


def epoch_row(spec: Spec, comm: Comm, epoch: Epoch, before: Residency | None, cpu: float) -> Row | None:
    """Return the row of an epoch on process 0 (None elsewhere).

    `overlapped_io`, `nonoverlapped_io` and `compute_alone` are wall-clock time of the whole job, as
    `tiercel.traces.analysis.overlap` defines them.
    """
    au, rate = epoch.utilisation(spec)
    io = union(epoch.usage.spans)
    mine = {
        "epoch": epoch, "au": au, "rate": rate, "io": io, "compute": epoch.compute, "cpu": cpu,
        "stalled": minus(io, epoch.compute), "alone": minus(epoch.compute, io), "before": before,
        "left_out": epoch.left_out(spec),
    }  # fmt: skip
    mine["epoch"] = _light(epoch)
    mine["requests"] = epoch.usage.requests
    parts = comm.to_root(mine)
    if comm.rank:
        return None
    began = min(p["epoch"]["began"] for p in parts)
    ended = max(p["epoch"]["ended"] for p in parts)
    all_io, stalled, compute, alone = (
        length(union([pair for p in parts for pair in p[name]]))
        for name in ("io", "stalled", "compute", "alone")
    )
    moved = sum(p["epoch"]["bytes"] for p in parts)
    return {
        "kind": epoch.kind, "epoch": epoch.number, "began": began, "seconds": ended - began,
        "steps": epoch.steps, "blocks": len(epoch.blocks), "short_blocks": epoch.short_blocks(spec),
        "left_out": statistics.fmean(p["left_out"] for p in parts),
        "samples": sum(p["epoch"]["samples"] for p in parts), "bytes": moved,
        "sample_bytes": sum(p["epoch"]["sample_bytes"] for p in parts),
        "reads": sum(p["epoch"]["reads"] for p in parts), "opens": sum(p["epoch"]["opens"] for p in parts),
        "au": statistics.fmean(p["au"] for p in parts), "au_of_processes": [p["au"] for p in parts],
        "samples_per_second": sum(p["rate"] for p in parts),
        "io": all_io, "overlapped_io": all_io - stalled, "nonoverlapped_io": stalled,
        "compute": compute, "compute_alone": alone,
        "app_throughput": moved / stalled if stalled > 0 else None,
        "system_throughput": moved / all_io if all_io > 0 else None,
        "cpu": sum(p["cpu"] for p in parts), **_resident([p["before"] for p in parts]),
        "retries": sum(p["epoch"]["retries"] for p in parts), **_latencies([p["requests"] for p in parts]),
    }  # fmt: skip


def _light(epoch: Epoch) -> Row:
    usage = epoch.usage
    return {
        "began": epoch.began, "ended": epoch.ended, "samples": epoch.samples, "bytes": usage.bytes,
        "sample_bytes": epoch.batch_bytes, "reads": usage.reads, "opens": usage.opens,
        "retries": usage.retries,
    }  # fmt: skip


def checkpoint_row(comm: Comm, saved: Saved) -> Row | None:
    """Return the row of a checkpoint on process 0: from the first process' start to the last one's end."""
    parts = comm.to_root(saved)
    if comm.rank:
        return None
    began = min(p.began for p in parts)
    seconds = max(p.began + p.seconds for p in parts) - began
    return {
        "kind": saved.kind, "epoch": saved.epoch, "step": saved.step, "began": began, "seconds": seconds,
        "bytes": sum(p.bytes for p in parts), **_resident([p.residency for p in parts if p.bytes]),
    }  # fmt: skip


def _resident(found: Sequence[Residency | None]) -> Row:
    known = [r for r in found if r is not None]
    if not known:
        names = ("resident_fraction", "resident_method", "resident_unknown", "memory_backed")
        return dict.fromkeys(names)
    pages, unknown = sum(r.pages for r in known), any(r.method == "none" for r in known)
    fraction = None if unknown else sum(r.resident for r in known) / pages if pages else 0.0
    return {
        "resident_fraction": fraction,
        "resident_method": "none" if unknown else max(r.method for r in known),
        "resident_unknown": next((r.unknown for r in known if r.unknown), None),
        "memory_backed": any(r.memory_backed for r in known),
    }


def _latencies(found: Sequence[array[float]]) -> Row:
    """Return what requests to object storage took, from sending to the last byte of the answer (seconds)."""
    every = sorted(seconds for part in found for seconds in part)
    if not every:
        return {}
    ranks = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999}
    named = {
        f"latency_{name}": every[min(len(every) - 1, int(rank * len(every)))] for name, rank in ranks.items()
    }
    return {
        "requests": len(every), "latency_mean": statistics.fmean(every), **named, "latency_max": every[-1],
    }  # fmt: skip


def summary(spec: Spec, comm: Comm, rows: Sequence[Row], began: float, ended: float) -> Row:
    """Return DLIO's ``summary.json`` (the keys that mean something here), and our own under ``tiercel``."""
    metric: Row = {}
    for kind, name in (("train", "train"), ("eval", "eval")):
        chosen = [r for r in rows if r["kind"] == kind]
        if not chosen:
            continue
        au, rate = [r["au"] * 100 for r in chosen], [r["samples_per_second"] for r in chosen]
        each = spec.record_length / 1024**2
        metric |= {
            f"{name}_au_percentage": au,
            f"{name}_au_mean_percentage": statistics.fmean(au),
            f"{name}_au_meet_expectation": "success" if statistics.fmean(au) >= spec.au * 100 else "fail",
            f"{name}_au_stdev_percentage": statistics.pstdev(au),
            f"{name}_throughput_samples_per_second": rate,
            f"{name}_throughput_mean_samples_per_second": statistics.fmean(rate),
            f"{name}_throughput_stdev_samples_per_second": statistics.pstdev(rate),
            f"{name}_io_mean_MB_per_second": statistics.fmean(rate) * each,
            f"{name}_io_stdev_MB_per_second": statistics.pstdev(rate) * each,
        }
    for kind, name in (("checkpoint-write", "save"), ("checkpoint-read", "load")):
        chosen = [r for r in rows if r["kind"] == kind]
        if not chosen:
            continue
        seconds = [r["seconds"] for r in chosen]
        speed = [r["bytes"] / 1024**3 / max(r["seconds"], 1e-9) for r in chosen]
        metric |= {
            f"{name}_checkpoint_io_mean_GB_per_second": statistics.fmean(speed),
            f"{name}_checkpoint_io_stdev_GB_per_second": statistics.pstdev(speed),
            f"{name}_checkpoint_duration_mean_seconds": statistics.fmean(seconds),
            f"{name}_checkpoint_duration_stdev_seconds": statistics.pstdev(seconds),
            "checkpoint_size_GB": chosen[0]["bytes"] / 1024**3,
        }
    return {
        "num_accelerators": comm.size, "num_hosts": comm.nodes, "hostname": socket.gethostname(),
        "metric": metric, "num_files_train": spec.files, "num_files_eval": spec.files_eval,
        "num_samples_per_file": spec.per_file, "host_cpu_count": os.cpu_count(),
        "host_processor_name": platform.processor(), "start": _when(began), "end": _when(ended),
        "epochs": sum(r["kind"] == "train" for r in rows),
    }  # fmt: skip


def per_epoch(rows: Sequence[Row]) -> Row:
    """Return DLIO's ``per_epoch_stats.json``."""
    found: Row = {}
    for row in rows:
        span = {
            "start": _when(row["began"]), "end": _when(row["began"] + row["seconds"]),
            "duration": f"{row['seconds']:.2f}",
        }  # fmt: skip
        epoch = found.setdefault(str(row["epoch"]), {})
        if row["kind"] == "train":
            epoch |= span
        elif row["kind"] == "eval":
            epoch["eval"] = span
        else:
            name = "save_ckpt" if row["kind"] == "checkpoint-write" else "load_ckpt"
            epoch[f"{name}{sum(k.startswith(name) for k in epoch) + 1}"] = {
                **span, "throughput": row["bytes"] / 1024**3 / max(row["seconds"], 1e-9),
            }  # fmt: skip
    return found


def write(folder: Path, name: str, content: Row) -> None:
    """Write a JSON file whole or not at all; Failure where it cannot be."""
    part = folder / f"{name}.part"
    try:
        part.write_text(json.dumps(content, indent=1))
        part.rename(folder / name)
    except OSError as error:
        raise Failure(f"{folder / name}: cannot be written: {error.strerror}") from None


def _when(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).isoformat()
