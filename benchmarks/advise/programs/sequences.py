"""Sequences: samtools sorts alignments with little memory, so through temporary files, and indexes them."""

from __future__ import annotations

import random
from pathlib import Path

from benchmarks.advise.programs.base import Program, lacks, path_of, programs, run


class _Sequences(Program):
    _count: int

    def _positions(self) -> list[int]:
        chance = random.Random(7)
        return [chance.randint(1, 9_000_000) for _ in range(self._count)]


@programs.register("samtools-sort")
class Samtools(_Sequences):
    title = "samtools, sorts and indexes 150,000 alignments through temporary files"
    _count = 150_000

    def missing(self) -> str | None:
        return lacks("samtools")

    def make(self, folder: Path) -> None:
        (folder / "temporary").mkdir()
        chance = random.Random(8)
        letters = "".join(chance.choices("ACGT", k=200_000))
        with (folder / "in.sam").open("w") as sam:
            sam.write("@HD\tVN:1.6\n@SQ\tSN:one\tLN:10000000\n")
            for number, position in enumerate(self._positions()):
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


@programs.register("bcftools-sort")
class Bcftools(_Sequences):
    title = "bcftools, sorts 120,000 variants through temporary files"
    _count = 120_000

    def missing(self) -> str | None:
        return lacks("bcftools")

    def make(self, folder: Path) -> None:
        (folder / "temporary").mkdir()
        chance = random.Random(9)
        with (folder / "in.vcf").open("w") as vcf:
            vcf.write("##fileformat=VCFv4.2\n##contig=<ID=one,length=10000000>\n")
            vcf.write('##INFO=<ID=DP,Number=1,Type=Integer,Description="Depth">\n')
            vcf.write("#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\n")
            for position in self._positions():
                vcf.write(
                    f"one\t{position}\t.\tA\tC\t{chance.randint(1, 99)}\t.\tDP={chance.randint(1, 999)}\n"
                )

    def command(self, folder: Path) -> list[str]:
        return [path_of("bcftools"), "sort", "-m", "1M", "-T", f"{folder}/temporary/part", "-O", "b",
                "-o", f"{folder}/out.bcf", f"{folder}/in.vcf"]  # fmt: skip

    def wrong(self, folder: Path) -> str | None:
        positions = [
            int(p) for p in run(path_of("bcftools"), "query", "-f", "%POS\n", folder / "out.bcf").split()
        ]
        return None if positions == sorted(self._positions()) else "the variants are not the same, in order"
