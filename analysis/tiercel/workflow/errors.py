"""What Snakemake itself says of trouble, where it was told to be quiet about everything.

``tiercel evaluate`` asks for ``--quiet all``, so that what the runs say is all that is seen. Snakemake
then keeps its errors to itself too: of an executor that reaches no scheduler nothing was heard but exit
code 1.
"""

from __future__ import annotations

import logging
import sys

#: Follow from what the jobs themselves have said.
_FOLLOWS = (
    "Exiting because a job execution failed", "WorkflowError:\nAt least one job did not complete",
    "RuleException:\nCalledProcessError", "CalledProcessError",
)  # fmt: skip
#: The event of an exception (LogEvent of snakemake_interface_logger_plugins); others are of a job, and say
#: nothing that the job has not: its rule, files and command.
_OF_SNAKEMAKE = (None, "error")


class ErrorsOnce(logging.Handler):
    """Prints errors of Snakemake's own, each once however often a job is tried again."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self._said: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        event = getattr(record, "event", None)
        words = record.getMessage().strip()
        if getattr(event, "value", event) not in _OF_SNAKEMAKE or not words or words.startswith(_FOLLOWS):
            return
        if words not in self._said:
            self._said.add(words)
            print(f"tiercel: snakemake: {words}", file=sys.stderr, flush=True)


def speak_up() -> None:
    """Have this Snakemake say its errors, whatever it was told to be quiet about."""
    logging.getLogger("snakemake.logging").addHandler(ErrorsOnce())
