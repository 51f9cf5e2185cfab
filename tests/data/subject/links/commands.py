from pathlib import Path

import typer


def register(app: typer.Typer) -> None:
    app.command("links")(count)


def count(folder: Path) -> None:
    """Count the symbolic links in a folder."""
    print(sum(path.is_symlink() for path in folder.iterdir()))
