"""Engines: the programs that do the I/O. One adapter file each."""

from tiercel.engines import (
    dlio,
    dlkernel,
    fio,
    h5kernel,
    inferkernel,
    iokernel,
    ior,
    mdtest,
    replay,
    sharing,
    training,
)
from tiercel.engines.base import Engine, Installation, Measurement, Step, Task, engines
from tiercel.engines.measurement import CORE, metrics

__all__ = [
    "CORE",
    "Engine",
    "Installation",
    "Measurement",
    "Step",
    "Task",
    "dlio",
    "dlkernel",
    "engines",
    "fio",
    "h5kernel",
    "inferkernel",
    "iokernel",
    "ior",
    "mdtest",
    "metrics",
    "replay",
    "sharing",
    "training",
]
