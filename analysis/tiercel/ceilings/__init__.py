"""Ceilings: what a storage's topology allows, stage by stage, and which stage is the narrowest."""

from tiercel.ceilings.ceiling import Ceiling, Operation, ceiling_of

__all__ = ["Ceiling", "Operation", "ceiling_of"]
