"""Engines: the programs that do the I/O. One adapter file each, here or in the folder of a subject."""

from tiercel.engines.base import Engine, Installation, Measurement, Step, Task, engines
from tiercel.engines.measurement import CORE, metrics

__all__ = ["CORE", "Engine", "Installation", "Measurement", "Step", "Task", "engines", "metrics"]
