"""Workloads: what I/O looks like. One file for each kind, here or in the folder of a subject."""

from tiercel.study.workloads.base import Workload, workload_kinds
from tiercel.study.workloads.data import DataWorkload
from tiercel.study.workloads.metadata import MetadataWorkload

__all__ = ["DataWorkload", "MetadataWorkload", "Workload", "workload_kinds"]
