"""``tc.evaluate``: measure from a cell. The command line does it, in a process of its own."""

from __future__ import annotations

import signal
import subprocess
import sys

from tiercel.children import killed_with_parent
from tiercel.errors import UserError
from tiercel.notebook.results import Results, results
from tiercel.project import project_root
from tiercel.site import known_sites
from tiercel.study.load import known_studies


def evaluate(site: str = "local", study: str = "quick", quiet: bool = False) -> Results:
    """Measure a site with a study, as `tiercel evaluate` does, and return the results.

    What it says on its way is printed below the cell (not where `quiet`). Interrupted, it ends, and the same
    call goes on where it stopped. UserError where it fails, with its last words.
    """
    words = [sys.executable, "-m", "tiercel", "evaluate", "--site", site, "--study", study]
    said: list[str] = []
    with subprocess.Popen(
        words, cwd=project_root(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        errors="replace", preexec_fn=killed_with_parent,  # noqa: PLW1509
    ) as process:  # fmt: skip
        try:
            assert process.stdout is not None
            for line in process.stdout:
                said.append(line.rstrip())
                if not quiet:
                    print(line, end="", flush=True)
            code = process.wait()
        except BaseException:
            process.send_signal(signal.SIGINT)  # the workflow ends as a whole, and cleans up
            process.wait()
            raise
    if code:
        last = next(
            (line for line in reversed(said) if line.startswith("tiercel: ")), said[-1] if said else ""
        )
        raise UserError(last.removeprefix("tiercel: ") or f"ended with code {code}")
    return results(site, study)


def sites() -> list[str]:
    """Return the names of the sites that the project describes."""
    return known_sites(project_root())


def studies() -> list[str]:
    """Return the names of the studies that the project holds."""
    return known_studies(project_root())
