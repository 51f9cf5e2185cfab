"""``tiercel compare``: two or more evaluations side by side."""
# Tables and figures take seconds to import, and a measuring job needs neither.
# ruff: noqa: PLC0415

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tiercel.cli.console import print_json
from tiercel.cli.options import Json
from tiercel.cli.panels import UNDERSTAND
from tiercel.errors import UserError, one_line
from tiercel.project import project_root

if TYPE_CHECKING:
    from tiercel.compare.answer import Answer
    from tiercel.compare.spelling import Spelling

#: Exit codes of --fail-on: something was found; nothing was found, and some rows could not have shown it. 2
#: says that nothing could be compared, 3 is a crash (CONTRIBUTING.md).
FOUND, NO_POWER = 1, 4
#: What a gate must be able to see: a halving.
DETECT = "50%"

_WANTED = ("slower", "faster", "different")

#: Longest name of a page's folder, in letters.
_LONGEST = 120

_PERCENT = re.compile(r"(\d+(?:\.\d+)?) ?%")


def register(app: typer.Typer) -> None:
    app.command(rich_help_panel=UNDERSTAND)(compare)


def compare(
    sides: Annotated[
        list[str],
        typer.Argument(
            metavar="SIDE...",
            help="A site, a folder with results or an archive of one; @DATE, @DATE..DATE, +LAYER, "
            ":study=NAME, :storage=NAME narrow it. The first is the baseline.",
            show_default=False,
        ),
    ],
    study: Annotated[str | None, typer.Option("--study", help="Compare only this study.")] = None,
    layer: Annotated[
        list[str] | None,
        typer.Option("--layer", help="With one side: compare these layers (none, fairshare, ...)."),
    ] = None,
    storage: Annotated[
        list[str] | None,
        typer.Option(
            "--storage", help="With one side: compare these storages. With several: use only these."
        ),
    ] = None,
    storage_map: Annotated[
        list[str] | None,
        typer.Option("--storage-map", help="BASELINE=OTHER: match storages with different names (repeat)."),
    ] = None,
    margin: Annotated[
        str, typer.Option("--margin", help="Treat ratios within this distance of 1 as noise: 5%.")
    ] = "0%",
    fail_on: Annotated[
        str | None,
        typer.Option(
            "--fail-on",
            metavar="slower|faster|different",
            help="Exit with 1 when something is, beyond noise, or (but for faster) is lost; with 4 when "
            "nothing is, but a row could not have shown a change of --detect or has no partner.",
        ),
    ] = None,
    detect: Annotated[
        str,
        typer.Option("--detect", help="With --fail-on: the slowdown that every row must detect."),
    ] = DETECT,
    baseline: Annotated[
        list[str] | None,
        typer.Option("--baseline", help="A further session of the first side: sessions vary (repeat)."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Folder of the page. Default: results/comparisons/..."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Compare two or more evaluations: sites, dates, studies, layers, storages or archives.

    Example: tiercel compare local@2026-11-01 local --fail-on slower
    """
    from tiercel.report.comparison.records import document
    from tiercel.report.comparison.sentences import summary
    from tiercel.report.comparison.terminal import print_answer

    if fail_on not in (None, *_WANTED):
        raise UserError(f"--fail-on {fail_on}: write {', '.join(_WANTED[:-1])} or {_WANTED[-1]}")
    from tiercel.compare.ask import compared, sides_of

    root = project_root()
    spellings = sides_of(sides, root, study, _words(layer), _words(storage))
    answer = compared(spellings, root, _mapped(storage_map or []), _share(margin), baseline or [])
    if not answer.rows and not any(pair.failed for pair in answer.pairs):
        from tiercel.compare.answer import reasons

        alone = [each for pair in answer.pairs for each in pair.alone]
        counts = "; ".join(f"{n} {reason}" for reason, n in reasons(alone))
        hint = "; use --storage-map to match storages with different names" if "storage" in counts else ""
        raise UserError(f"{'; '.join(summary(answer))}: of {len(alone)} numbers {counts}{hint}")
    gate = _gate(answer, fail_on, detect)
    page = _page(answer, output, root / "results" / "comparisons" / _folder_name(spellings, root))
    if as_json:
        print_json({**document(answer), "gate": gate, "page": str(page) if page else None})
    else:
        print_answer(answer, page)
    if gate and gate["answer"] == "fail":
        raise typer.Exit(FOUND)
    if gate and gate["answer"] == "no power":
        print(f"tiercel: {one_line(gate['reason'])}", file=sys.stderr)
        raise typer.Exit(NO_POWER)


def _gate(answer: Answer, fail_on: str | None, detect: str) -> dict[str, str] | None:
    """Return the answer of the gate; None without one."""
    from tiercel.compare.gate import gate

    if fail_on is None:
        return None
    least = 1 - _share(detect, "--detect")
    if not 0 < least < 1:
        raise UserError(f"--detect {detect}: write a share between 0% and 100%, as 50%")
    if 1 / (1 + answer.margin) <= least:
        raise UserError(f"--detect {detect}: --margin takes such a slowdown for noise; give a smaller margin")
    return gate(answer, fail_on, least)


def _page(answer: Answer, wanted: Path | None, default: Path) -> Path | None:
    """Write the page and return where it lies.

    A folder that the user named must take it. The answer needs no page: where the default folder cannot be
    written, that is said, and None returned.
    """
    from tiercel.report.comparison.page import build_comparison

    folder = wanted or default
    try:
        return build_comparison(answer, folder)
    except (OSError, ValueError) as error:
        said = f"{folder}: the page cannot be written: {getattr(error, 'strerror', '') or error}"
        if wanted:
            raise UserError(said) from None
        print(f"tiercel: {one_line(said)}; --output names another folder", file=sys.stderr)
        return None


def _words(values: Sequence[str] | None) -> list[str]:
    """Return the words of an option that is repeated, or holds several with commas between them."""
    return [word for value in values or () for word in value.split(",") if word]


def _mapped(pairs: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for pair in _words(pairs):
        one, sign, two = pair.partition("=")
        if not (one and sign and two):
            raise UserError(f"--storage-map {pair}: write BASELINE=OTHER, as gpfs=lustre")
        if one in found or two in found.values():
            raise UserError(f"--storage-map {pair}: {one if one in found else two} is mapped twice")
        found[one] = two
    return found


def _share(text: str, option: str = "--margin") -> float:
    match = _PERCENT.fullmatch(text)
    if not match or float(match[1]) >= 1000:
        raise UserError(f"{option} {text}: write a share of the baseline, as 5%")
    return float(match[1]) / 100


def _folder_name(spellings: Sequence[Spelling], root: Path) -> str:
    """Return a name for the page's folder: the sides, in letters that any file system takes.

    Where these do not say all of what is compared (two folders of one name, a name cut short), a word of
    their identity follows, so that no two comparisons share a folder.
    """
    from tiercel.compare.ask import identity
    from tiercel.compare.side import names_of

    names = [re.sub(r"[^\w.@+=-]+", "-", name, flags=re.ASCII).strip("-.") for name in names_of(spellings)]
    plain = "--".join(names)
    sites = all((root / "results" / s.where).is_dir() for s in spellings)
    if sites and plain == "--".join(s.text for s in spellings) and len(plain) <= _LONGEST:
        return plain
    known = repr([identity(s, root) for s in spellings]).encode(errors="surrogateescape")
    return f"{plain[:_LONGEST] or 'sides'}-{hashlib.sha256(known).hexdigest()[:8]}"
