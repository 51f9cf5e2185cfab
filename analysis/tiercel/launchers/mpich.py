"""What MPICH must be told so that its processes find each other on several nodes."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from functools import cache

from tiercel.programs import program


@cache
def networks() -> frozenset[str]:
    """Return the network libraries that this machine's MPICH has (`ucx`, `ofi`), none without one."""
    path = program("mpichversion")
    if path is None:
        return frozenset()
    answer = subprocess.run([path], capture_output=True, text=True, timeout=60, check=False)
    device = next((line for line in answer.stdout.splitlines() if line.startswith("MPICH Device:")), "")
    return frozenset(device.partition("ch4:")[2].split())


def provider() -> Mapping[str, str]:
    """Keep libfabric from its provider `sockets`, which MPICH prefers to `tcp` without a fast network.

    It is given up by its makers, and loses messages when three nodes and more connect to each other at once:
    MPI_Init waits for ever (mpich issues 5437 and 6856). `tcp` does not; fast networks are not touched.
    """
    chosen = {"FI_PROVIDER", "MPIR_CVAR_OFI_USE_PROVIDER"} & set(os.environ)
    return {"FI_PROVIDER": "^sockets"} if "ofi" in networks() and not chosen else {}


def short_addresses() -> Mapping[str, str]:
    """Take libfabric rather than UCX where both are there.

    Slurm's plug-in for PMI-2 reads what MPICH tells it in pieces of 1,024 bytes, and takes the second piece
    for another command. Addresses of UCX are longer than that on machines with several networks: MPI_Init
    fails, or waits for ever (mpich issue 6924). Those of libfabric are short.
    """
    both = {"ucx", "ofi"} <= networks()
    return {"MPIR_CVAR_CH4_NETMOD": "ofi"} if both and "MPIR_CVAR_CH4_NETMOD" not in os.environ else {}
