"""Engines: the programs that do the I/O. One adapter file each."""

from tiercel.engines import iokernel
from tiercel.engines.base import Engine, Installation, Measurement, Step, Task, engines

__all__ = ["Engine", "Installation", "Measurement", "Step", "Task", "engines", "iokernel"]
