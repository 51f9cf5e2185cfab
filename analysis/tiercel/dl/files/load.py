"""Finds and reads deep-learning workload files; overrides are ``reader.read_threads=8``, as in DLIO."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from tiercel.dl.files.model import DLWorkload
from tiercel.dl.files.parts import CURRENT_ORDER, FileOrder
from tiercel.documents import parse, read_yaml
from tiercel.errors import UserError, suggest
from tiercel.project import names, project_root, provided

FOLDER = Path("workflows") / "dl-workloads"
_CREDENTIALS = ("access_key_id", "secret_access_key")
_VARIABLES = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")


def known_workloads(root: Path | None = None) -> list[str]:
    """Return the names of the workload files of the project and of tiercel itself."""
    return sorted(path.stem for path in names(root or project_root(), f"{FOLDER}/*.yaml"))


def workload_path(name: str, root: Path | None = None) -> Path:
    """Return the file of a workload: a name, or the path of a YAML file anywhere. UserError otherwise."""
    if name.endswith((".yaml", ".yml")):
        return Path(name)
    root = root or project_root()
    known = known_workloads(root)
    if name not in known:
        raise UserError(f"no workload named {name!r} under {FOLDER}/: {suggest(name, known)}")
    return provided(root, f"{FOLDER}/{name}.yaml")


def overrides_of(words: Iterable[str]) -> dict[str, Any]:
    """Return ``{"reader.read_threads": 8}`` for ``["reader.read_threads=8"]``; DLIO's
    ``++workload.reader.read_threads=8`` is the same. UserError for anything else."""
    found: dict[str, Any] = {}
    for word in words:
        key, equals, value = word.partition("=")
        key = key.lstrip("+").removeprefix("workload.")
        if not equals or not key:
            raise UserError(f"override {word!r}: must be key=value, such as reader.read_threads=8")
        if key.partition(".")[0] == "hydra":
            raise UserError(
                f"override {word!r}: is of DLIO's own command line: leave it out (results: --output)"
            )
        try:
            found[key] = yaml.safe_load(value) if value else ""  # as Hydra has it
        except yaml.YAMLError:
            raise UserError(f"override {word!r}: {value!r} is not a YAML value") from None
    return found


def load_workload(
    name: str, overrides: Mapping[str, Any] | None = None, root: Path | None = None
) -> DLWorkload:
    """Return workload `name` (or the file of that path) with `overrides` applied.

    Raises UserError that names file and key for an unknown, wrong or contradictory one.
    """
    path = workload_path(name, root)
    content = read_yaml(path)
    # Files for DLIO's own command line wrap everything in a key `workload`.
    if set(content) == {"workload"} and isinstance(content["workload"], dict):
        content = content["workload"]
    where = str(path)
    for key, value in (overrides or {}).items():
        if any(name in f"{key} {value}" for name in _CREDENTIALS):  # overrides are kept with results
            raise UserError(f"{path}: credentials come from the environment only: {' and '.join(_VARIABLES)}")
        _put(content, key.split("."), value, f"{path}: override {key}")
        where = f"{path} with overrides"
    return parse(DLWorkload, _with_order(content), where)


#: Keys that only MLPerf Storage's DLIO has, and keys that only DLIO 2.0.0 and earlier had.
_OF_MLPERF = {
    "storage": {"storage_options", "storage_library", "post_generation_settle_seconds"},
    "dataset": {"parquet", "skip_listing", "listing_validation_interval"},
    "reader": {"write_threads"},
}
_OF_DLIO_2 = {
    "checkpoint": {"model_size", "optimization_groups", "num_layers", "layer_parameters"},
    "dataset": {"record_length", "record_length_stdev"},
}


def _with_order(content: dict[str, Any]) -> dict[str, Any]:
    """Return `content` with the order of files stated: that of the program for which the file was written."""
    name = "data_reader" if "data_reader" in content else "reader"
    reader = content.get(name) or {}
    if not isinstance(reader, dict) or reader.get("order"):
        return content
    order: FileOrder = CURRENT_ORDER
    if _has_any(content, _OF_MLPERF):
        order = "mlperf-3.0"
    elif name == "data_reader" or isinstance(content.get("model"), str) or _has_any(content, _OF_DLIO_2):
        order = "dlio-2.0"
    return {**content, name: {**reader, "order": order}}


def _has_any(content: dict[str, Any], keys: Mapping[str, set[str]]) -> bool:
    parts = ((content.get(part), names) for part, names in keys.items())
    return any(isinstance(part, dict) and names & part.keys() for part, names in parts)


def _put(content: dict[str, Any], path: list[str], value: Any, where: str) -> None:
    for part in path[:-1]:
        below = content.setdefault(part, {})
        if below is None:
            below = content[part] = {}
        if not isinstance(below, dict):
            raise UserError(f"{where}: {part} is a value, not a group of keys")
        content = below
    content[path[-1]] = value
