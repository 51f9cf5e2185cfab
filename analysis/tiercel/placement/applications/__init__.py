"""Real programs that a model never saw: what a placement model is tested on (paper 003, section VII.B).
One file each."""

from tiercel.placement.applications.base import Application, Variant, applications

__all__ = ["Application", "Variant", "applications"]
