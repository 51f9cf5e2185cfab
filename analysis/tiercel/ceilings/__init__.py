"""Ceilings: what a storage's topology allows, stage by stage, and which stage is the narrowest."""

from tiercel.ceilings.ceiling import Ceiling, Limit, Operation, ceiling_for, ceiling_of, missing
from tiercel.ceilings.demand import Demand, Reuse

__all__ = ["Ceiling", "Demand", "Limit", "Operation", "Reuse", "ceiling_for", "ceiling_of", "missing"]
