"""``python -m tiercel.launchers.mpicc`` prints the MPI compiler to build native parts with, or nothing.

It is the one that belongs to the mpiexec that will start them.
"""

from __future__ import annotations

from tiercel.programs import program

if __name__ == "__main__":
    print(program("mpicc") or "")
