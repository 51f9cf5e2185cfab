"""The folder of a run on storage that every node has its own of, and what the nodes of a job are like.

Shared storage needs none of this: there the harness makes the folder (runs.scratch).
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tiercel.errors import RunFailed
from tiercel.launchers import Launcher
from tiercel.launchers.answers import answers_in
from tiercel.runs.objects import ObjectScratch
from tiercel.runs.scratch import Scratch
from tiercel.site.filesystem import FileSystem
from tiercel.site.model import Stack

#: For one process on each node to start Python and answer; thousands of nodes read it from one file system.
_PATIENCE_S = 300.0


@dataclass(frozen=True)
class Nodes:
    """Some nodes of the job that this process runs in, reached by the site's launcher."""

    launcher: Launcher
    count: int

    def answer(self) -> bool:
        """Return whether a process can be started on every one of them."""
        try:
            ended = subprocess.run(
                self.launcher.command(["true"], self.count, 1), capture_output=True, timeout=_PATIENCE_S,
                check=False, stdin=subprocess.DEVNULL, env={**os.environ, **self.launcher.environment()},
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired):
            return False
        return ended.returncode == 0

    def ask(self, action: str, stack: Stack, run_id: str = "", footprint: int = 0) -> list[dict[str, Any]]:
        """Return every node's answer (runs.node); RunFailed names the node that fails, or does not answer."""
        words = [action, stack.name, stack.storage.model_dump_json(), run_id, str(footprint)]
        return self.each("tiercel.runs.node", words)

    def each(self, module: str, words: Sequence[str]) -> list[dict[str, Any]]:
        """Return every node's answer by a module of tiercel that runs there once; RunFailed as of `ask`."""
        answers, said = self.start(module, words)
        for answer in answers:
            if "error" in answer:
                raise RunFailed(f"node {answer['host']}: {answer['error']}")
        if len(answers) != self.count:
            raise RunFailed(f"{len(answers)} of {self.count} nodes answered ({said})")
        return answers

    def start(
        self, module: str, words: Sequence[str], processes_per_node: int = 1
    ) -> tuple[list[dict[str, Any]], str]:
        """Start a module of tiercel on every node; return the answers of its processes by host, and the last
        words that the launcher said. RunFailed where the launcher does not start, or does not end."""
        argv = [sys.executable, "-m", module, *words]
        command = self.launcher.command(argv, self.count, processes_per_node)
        try:
            ended = subprocess.run(
                command, capture_output=True, text=True, timeout=_PATIENCE_S, check=False,
                stdin=subprocess.DEVNULL, env={**os.environ, **self.launcher.environment()},
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise RunFailed(
                f"launcher {self.launcher.name}: did not end within {_PATIENCE_S:.0f} s"
            ) from None
        except OSError as error:
            raise RunFailed(f"launcher {self.launcher.name}: {error}") from None
        said = (ended.stderr.strip().splitlines() or ["they said nothing"])[-1]
        return answers_in(ended.stdout), said


class NodeScratch:
    """A run's own folder on every node, as a context manager; like scratch.Scratch, which it calls there."""

    def __init__(self, stack: Stack, run_id: str, nodes: Nodes, footprint: int) -> None:
        self._stack, self._run_id, self._nodes, self._footprint = stack, run_id, nodes, footprint
        self.data = Path()
        self._made: dict[str, FileSystem] = {}

    def __enter__(self) -> NodeScratch:
        answers = self._nodes.ask("make", self._stack, self._run_id, self._footprint)
        folders = sorted({str(answer["data"]) for answer in answers})
        if len(folders) > 1:
            self.__exit__()
            raise RunFailed(
                f"storage {self._stack.name}: different folders on its nodes ({', '.join(folders[:2])}...): "
                "scratch must be the same path on every node"
            )
        self.data = Path(folders[0])
        self._made = {answer["host"]: FileSystem(**answer["file_system"]) for answer in answers}
        return self

    def __exit__(self, *exc: object) -> None:
        for answer in self._nodes.ask("remove", self._stack, self._run_id):
            made = self._made.get(answer["host"])
            moved = made.moved_to(FileSystem(**answer["file_system"])) if made else ""
            if moved:
                raise RunFailed(
                    f"node {answer['host']}: the file system changed during the run: "
                    f"storage {self._stack.name}: {moved}"
                )


def scratch_of(
    stack: Stack, run_id: str, nodes: Nodes | None, footprint: int, recorded: FileSystem | None = None
) -> Scratch | NodeScratch | ObjectScratch:
    """Return the run's folder: on `nodes` where the storage is another one on each, else here.

    `footprint` is what the run writes on one node, in bytes; `recorded`, what a shared storage was when the
    evaluation began.
    """
    if stack.storage.objects:
        return ObjectScratch(stack, run_id)
    return Scratch(stack, run_id, recorded) if nodes is None else NodeScratch(stack, run_id, nodes, footprint)
