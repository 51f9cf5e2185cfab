"""Sequences: samtools sorts alignments with little memory, so through temporary files, and indexes them."""

from __future__ import annotations

import random
from pathlib import Path

from benchmarks.advise.programs.base import Program, path_of, programs, run


@programs.register("samtools-sort")
class Samtools(Program):
    title = "samtools, sorts and indexes 400,000 alignments through temporary files"
    _count = 400_000

    needs = ("samtools",)

    def make(self, folder: Path) -> None:
        (folder / "temporary").mkdir()
        chance = random.Random(8)
        letters = "".join(chance.choices("ACGT", k=200_000))
        with (folder / "in.sam").open("w") as sam:
            sam.write("@HD\tVN:1.6\n@SQ\tSN:one\tLN:10000000\n")
            for number in range(self._count):
                position = chance.randint(1, 9_000_000)
                start = chance.randrange(199_900)
                bases = letters[start : start + 100]
                sam.write(f"r{number}\t0\tone\t{position}\t60\t100M\t*\t0\t0\t{bases}\t{'F' * 100}\n")

    def command(self, folder: Path) -> list[str]:
        return [path_of("samtools"), "sort", "-l", "1", "-m", "4M", "-T", f"{folder}/temporary/part",
                "--write-index", "-o", f"{folder}/out.bam", f"{folder}/in.sam"]  # fmt: skip

    def wrong(self, folder: Path) -> str | None:
        run(path_of("samtools"), "quickcheck", folder / "out.bam")
        count = run(path_of("samtools"), "view", "-c", folder / "out.bam", "one:1-9000100").strip()
        return None if count == str(self._count) else f"{count} alignments, not {self._count}"
