"""The one start of the launcher before a study: what its end says of it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tiercel.errors import UserError
from tiercel.runs.planning import Project, check_launcher


def _project(folder: Path, deaths: int) -> Project:
    """A project whose launcher ends of SIGPIPE so many times, then starts what it is given."""
    script = folder / "launcher"
    script.write_text(f"#!/bin/sh\necho >>'{folder}/starts'\n"
                      f"[ $(wc -l <'{folder}/starts') -gt {deaths} ] || kill -PIPE $$\n"
                      "exec \"$@\"\n")  # fmt: skip
    script.chmod(0o755)
    launcher: Any = SimpleNamespace(name="mpiexec", mpi=True, command=lambda argv, *_: [str(script), *argv])
    site = SimpleNamespace(site="here", processes_per_node=2)
    return cast(
        Project, SimpleNamespace(launcher=launcher, installations={}, plan=SimpleNamespace(site=site))
    )


@pytest.mark.parametrize("deaths", [0, 1, 4])
def test_a_launcher_that_ends_of_a_signal_is_started_again(tmp_path: Path, deaths: int) -> None:
    check_launcher(_project(tmp_path, deaths))
    assert (tmp_path / "starts").read_text().count("\n") == deaths + 1


def test_one_that_always_does_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="launcher mpiexec: does not start: exit code -13; mend it, or"):
        check_launcher(_project(tmp_path, 1000))
    assert (tmp_path / "starts").read_text().count("\n") == 5
