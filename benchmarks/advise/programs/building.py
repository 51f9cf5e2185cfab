"""A compiler builds a small project: many starts, headers read again and again, many small outputs."""

from __future__ import annotations

from pathlib import Path

from benchmarks.advise.programs.base import Program, path_of, programs, run

_UNITS = 60


@programs.register("make-c")
class MakeC(Program):
    title = f"make and gcc, a project of {_UNITS} C files"
    needs = ("make", "gcc")

    def make(self, folder: Path) -> None:
        for place in ("src", "include"):
            (folder / place).mkdir()
        for unit in range(_UNITS):
            (folder / f"include/unit{unit}.h").write_text(
                f"#pragma once\nint unit{unit}(int);\n"
                + "".join(f"#define U{unit}_{n} {n}\n" for n in range(200))
            )
            others = sorted({(unit * 7 + step) % _UNITS for step in range(12)})
            (folder / f"src/unit{unit}.c").write_text(
                "".join(f'#include "unit{other}.h"\n' for other in [unit, *others])
                + f"int unit{unit}(int x) {{ return x + U{unit}_{unit}; }}\n"
            )
        calls = " ".join(f"sum += unit{unit}(0);" for unit in range(_UNITS))
        (folder / "src/main.c").write_text(
            "#include <stdio.h>\n"
            + "".join(f'#include "unit{unit}.h"\n' for unit in range(_UNITS))
            + f'int main(void) {{ int sum = 0; {calls} printf("%d\\n", sum); return 0; }}\n'
        )
        (folder / "Makefile").write_text(
            "OBJECTS := $(patsubst src/%.c,build/%.o,$(wildcard src/*.c))\n"
            "program: $(OBJECTS)\n\tgcc -o $@ $^\n"
            "build/%.o: src/%.c | build\n\tgcc -pipe -O1 -Iinclude -MMD -c -o $@ $<\n"
            "build:\n\tmkdir -p $@\n"
        )

    def command(self, folder: Path) -> list[str]:
        return [path_of("make"), "-s", "-j2", "-C", str(folder)]

    def wrong(self, folder: Path) -> str | None:
        said, expected = run(folder / "program").strip(), sum(range(_UNITS))
        return None if said == str(expected) else f"the program says {said!r}, not {expected}"
