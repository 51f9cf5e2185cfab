"""Engines: the programs that do the I/O. One adapter file each."""

from tiercel.engines import fio, iokernel, ior, mdtest
from tiercel.engines.base import Engine, Installation, Measurement, Step, Task, engines

__all__ = [
    "Engine",
    "Installation",
    "Measurement",
    "Step",
    "Task",
    "engines",
    "fio",
    "iokernel",
    "ior",
    "mdtest",
]
