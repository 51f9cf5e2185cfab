"""Ceilings: what a storage's topology allows, stage by stage, and which stage is the narrowest."""

from tiercel.ceilings.ceiling import Ceiling, Demand, Limit, Operation, ceiling_for, ceiling_of, missing

__all__ = ["Ceiling", "Demand", "Limit", "Operation", "ceiling_for", "ceiling_of", "missing"]
