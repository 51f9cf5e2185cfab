"""The section on a simulation: by what each number is bound, which are bounds only, and what is unknown."""

from __future__ import annotations

from typing import Any

from tiercel.errors import UserError
from tiercel.pages.tables import table
from tiercel.report.sections.base import Context, Section, sections
from tiercel.runs.simulated import once, simulated_configurations
from tiercel.simulation.fidelity import errors_of
from tiercel.units import format_bandwidth

_HEADS = ("Storage", "Experiment", "Workload", "Operation", "Nodes", "Processes a node", "Simulated", "Full")


@sections.register("simulated")
def simulated(context: Context) -> Section | None:
    """Return the section of a simulated site; None for others."""
    if not context.site.simulated:
        return None
    found = context.results.observations
    found = found[found["origin"] == "simulated"].sort_values(
        ["storage", "experiment", "workload", "operation", "nodes", "processes_per_node"]
    )
    rows = [_row(row) for row in found.to_dict("records")]
    try:
        _, _, unknown = simulated_configurations(context.site, once(context.results.study), "")
    except UserError:  # all that is here was simulated with a topology that the site file had
        unknown = ["The topology of the site file has changed and cannot be simulated."]
    bounds = int(found["figures_missing"].notna().sum())
    paragraphs = [
        "Nothing was measured. Flows share the stages of the topology max-min fairly. Protocols, locks, "
        "caches and "
        "other users slow a real system further.",
        *errors_of(found),
    ]
    if bounds:
        paragraphs.append(
            f"{bounds} of {len(found)} results are upper bounds, because figures of stages are missing. They "
            "are not compared."
        )
    return Section(
        "simulated",
        "How this was simulated",
        tuple(paragraphs),
        tables=(
            table(
                "Limiting stage of each result. The stage that was full for the longest time",
                _HEADS,
                rows,
                ("Nodes", "Processes a node"),
            ),
        ),
        notes=tuple(unknown),
        early=True,
    )


def _row(row: dict[Any, Any]) -> list[Any]:
    rate = row["bandwidth"] == row["bandwidth"] and row["bandwidth"] is not None
    number = row["bandwidth"] if rate else row["operation_rate"]
    shown = format_bandwidth(number) if rate else f"{number:,.0f}/s"
    most = "at most " if isinstance(row["figures_missing"], str) else ""
    return [
        row["storage_label"], row["experiment"], row["title"], row["operation"], row["nodes"],
        row["processes_per_node"], (f"{most}{shown}", number), row["bound_by"],
    ]  # fmt: skip
