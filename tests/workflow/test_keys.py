"""Keys of `snakemake --config`: a misspelt one is refused, with the nearest."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tiercel.errors import UserError
from tiercel.workflow.keys import KEYS, check_keys

from ..conftest import CHECKOUT


def test_unknown_keys_are_refused_with_the_nearest(tmp_path: Path) -> None:
    check_keys(KEYS, CHECKOUT / "Snakefile")
    with pytest.raises(UserError, match=r"--config stduy: .*study"):
        check_keys(["site", "stduy"], CHECKOUT / "Snakefile")
    with pytest.raises(UserError, match="samples"):
        check_keys(["samples"], CHECKOUT / "Snakefile")
    check_keys(["samples"], tmp_path / "Snakefile")  # a key of the user's own rules
    with pytest.raises(UserError, match="stduy"):
        check_keys(["stduy"], tmp_path / "Snakefile")


def test_they_are_the_keys_that_the_rules_read() -> None:
    rules = [path for path in (CHECKOUT / "workflows").glob("*.smk") if path.name != "check.smk"]
    read = {key for path in rules for key in re.findall(r'config\.get\("(\w+)"', path.read_text())}
    assert read == set(KEYS)


def test_snakemake_plans_nothing_for_a_misspelt_key() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "snakemake", "--profile", "local", "-n", "--config", "stduy=paper"],
        cwd=CHECKOUT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert [line for line in done.stderr.splitlines() if "stduy" in line and "study" in line]
