"""Pictures of what one will see, from a small real evaluation: terminal, report, page of a trace.

Those of pages need Chromium; without it the start page has words in their place.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

from tiercel.site.mounts import mount_of, read_mounts

#: As in the tests: small, so that it takes seconds; real, so that it is what one sees.
_STUDY = """\
study: first
title: A first look
repetitions: {minimum: 5, maximum: 5}
trace: true
timeout: 60s
experiments:
  scaling:
    processes_per_node: [2]
    workloads:
      simulation: {title: Simulation output, operation: write, data_per_process: 16MiB, fsync: phase}
      analysis: {title: Analysis, operation: read, transfer_size: 64KiB, data_per_process: 16MiB, reorder: 1}
  metadata:
    processes_per_node: [2]
    workloads:
      small-files: {title: Many small files, operation: metadata, items_per_process: 300, write_bytes: 4KiB}
"""
#: The disk under the temporary folder, and memory, whatever else is mounted.
_SITE = """\
site: local
launcher: auto
processes_per_node: 2
storages:
  disk: {{type: {type}, mount: "{mount}", medium: {medium}, scratch: "{scratch}", label: "{type} {mount}"}}
  memory: {{type: tmpfs, mount: /dev/shm, medium: memory, scratch: "{memory}", label: tmpfs /dev/shm}}
"""
#: Seconds for a command: minutes on a machine with much other work.
_PATIENCE = 3600
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def make(folder: Path) -> None:
    """Measure, and draw. RuntimeError with what was said where the evaluation fails."""
    with (
        tempfile.TemporaryDirectory(prefix="tiercel-docs-") as scratch,
        tempfile.TemporaryDirectory(prefix="tiercel-docs-", dir="/dev/shm") as memory,
    ):
        project = Path(scratch) / "project"
        _tiercel(project.parent, "init", str(project), "--study", "quick")
        disk = mount_of(Path(scratch), read_mounts())
        assert disk is not None  # the root at least
        (project / "site-configs" / "local" / "site.yaml").write_text(
            _SITE.format(type=disk.type, mount=disk.point, medium=disk.medium, scratch=scratch, memory=memory)
        )
        (project / "workflows" / "studies" / "first.yaml").write_text(_STUDY)
        _tiercel(project, "evaluate", "--study", "first")
        draw(project, "first", folder)


def draw(project: Path, study: str, folder: Path) -> None:
    """Draw what a project's results look like, of a study that was evaluated on site local and traced."""
    folder.mkdir(parents=True)
    results = project / "results" / "local"
    said = _tiercel(project, "show", "--study", study)
    _terminal(folder / "terminal.svg", "tiercel evaluate", said.replace(str(project.parent), "~"))
    _page(results / "report" / "index.html", folder / "report.png", 1280, 1150)
    trace = sorted(results.glob("raw/*small-files*/trace"))[0]
    _tiercel(project, "trace", "report", str(trace), "--output", str(folder.parent / "trace.html"))
    _page(folder.parent / "trace.html", folder / "trace.png", 1280, 1000)
    (folder.parent / "trace.html").unlink()


def _tiercel(folder: Path, *words: str) -> str:
    environment = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "tiercel", *words], cwd=folder, env=environment, capture_output=True,
        text=True, timeout=_PATIENCE, check=False,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"tiercel {' '.join(words)}: {done.stderr.strip()[-2000:]}")
    return done.stdout


def _terminal(path: Path, title: str, text: str) -> None:
    """Draw what was printed as a terminal."""
    console = Console(
        record=True, width=max(60, *(len(line) for line in text.splitlines())), file=io.StringIO()
    )
    console.print(Text(text.rstrip("\n")), soft_wrap=True)
    svg = console.export_svg(title=title)
    # Its font is on the network: the site must not ask for it.
    path.write_text(re.sub(r"@font-face\s*\{.*?\}", "", svg, flags=re.DOTALL))


def _page(page: Path, path: Path, width: int, height: int) -> None:
    """Take the first screen of a page; nothing without a browser."""
    browser = next(filter(None, map(shutil.which, _BROWSERS)), None)
    if browser is None:
        return
    with tempfile.TemporaryDirectory(prefix="tiercel-browser-") as home:
        subprocess.run(
            [browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
             f"--user-data-dir={home}", f"--window-size={width},{height}", f"--screenshot={path}",
             page.as_uri()],
            env={**os.environ, "HOME": home}, capture_output=True, timeout=120, check=True,
        )  # fmt: skip
