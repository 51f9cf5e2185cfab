"""Entry point of ``tiercel``."""

from __future__ import annotations

import gc
import io
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import typer
import typer.exceptions

import tiercel
from tiercel.children import end_with
from tiercel.cli import (
    advise,
    artifact,
    compare,
    engines,
    help,
    init,
    measure,
    panels,
    papers,
    results,
    site,
    stack,
    trace,
    trace_pages,
    trace_survey,
)
from tiercel.errors import Interrupted, UserError, one_line
from tiercel.extras import missing
from tiercel.interruption import unwind_when_interrupted
from tiercel.project import unwritable
from tiercel.subjects import load

app = typer.Typer(
    name="tiercel",
    help="Measure HPC storage and decide where files belong. Start with: tiercel evaluate",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": help.WIDTH},
)
measure.register(app)
app.command(rich_help_panel=panels.EVALUATE)(init.init)
app.add_typer(site.app, name="site", rich_help_panel=panels.EVALUATE)
app.add_typer(stack.app, name="stack", rich_help_panel=panels.EVALUATE)
app.add_typer(engines.app, name="engines", rich_help_panel=panels.EVALUATE)
app.command(rich_help_panel=panels.UNDERSTAND)(results.show)
compare.register(app)
trace_survey.register(trace.app)
trace_pages.register(trace.app)
app.add_typer(trace.app, name="trace", rich_help_panel=panels.UNDERSTAND)
papers.register(app)
advise.register(app)
try:
    for module in load("commands"):
        module.register(app)
except UserError as error:  # of a package that is no part of tiercel: told when there is a command
    broken: UserError | None = error
else:
    broken = None
results.register(app)
artifact.register(app)
help.apply(app)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"tiercel {tiercel.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version."
    ),
) -> None:
    """Measure HPC storage and decide where files belong. Start with: tiercel evaluate"""
    if parent := os.environ.pop(PARENT, ""):
        end_with(int(parent))


#: The process that this one is to end with: a Snakemake that is killed leaves nobody behind who writes tables
#: beside those of the next. Set by the rules that give no --parent.
PARENT = "TIERCEL_PARENT"

#: Exit codes. 1 is a command's own: what it was asked to do failed, or what it was asked to find was found.
MISTAKE, DEFECT, INTERRUPTED, NOBODY_READS = 2, 3, 130, 141


def main() -> None:
    """Run the command line. Exit codes: 0 done, 1 failed, 2 the user's mistake or the machine's trouble, 3 an
    error of tiercel's own, 130 interrupted, 141 nobody reads what it prints."""
    unwind_when_interrupted()
    gc.set_threshold(100_000)  # importing and reading make many objects and no cycles
    if sys.stderr is None:  # closed (2>&-): what is said goes nowhere, and the exit code is as ever
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115
    if sys.stdout is None:
        sys.exit(_end("standard output is closed: redirect it to /dev/null instead", MISTAKE))
    # A terminal of another alphabet (LC_ALL=en_US) shows ? for a sign that it lacks, rather than a traceback.
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="replace")
    sys.exit(_end(str(broken), MISTAKE) if broken else run(app))


def run(command: Callable[..., object]) -> int:
    """Run a command line and return its exit code; one line says what went wrong."""
    try:
        code = command(standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except UserError as error:
        return _end(str(error), MISTAKE)
    except typer.exceptions.TyperException as error:
        message = error.format_message()
        if message.lstrip().startswith("Usage:"):  # a command alone, whose help this is
            print(message)
            return MISTAKE
        return _end(one_line(" ".join(message.split())), error.exit_code)
    except (KeyboardInterrupt, typer.Abort, Interrupted):
        resumes = sys.argv[1:2] in (["evaluate"], ["stack"])
        how = "run the same command again" + (" to resume" if resumes else "")
        return _end(f"interrupted: {how}", INTERRUPTED)
    except BrokenPipeError:
        _drop_output()
        return NOBODY_READS
    except OSError as error:
        try:
            sys.stdout.flush()
        except OSError:  # it is what could not be written
            _drop_output()
        if error.filename is None and error.errno is None:
            return _defect()
        where = f"{error.filename}: " if error.filename is not None else ""
        return _end(f"{where}{error.strerror or error}{unwritable(error)}", MISTAKE)
    except ModuleNotFoundError as error:
        said = missing(error.name)
        return _end(said, MISTAKE) if said else _defect()
    except RuntimeError as error:  # of Path.resolve, until Python 3.13
        loop = str(error).startswith("Symlink loop")
        return _end(f"{one_line(str(error))}: a link that leads to itself", MISTAKE) if loop else _defect()
    except (MemoryError, ImportError) as error:
        out = isinstance(error, MemoryError) or any(words in str(error) for words in _NO_ROOM)
        return _end(_OUT_OF_MEMORY, MISTAKE) if out else _defect()
    except Exception:  # a defect must not look like an answer
        return _defect()


#: What the dynamic linker says of a library for which there is no room.
_NO_ROOM = ("failed to map segment", "cannot allocate memory", "cannot create shared object descriptor")
_OUT_OF_MEMORY = (
    "out of memory: raise the limit (`ulimit -v`, job or container), or stop other programs "
    "that use the memory"
)


def _drop_output() -> None:
    """Let nothing more be written: Python would complain once more at its end, with a code of its own."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


#: Letters of a sentence, which names what it was given: a word of a megabyte is shown by both ends.
_LONGEST = 4000


def _end(sentence: str, code: int) -> int:
    if len(sentence) > _LONGEST:
        sentence = f"{sentence[: _LONGEST // 2]}...{sentence[-_LONGEST // 2 :]}"
    print(f"tiercel: {sentence}", file=sys.stderr)
    return code


def _defect() -> int:
    traceback.print_exc()
    return _end(
        f"internal error of tiercel {tiercel.__version__}: please report it with the lines above",
        DEFECT,
    )


if __name__ == "__main__":
    main()
