"""Site and study as files that stand alone.

What a report says of the site must not hang on what is mounted where it is made, and a study names workload
files of its project.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import yaml

from tiercel.privacy import private
from tiercel.results.raw import RawRun
from tiercel.site.model import Site, Storage
from tiercel.study.model import Study


def as_measured(site: Site, runs: Sequence[RawRun]) -> Site:
    """Return `site` with the storages of the runs, each as its latest run saw it, and nothing to discover."""
    latest = sorted(runs, key=lambda raw: raw.record["started"])
    storages = {
        raw.run["storage"]["name"]: Storage.model_validate(
            {key: value for key, value in raw.run["storage"].items() if key != "name"}
        )
        for raw in latest
    }
    memory = next((m for raw in reversed(latest) if (m := raw.context.get("site_memory_bytes"))), None)
    update = {"storages": storages, "discover": False, "memory_per_node": memory or site.memory_per_node}
    return site.model_copy(update=update)


def write_study(study: Study, path: Path) -> None:
    """Write a study file with the content of all workload files that it names, without what is private."""
    content = private().plain(study.model_dump(mode="json", exclude_defaults=True))
    said = "# As it was read, workload files included; as it was written: as-written/\n"
    text = yaml.safe_dump(content, sort_keys=False, allow_unicode=True)
    path.write_text(said + text, encoding="utf-8")


def write_site(site: Site, path: Path) -> None:
    """Write a site file, without what is private."""
    content = private().plain(site.model_dump(mode="json", exclude_defaults=True))
    # Sizes are whole numbers of bytes here; `site`, the name, comes first.
    path.write_text(yaml.safe_dump(content, sort_keys=False, allow_unicode=True), encoding="utf-8")
