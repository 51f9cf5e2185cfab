"""The workflow in the shape that Snakemake's catalogue asks for: others take it as a module of theirs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import yaml

from ..conftest import CHECKOUT, needs_iokernel
from .test_snakemake import STUDY

#: What `snakedeploy deploy-workflow` writes, with a path for the repository.
MODULE = """
from snakemake.utils import min_version

min_version("9.0")

module tiercel:
    snakefile: "{checkout}/workflow/Snakefile"
    config: config

use rule * from tiercel
"""


@needs_iokernel
def test_the_workflow_is_a_module_of_another_one(tmp_path: Path) -> None:
    (tmp_path / "workflow").mkdir()
    (tmp_path / "workflow" / "Snakefile").write_text(MODULE.format(checkout=CHECKOUT))
    (tmp_path / "tiny.yaml").write_text(STUDY.replace("maximum: 2", "maximum: 1"))
    command = [sys.executable, "-m", "snakemake", "--cores", "2", "--config", "site=local", "study=tiny.yaml"]
    # Snakemake's files would lie here, the jobs' in the checkout.
    elsewhere = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert elsewhere.returncode == 2
    assert f"tiercel: Snakemake runs in {tmp_path}, and the project is {CHECKOUT}" in elsewhere.stderr
    (tmp_path / "site-configs").mkdir()
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    measured = pd.read_parquet(tmp_path / "results" / "local" / "observations.parquet")
    assert set(measured["workload"]) == {"write"}
    assert (tmp_path / "results" / "local" / "report" / "index.html").is_file()


def test_the_catalogue_finds_what_it_asks_for() -> None:
    """Usage, and a page on the configuration that names each key which the rules read."""
    usage = yaml.safe_load((CHECKOUT / ".snakemake-workflow-catalog.yml").read_text())["usage"]
    assert set(usage) == {"mandatory-flags", "software-stack-deployment", "report"}
    page = (CHECKOUT / "config" / "README.md").read_text()
    rules = [CHECKOUT / "Snakefile", *(CHECKOUT / "workflows").glob("*.smk")]
    keys = {
        k for f in rules if f.name != "check.smk" for k in re.findall(r'config\.get\("(\w+)"', f.read_text())
    }
    assert {"site", "study"} <= keys
    assert set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)) == keys
