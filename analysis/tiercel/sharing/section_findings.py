"""The sentences of the section Sharing."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from tiercel.report.sections.base import Context
from tiercel.units import format_share


def findings(context: Context, rows: pd.DataFrame) -> tuple[str, ...]:
    """Return a sentence for each workload. `rows`: of all jobs, with ``stack`` and ``job``."""
    rows = rows.reindex(
        columns=[*rows.columns, *({"slowdown_allowed", "slowdown_noise"} - set(rows.columns))]
    )
    application = rows.groupby(["experiment", "workload"])["slowdown_noise"].transform("max").notna()
    return (*_shares(context, rows[~application]), *_applications(context, rows[application]))


def _shares(context: Context, rows: pd.DataFrame) -> Iterator[str]:
    """Yield which stack is nearest to its policy's shares, of the contests of jobs that want all they get."""
    entitled = rows[rows["entitled_share"].notna()]
    for (experiment, workload), group in entitled.groupby(["experiment", "workload"], sort=False):
        off = (group["share"] / group["entitled_share"] - 1).abs()
        worst = off.groupby(group["stack"]).median().sort_values()
        near, far = (context.results.name(str(worst.index[n])) for n in (0, -1))
        title = _titled(context, str(experiment), str(workload))
        least, most = (format_share(worst.iloc[n], 1) for n in (0, -1))
        differ = f"jobs' shares differ by {least} from the policy's (median, each relative to its own)"
        if len(worst) == 1:
            yield f"{title}: on {near} {differ}."
        else:
            yield f"{title}: nearest to its policy is {near}: {differ}; farthest {far}: {most}."


def _applications(context: Context, rows: pd.DataFrame) -> Iterator[str]:
    """Yield what a background job costs an application on each stack, against what its share allows."""
    first = rows[rows["slowdown"].notna()]
    for (experiment, workload), group in first.groupby(["experiment", "workload"], sort=False):
        said = []
        for stack, runs in group.groupby("stack", sort=False):
            m = runs[["slowdown", "slowdown_allowed", "slowdown_noise"]].astype(float).median()
            text = f"{format_share(m.slowdown, 1, sign='+')} on {context.results.name(str(stack))}"
            if pd.notna(m.slowdown_allowed):
                over = m.slowdown - m.slowdown_allowed
                verdict = (
                    "within" if over <= 0 else "within the noise of" if over <= m.slowdown_noise else "above"
                )
                text += f" ({verdict} the {format_share(m.slowdown_allowed, 1)} that its share allows)"
            said.append(text)
        noise = float(group["slowdown_noise"].astype(float).median())
        yield (
            f"{_titled(context, str(experiment), str(workload))}: beside the background job its time "
            f"changes by {', '.join(said)}. Two runs alone differ by {format_share(noise, 1)}."
        )


def _titled(context: Context, experiment: str, workload: str) -> str:
    """Return how a contest is called, as in every other section."""
    return f"{context.results.experiment_title(experiment)}, {context.results.title(experiment, workload)}"
