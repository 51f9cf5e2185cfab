"""The account that Snakemake runs under, which it asks for a name: one that has none is given one."""

from __future__ import annotations

import getpass
import os


def name_user() -> None:
    """Have this process, and those it starts, know a name of the user: else Snakemake ends in a traceback.

    A container that runs as a number (``docker run --user 1234``) has no entry in ``/etc/passwd``.
    """
    try:
        getpass.getuser()
    except (KeyError, OSError):  # OSError: since Python 3.13
        os.environ["LOGNAME"] = str(os.getuid())
