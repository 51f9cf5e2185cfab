"""``python tools/docs/build.py OUTPUT``: the documentation as a site, with pictures and reference made anew.

The pages are the repository's own Markdown files, in their places: what links there links here. Beside them
are laid the reference (`reference`), made from the code, and the pictures (`pictures`), made from a small
real evaluation. Sphinx then builds the site; a warning (a link that leads nowhere, a page in no list) is an
error.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

import pictures
import reference
from sphinx.cmd.build import main as sphinx

ROOT = Path(__file__).resolve().parents[2]
#: Where pages lie; those of docs/ are the site, the others are read in their place.
PAGES = (
    "docs/**/*.md",
    "docs/**/*.svg",
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "native/*/README.md",
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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("output", type=Path)
    parser.add_argument("--keep-pictures", action="store_true", help="take those that are there")
    given = parser.parse_args()
    output = given.output.resolve()
    source, shots = output.parent / f"{output.name}-source", output.parent / f"{output.name}-pictures"
    if not (given.keep_pictures and shots.is_dir()):
        shutil.rmtree(shots, ignore_errors=True)
        pictures.make(shots)
    lay_out(source, shots)
    shutil.rmtree(output, ignore_errors=True)
    code = sphinx(["-b", "html", "-q", "-W", "--keep-going", "-n", "-E", "-d", str(source / ".doctrees"),
                   "-c", str(ROOT / "docs"), str(source), str(output)])  # fmt: skip
    if not code:
        print(f"the documentation: {output / 'index.html'}")
    return code


if __name__ == "__main__":
    sys.exit(main())
