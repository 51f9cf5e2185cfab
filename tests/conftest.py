"""Fixtures that several folders share: a small project of its own, with storages in a temporary folder."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent

import pytest
from hypothesis import settings

from tiercel.programs import program
from tiercel.site.mounts import mount_of, read_mounts

from . import order, processor_time, skipped, tiers
from .objects import gateway
from .single_run import equipment, new_run, stack
from .small_result import measured

__all__ = ["equipment", "gateway", "measured", "new_run", "stack"]

# Nothing is timed in a test, by Hypothesis neither: its 200 ms fail on a machine that does other things too.
settings.register_profile("tiercel", deadline=None)
settings.load_profile("tiercel")

# A shell that starts the tests in the background has SIGINT ignored, and every child would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Iterator[None]:
    """End with what was skipped and which command brings it, below pytest's own list."""
    yield
    reports = terminalreporter.stats.get("skipped", [])
    if list_of_skipped := os.environ.get("TIERCEL_SKIPPED"):  # for another user to run them (.ci/run)
        Path(list_of_skipped).write_text("".join(f"{report.nodeid}\n" for report in reports))
    for line in skipped.lines(report.longrepr[2] for report in reports if isinstance(report.longrepr, tuple)):
        terminalreporter.write_line(line)
    ended = [r for kind in ("passed", "failed") for r in terminalreporter.stats.get(kind, [])]
    for line in processor_time.lines(ended):
        terminalreporter.write_line(line)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    yield from processor_time.measured(item)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    yield from processor_time.measured(item)


@pytest.hookimpl(tryfirst=True)  # before pytest takes out what -m leaves out
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    tiers.mark(items)
    items[:] = order.spread(items)


CHECKOUT = Path(__file__).resolve().parent.parent

#: The sites that come with tiercel. A user's own, beside them, are the user's: no test asks about those.
SHIPPED = (
    "aurora", "delta", "frontera", "frontier", "lassen", "local", "lumi", "perlmutter", "polaris", "quartz",
    "ruby", "sierra", "slurm-virtual", "stampede3", "summit", "theta", "thetagpu", "tuolumne", "vista",
    "wombat",
)  # fmt: skip
#: Of these, machines in operation: described from their centres' pages. They have no stack of Spack.
IN_OPERATION = (
    "aurora", "delta", "frontier", "lumi", "perlmutter", "polaris", "stampede3", "tuolumne", "vista",
)  # fmt: skip

TINY = """
study: tiny
title: A study of seconds
repetitions: {minimum: 2, maximum: 3, target: 0.5}
timeout: 60s
experiments:
  scaling:
    processes_per_node: [1, 2]
    workloads:
      sequential-write: {operation: write, transfer_size: 64KiB, data_per_process: 1MiB, fsync: phase}
      cold-read: {operation: read, transfer_size: 64KiB, data_per_process: 1MiB, reorder: 1}
  metadata:
    processes_per_node: [2]
    workloads:
      small-files: {operation: metadata, items_per_process: 20, write_bytes: 4KiB, read_bytes: 4KiB}
"""


#: Where it does not matter what is measured, only that it is: one run.
ONE = """
study: tiny
title: One workload
repetitions: {minimum: 1, maximum: 1}
twins: false
experiments:
  scaling:
    processes_per_node: [1]
    workloads:
      write: {operation: write, transfer_size: 64KiB, data_per_process: 1MiB}
"""


@pytest.fixture
def checkout() -> Path:
    return CHECKOUT


class Project:
    """A folder that is a project of its own: the checkout's workflow, its own site and studies."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.results = root / "results" / "local"
        if (root / "Snakefile").exists():
            return
        (root / "workflows" / "studies").mkdir(parents=True)
        (root / "site-configs" / "local").mkdir(parents=True)
        (root / "Snakefile").symlink_to(CHECKOUT / "Snakefile")
        for rules in (CHECKOUT / "workflows").glob("*.smk"):
            (root / "workflows" / rules.name).symlink_to(rules)
        profile = CHECKOUT / "site-configs" / "local" / "config.yaml"
        (root / "site-configs" / "local" / "config.yaml").symlink_to(profile)
        (root / "local").symlink_to("site-configs/local")
        self.study("tiny", TINY)

    def study(self, name: str, text: str) -> None:
        (self.root / "workflows" / "studies" / f"{name}.yaml").write_text(dedent(text))

    def site(self, text: str) -> None:
        (self.root / "site-configs" / "local" / "site.yaml").write_text(dedent(text))

    def tiercel(self, *arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        """Run the command line in this project."""
        return subprocess.run(
            [sys.executable, "-m", "tiercel", *arguments],
            cwd=self.root, capture_output=True, text=True, timeout=300, check=False,
            env={**os.environ, **(env or {})},
        )  # fmt: skip


@pytest.fixture
def new_project(tmp_path: Path) -> Callable[..., Project]:
    """Return a function that makes a project whose one storage, `main`, is a folder of the test's.

    Its runs go without MPI unless a test asks for it: MPI's processes wait for each other by looking again
    and again, and a run takes ten times the processor time, more the busier the machine is.
    """

    def make(scratch_name: str = "scratch", launcher: str = "fork") -> Project:
        root = tmp_path / "project"
        root.mkdir()
        project = Project(root)
        scratch = tmp_path / scratch_name
        scratch.mkdir()
        mount = mount_of(scratch, read_mounts())
        assert mount is not None
        quoted = str(scratch).replace("$", "$$").replace('"', '\\"').replace("\n", "\\n")
        project.site(f"""
            site: local
            launcher: {launcher}
            processes_per_node: 4
            storages:
              main:
                type: {mount.type}
                mount: "{mount.point}"
                medium: {mount.medium}
                scratch: "{quoted}"
            """)
        return project

    return make


@pytest.fixture
def project(new_project: Callable[[str], Project]) -> Project:
    return new_project("scratch")


needs_iokernel = pytest.mark.skipif(
    program("iokernel") is None, reason="iokernel is not built (make setup builds it)"
)
