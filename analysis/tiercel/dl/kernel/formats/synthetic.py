"""Samples made in memory: no file at all (applications that generate their own training data)."""

from __future__ import annotations

from tiercel.dl.kernel.files import FileSpec
from tiercel.dl.kernel.formats.base import Format, Opened, Whole, register
from tiercel.dl.kernel.io import IO
from tiercel.dl.kernel.spec import Spec


@register("synthetic")
class Synthetic(Format):
    def write(self, path: str, file: FileSpec, spec: Spec) -> None:
        raise NotImplementedError("nothing is written for synthetic samples")

    def open(self, path: str, spec: Spec, calls: IO) -> Opened:
        return Whole(path, spec.per_file, 0)

    def describe(self, path: str, spec: Spec, calls: IO) -> tuple[int | None, int | None]:
        return spec.per_file, 0
