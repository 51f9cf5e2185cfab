"""Processor time of metadata operations: on a folder, through bindfs, and through fairshare's mount.

``python -m benchmarks.sharing_metadata``: interleaved rounds, the time of this process and of the daemon.
Needs bindfs, FUSE and the fairshare layer.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tiercel.errors import UserError
from tiercel.layers.fairshare.programs import required_programs
from tiercel.layers.fairshare.server import memory_folder, running_server

ROUNDS = 5
COUNT = 3000
#: Longer than the kernel keeps attributes for bindfs, seconds.
FORGOTTEN_S = 1.2


def stat_again(folder: Path) -> int:
    """Ask for the attributes of one file again and again."""
    path = folder / "same"
    path.touch()
    for _ in range(COUNT):
        path.stat()
    return COUNT


def stat_anew(folder: Path) -> int:
    """Ask for the attributes of files that the kernel does not know."""
    time.sleep(FORGOTTEN_S)
    for number in range(COUNT):
        (folder / "many" / str(number)).stat()
    return COUNT


def open_close(folder: Path) -> int:
    """Open and close a file."""
    for _ in range(COUNT):
        os.close(os.open(folder / "same", os.O_RDONLY))
    return COUNT


def create_unlink(folder: Path) -> int:
    """Create a file, and remove it."""
    for _ in range(COUNT):
        os.close(os.open(folder / "new", os.O_CREAT | os.O_WRONLY, 0o644))
        (folder / "new").unlink()
    return COUNT


def mkdir_rmdir(folder: Path) -> int:
    """Make a folder, and remove it."""
    for _ in range(COUNT):
        (folder / "folder").mkdir()
        (folder / "folder").rmdir()
    return COUNT


OPERATIONS: tuple[Callable[[Path], int], ...] = (
    stat_again, stat_anew, open_close, create_unlink, mkdir_rmdir,
)  # fmt: skip


def processor_time(process: int | None) -> float:
    """Return the processor time of this process, and of another one, in seconds."""
    if process is None:
        return time.process_time()
    words = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return time.process_time() + (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Measure and print one line for each operation, in microseconds."""
    bindfs, programs, memory = shutil.which("bindfs"), required_programs(), memory_folder()
    if bindfs is None or memory is None:
        raise UserError("needs bindfs (Debian: bindfs) and a folder in memory")
    with tempfile.TemporaryDirectory(prefix="tiercel-metadata-", dir=memory) as name:
        plain, behind, bound, mount = (Path(name) / word for word in ("plain", "behind", "bound", "mount"))
        for folder in (plain, behind, bound, mount):
            folder.mkdir()
        daemon = subprocess.Popen([bindfs, "-f", str(behind), str(bound)])
        try:
            while not os.path.ismount(bound):
                time.sleep(0.05)
            with running_server(programs, Path(name) / "data", ["--mount", str(mount)]) as server:
                compare({"plain": (plain, None), "bindfs": (bound, daemon.pid),
                         "mount": (mount, server.process.pid)})  # fmt: skip
        finally:
            subprocess.run(["umount", str(bound)], check=False)
            daemon.wait()


def compare(places: dict[str, tuple[Path, int | None]]) -> None:
    """Run all operations on all places, interleaved, and print medians and the range of the ratio."""
    for folder, _ in places.values():
        (folder / "many").mkdir()
        for number in range(COUNT):
            (folder / "many" / str(number)).touch()
    print(f"{'':14}{'plain':>8}{'bindfs':>8}{'mount':>8}  mount / bindfs (range)")
    for operation in OPERATIONS:
        costs: dict[str, list[float]] = {place: [] for place in places}
        for _ in range(ROUNDS):
            for place, (folder, process) in places.items():
                before = processor_time(process)
                count = operation(folder)
                costs[place].append((processor_time(process) - before) / count * 1e6)
        middle = {place: statistics.median(values) for place, values in costs.items()}
        ratios = [ours / theirs for ours, theirs in zip(costs["mount"], costs["bindfs"], strict=True)]
        print(
            f"{operation.__name__:14}" + "".join(f"{value:8.1f}" for value in middle.values()),
            f" {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})", flush=True,
        )  # fmt: skip


if __name__ == "__main__":
    main()
