"""MPI programs in a Slurm job: what is refused, and which storages are left out."""

from __future__ import annotations

import pytest

from tiercel.advice.advise import Options, _placements, command_of
from tiercel.advice.workset import Folder
from tiercel.errors import UserError
from tiercel.site.model import Site, Storage

SITE = Site(
    site="s",
    launcher="srun",
    storages={
        "shared": Storage(type="lustre", mount="/s", scratch="/s/x", medium="network", shared=True),
        "local": Storage(type="ext4", mount="/l", scratch="/l/x", medium="disk"),
    },
)


def test_outside_a_job_each_run_would_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    with pytest.raises(UserError, match=r"no Slurm job.*sbatch --nodes=2 --ntasks=8"):
        command_of(["true"], SITE, Options(processes=8, nodes=2))


@pytest.mark.parametrize(
    ("node", "processes", "nodes", "why"),
    [
        ("n1", 4, 1, "is no node of the job"),  # salloc: the job's nodes are elsewhere
        ("n1", 4, 2, "each of the 2 nodes"),
        ("", None, 1, ""),  # no MPI: the program runs here
    ],
)
def test_node_local_storage(
    node: str, processes: int | None, nodes: int, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SLURMD_NODENAME", raising=False)
    folders = [Folder("/s/work", "shared", 1)]
    [local] = _placements(SITE, folders, Options(processes=processes, nodes=nodes))[1:]
    assert why in local.why_not
    monkeypatch.setenv("SLURMD_NODENAME", node)
    [local] = _placements(SITE, folders, Options(processes=processes, nodes=nodes))[1:]
    assert ("no node of the job" in local.why_not) is False
