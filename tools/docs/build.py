"""``python tools/docs/build.py OUTPUT``: the documentation as a site, with pictures and reference made anew.

The pages are the repository's own Markdown files, in their places: what links there links here. Beside them
are laid the reference (`reference`), made from the code, and the pictures (`pictures`), made from a small
real evaluation. Sphinx then builds the site; a warning (a link that leads nowhere, a page in no list) is an
error.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
from functools import partial
from pathlib import Path

import pictures
import reference
from sphinx.cmd.build import main as sphinx

ROOT = Path(__file__).resolve().parents[2]
#: Where pages lie; those of docs/ are the site, the others are read in their place.
PAGES = (
    "docs/**/*.md",
    "docs/**/*.svg",
    "docs/**/*.png",
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "native/*/README.md",
)
_PICTURE = re.compile(
    r"^```\{image\} pictures/(?P<name>\S+)\n:alt: (?P<words>.+)\n(?::.*\n)*```$", re.MULTILINE
)
#: What pages link to beside pages.
FILES = ("LICENSE", "CITATION.cff")


def lay_out(source: Path, picture_folder: Path) -> None:
    """Copy the pages to `source`, as they lie in the repository, and make what is made from code."""
    shutil.rmtree(source, ignore_errors=True)
    for page in {found for pattern in PAGES for found in ROOT.glob(pattern)} | {
        ROOT / name for name in FILES
    }:
        target = source / page.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(page, target)
    reference.write(source / "docs" / "reference")
    shutil.copytree(picture_folder, source / "docs" / "pictures", dirs_exist_ok=True)
    start = source / "docs" / "index.md"
    start.write_text(_PICTURE.sub(partial(_words, picture_folder), start.read_text()))


def _words(there: Path, shown: re.Match[str]) -> str:
    """Return a picture as it is written in a page, or its words where nothing could draw it."""
    return shown[0] if (there / shown["name"]).is_file() else f"*(A picture: {shown['words']}.)*"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("output", type=Path)
    parser.add_argument("--pictures", type=Path, help="take these, instead of measuring anew")
    given = parser.parse_args()
    output = given.output.resolve()
    source, shots = output.parent / f"{output.name}-source", output.parent / f"{output.name}-pictures"
    if not given.pictures:
        shutil.rmtree(shots, ignore_errors=True)
        pictures.make(shots)
    lay_out(source, given.pictures or shots)
    shutil.rmtree(output, ignore_errors=True)
    code = sphinx(["-b", "html", "-q", "-W", "--keep-going", "-n", "-E", "-d", str(source / ".doctrees"),
                   "-c", str(ROOT / "docs"), str(source), str(output)])  # fmt: skip
    if not code:
        print(f"the documentation: {output / 'index.html'}")
    return code


if __name__ == "__main__":
    sys.exit(main())
