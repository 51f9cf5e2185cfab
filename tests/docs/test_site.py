"""The site is built without a warning, links lead somewhere, samples name what there is."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer.main

from tiercel.cli.main import app

from ..conftest import CHECKOUT, Project
from .pages import blocks, commands

TOOLS = CHECKOUT / "tools" / "docs"
PAGES = sorted([*CHECKOUT.glob("docs/**/*.md"), *CHECKOUT.glob("*.md"), *CHECKOUT.glob("native/*/README.md")])
_BROWSER = shutil.which("chromium")


@pytest.fixture(scope="module")
def site(measured: Project, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the built site, with pictures of the small result that several tests share."""
    pytest.importorskip("sphinx")
    folder = tmp_path_factory.mktemp("docs")
    draw = (
        "import sys; from pathlib import Path; import pictures;"
        "pictures.draw(Path(sys.argv[1]), 'small', Path(sys.argv[2]))"
    )
    pictures, output = folder / "pictures", folder / "site"
    subprocess.run([sys.executable, "-c", draw, measured.root, pictures], cwd=TOOLS, check=True, timeout=300)
    build = [sys.executable, TOOLS / "build.py", output, "--pictures", pictures]
    done = subprocess.run(build, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0 and "WARNING" not in done.stderr, done.stderr
    return output


def test_the_site_is_whole_and_asks_nothing_of_a_network(site: Path) -> None:
    start = (site / "docs" / "index.html").read_text()
    assert "A picture:" not in start or _BROWSER is None
    assert "url=docs/index.html" in (site / "index.html").read_text()
    loads = re.compile(r'<(?:script|link|img|iframe)[^>]*(?:src|href)="(?:https?:)?//')
    assert not [page for page in site.rglob("*.html") if loads.search(page.read_text())]
    # Of each kind one that only the code knows: an option, a key, a metric, a flag, a rule, an engine.
    for page, words in (
        ("commands", "--retry-failed"),
        ("study-keys", "queue_depth"),
        ("site-keys", "fill_limit"),
        ("columns", "resident_fraction"),
        ("flags", "cache-not-cold"),
        ("findings", "open-storm"),
        ("parts", "iokernel"),
    ):
        assert words in (site / "docs" / "reference" / f"{page}.html").read_text(), page


@pytest.mark.skipif(_BROWSER is None, reason="chromium is not installed")
def test_the_search_works_from_a_file(site: Path, tmp_path: Path) -> None:
    asked = f"{(site / 'search.html').as_uri()}?q=inodes-remembered"
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=10000", "--dump-dom"]
    command = [str(_BROWSER), *options, f"--user-data-dir={tmp_path}", asked]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert re.search(r"found (one page|\d+ pages) matching", done.stdout), done.stdout[-2000:]
    assert "docs/reference/flags.html" in done.stdout


def test_the_reference_says_what_everything_means() -> None:
    """A key, option, column or rule without a word of explanation is not documented."""
    code = "import reference, json; print(json.dumps(reference.pages()))"
    done = subprocess.run([sys.executable, "-c", code], cwd=TOOLS, capture_output=True, text=True, check=True)
    rows = [row for page in json.loads(done.stdout).values() for row in page.splitlines() if row[:3] == "| `"]
    assert len(rows) > 600 and not [row for row in rows if row.endswith("|  |")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(CHECKOUT)))
def test_links_in_the_repository_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text)
    missing = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert not missing


@cache
def _whole_command() -> Any:
    return typer.main.get_command(app)


def _samples() -> Iterator[tuple[Path, list[str]]]:
    """Yield each command line of tiercel in the pages' blocks of shell."""
    for page in PAGES:
        for _, language, text in blocks(page):
            if language == "console":
                lines = [command.words for command in commands(text)]
            elif language in ("sh", "bash"):
                lines = text.replace("\\\n", " ").splitlines()
            else:
                continue
            for line in lines:
                words = line.strip().removeprefix(".venv/bin/")
                if words.startswith("tiercel "):
                    yield page, shlex.split(words.partition(" | ")[0], comments=True)


@pytest.mark.parametrize(
    ("page", "words"), list(_samples()), ids=lambda v: v.name if isinstance(v, Path) else " ".join(v)
)
def test_samples_name_commands_and_options_that_there_are(page: Path, words: list[str]) -> None:
    command = _whole_command()
    rest = words[1:]
    while rest and rest[0] in getattr(command, "commands", {}):
        command = command.commands[rest.pop(0)]
    named = rest and not rest[0].startswith("-")
    assert not (getattr(command, "commands", {}) and named), f"{page.name}: no command {rest[0]}"
    known = {name for p in command.params for name in (*p.opts, *p.secondary_opts)} | {"--help", "-h"}
    own = rest[: rest.index("--")] if "--" in rest else rest
    unknown = [
        w for w in own if w.startswith("-") and w not in ("-", "...") and w.partition("=")[0] not in known
    ]
    assert not unknown, f"{page.name}: {shlex.join(words)}"
