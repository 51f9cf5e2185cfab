"""The report as PDF: what Chromium prints of the page, which is what its style sheet says for paper."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from tiercel.atomic_file import drafted
from tiercel.errors import UserError
from tiercel.programs import BROWSERS

_SECONDS = 300


def browser() -> str:
    """Return the path of a Chromium; UserError where there is none."""
    for name in BROWSERS:
        if found := shutil.which(name):
            return found
    raise UserError(
        f"--pdf: needs Chromium ({', '.join(BROWSERS[:3])}) on PATH: install it, "
        "or print the page from any browser"
    )


def write_pdf(page: Path, program: str) -> Path:
    """Print a page with the browser `program` to ``report.pdf`` beside it, and return its path.

    UserError, and an earlier file stays, where the browser fails or takes more than five minutes.
    """
    target = page.with_name("report.pdf")
    with tempfile.TemporaryDirectory(prefix="tiercel-print-") as name:
        made = Path(name) / "report.pdf"
        command = [
            program, "--headless", "--disable-gpu", "--no-first-run", "--disable-background-networking",
            f"--user-data-dir={name}/profile", "--no-pdf-header-footer", "--virtual-time-budget=10000",
            f"--print-to-pdf={made}",
        ]  # fmt: skip
        if os.geteuid() == 0:  # which Chromium's sandbox refuses
            command.append("--no-sandbox")
        try:
            ended = subprocess.run(
                [*command, page.resolve().as_uri()],
                capture_output=True, text=True, errors="replace", timeout=_SECONDS, check=False,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as error:
            raise UserError(f"--pdf: {program}: {error}") from None
        if not made.is_file() or not made.stat().st_size:
            said = ended.stderr.strip().splitlines()
            raise UserError(
                f"--pdf: {program} printed nothing (code {ended.returncode}){': ' + said[-1] if said else ''}"
            )
        with drafted(target) as draft:
            shutil.copyfile(made, draft)
    return target
