"""What an artifact says of numbers that nobody measured."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tiercel.artifact.crate import Measured
from tiercel.artifact.readme import Facts, write_readme
from tiercel.site.supposition import Supposition


@pytest.mark.parametrize(
    ("site", "supposed", "command"),
    [
        ("lassen-simulated", None, "evaluate --simulate --site lassen --study"),
        (
            "lassen-1f2e3d-simulated", Supposition(site="lassen", set=["vast.fabric=none"]),
            "evaluate --simulate --site lassen --set vast.fabric=none --study",
        ),
        ("lassen", None, 'evaluate --site "${1:-local}" --study'),
    ],
)  # fmt: skip
def test_its_origin_and_how_it_is_made_again(
    tmp_path: Path, site: str, supposed: Supposition | None, command: str
) -> None:
    metadata: Any = SimpleNamespace(
        title="T", description="D", authors=[], doi="", published="2026-01-01", licence="CC-BY-4.0"
    )
    software: Any = SimpleNamespace(name="tiercel-0", commit="", modified=False)
    study: Any = SimpleNamespace(study="s")
    measured = Measured(0.0, 1.0, 1, 0, {}, {})
    write_readme(
        tmp_path, Facts(metadata, study, site, site != "lassen", measured, software, 1, False, supposed)
    )
    assert command in (tmp_path / "measure-again.sh").read_text()
    simulated = site != "lassen"
    readme = (tmp_path / "README.md").read_text()
    assert ("nothing was measured" in readme) is simulated
    assert ("what was measured, and where" in readme) is not simulated
    assert (f"site=${{1:-{site}}}" in (tmp_path / "compare.sh").read_text()) is simulated
