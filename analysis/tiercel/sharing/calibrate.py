"""Fits the simulator to measured throughputs of few servers, and predicts many."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import Field

from tiercel.atomic_file import read_text
from tiercel.documents import Document, parse, read_yaml
from tiercel.errors import UserError
from tiercel.quantities import Size
from tiercel.sharing.scenario import LinkModel, Operation, ServerModel
from tiercel.sharing.simulator import run_simulator


class Measurement(Document):
    """A run of one job whose processes write (or read) a file each, all of them to their ends."""

    servers: int = Field(default=1, ge=1)
    #: Compute nodes; as many as servers where it is not said.
    nodes: int | None = Field(default=None, ge=1)
    processes_per_node: int = Field(default=8, ge=1)
    transfer_size: Size = 1 << 20
    operation: Operation = "write"
    data_per_process: Size = 1_000_000_000
    #: All bytes over the time of the last process, bytes per second.
    throughput: float = Field(gt=0)


class Measurements(Document):
    """The file behind ``tiercel share calibrate``."""

    server: ServerModel = ServerModel()
    link: LinkModel = LinkModel()
    measurements: list[Measurement] = Field(min_length=1)


#: ThemisIO, section 5.2: as many nodes as servers, eight IOR processes each, 1 GB files in 1 MB blocks.
#: The published points on 1 and 8 servers, and the one that a model fitted to them has to predict.
PAPER = Measurements(
    measurements=[Measurement(servers=1, throughput=11.7e9), Measurement(servers=8, throughput=77.1e9)]
)
PAPER_128 = 1017e9


def read_measurements(path: Path) -> Measurements:
    """Return the measurements in a YAML or JSON file, or in what ``tiercel share bench --json`` printed.

    UserError that names file and key.
    """
    if path.suffix != ".json":
        return parse(Measurements, read_yaml(path), str(path))
    try:
        content = json.loads(read_text(path))
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"{path}: cannot be read: {error}") from None
    if isinstance(content, dict) and "solo" in content:
        content = _of_bench(content, path)
    return parse(Measurements, content, str(path))


def _of_bench(found: dict[str, Any], path: Path) -> dict[str, Any]:
    """Return what a bench measured as :class:`Measurements`: several servers, and one server's own cost.

    A request of 4 KiB takes its overhead and hardly anything else. A rate is of reads and writes together.
    """
    if not found.get("scaling"):
        raise UserError(
            f"{path}: this bench measured one server only: run it with, say, "
            "--servers 1 --servers 2 --servers 4 --servers 8 --rate 100MiB"
        )
    server = {"workers": found.get("parallel", 1), "duplex": False}
    overhead = found["solo"].get("write_4k")
    return {
        "server": server | ({"overhead": overhead} if overhead else {}),
        "measurements": found["scaling"],
    }


def calibrate(known: Measurements, predict: list[int], repeats: int = 20) -> dict[str, Any]:
    """Return the fitted model and what it says for `predict` servers, all marked as simulated.

    ``server``, ``link`` and ``pieces`` are the model; ``fitted`` names what the measurements decided;
    ``error`` is the root of the mean squared relative error; ``measurements`` and ``predictions`` have
    ``simulated`` with ``least`` and ``greatest`` of the repeats, and ``plausible``, the range over all
    numbers of pieces that the measurements leave possible, in bytes per second.
    """
    like = known.measurements[0]
    bandwidth = known.server.bandwidth
    if "bandwidth" not in known.server.model_fields_set:
        # The search goes from an eighth of where it begins to eight times as much.
        bandwidth = max(m.throughput / m.servers for m in known.measurements)
    document = {
        "server": {
            "bandwidth": bandwidth,
            "duplex": known.server.duplex,
            "overhead_s": known.server.overhead,
            "jitter": known.server.jitter,
            "workers": known.server.workers,
            "queues": known.server.queues,
        },
        "link": {"bandwidth": known.link.bandwidth, "latency_s": known.link.latency},
        "repeats": repeats,
        "measurements": [_setup(m) | {"throughput": m.throughput} for m in known.measurements],
        "predict": [_setup(like) | {"servers": servers, "nodes": None} for servers in predict],
    }
    return run_simulator("calibrate", document)


def _setup(measurement: Measurement) -> dict[str, Any]:
    return {
        "servers": measurement.servers,
        "nodes": measurement.nodes,
        "processes_per_node": measurement.processes_per_node,
        "size": measurement.transfer_size,
        "operation": measurement.operation,
        "bytes_per_process": measurement.data_per_process,
    }
