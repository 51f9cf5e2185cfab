"""Figures of simulated sharing; each says in its title that it is simulated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tiercel.pages.colours import COLOURS

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


def plot_throughput(frame: pd.DataFrame, documents: list[dict[str, Any]] | None = None) -> Figure:
    """Draw throughput over time, one line a job and one panel for each policy and scheduler.

    `frame`: rows of :func:`tiercel.sharing.simulate.simulate`, of one or several simulations. With their
    `documents` the throughput that each job is entitled to is drawn as a thin line.
    """
    import matplotlib.pyplot as plt
    import seaborn as sns

    panels = list(dict.fromkeys(zip(frame["policy"], frame["scheduler"], strict=True)))
    columns = min(len(panels), 2)
    rows = -(-len(panels) // columns)
    jobs = list(dict.fromkeys(frame["job"]))
    palette = {job: COLOURS[n % len(COLOURS)] for n, job in enumerate(jobs)}
    with sns.axes_style("ticks"):
        figure, axes = plt.subplots(
            rows, columns, figsize=(5.2 * columns, 3.0 * rows), sharey=True, squeeze=False
        )
    for axis, (policy, scheduler) in zip(axes.flat, panels, strict=False):
        part = frame[(frame["policy"] == policy) & (frame["scheduler"] == scheduler)]
        part = part.assign(gigabytes=part["throughput"] / 1e9)
        sns.lineplot(
            data=part, x="time", y="gigabytes", hue="job", hue_order=jobs, palette=palette, ax=axis,
            linestyle=":", marker="D", markersize=3.5, markeredgewidth=0, errorbar=None,
        )  # fmt: skip
        for document in documents or ():
            if (document["policy"], document["scheduler"]) == (policy, scheduler):
                _entitled(axis, document, palette)
        axis.set_title(f"{policy}, {scheduler} (simulated)", fontsize=9.5)
        axis.set_xlabel("time (s)")
        axis.set_ylabel("throughput (GB/s)")
        axis.set_ylim(bottom=0)
        axis.grid(alpha=0.15)
        axis.get_legend().remove()
        sns.despine(ax=axis)
    for axis in list(axes.flat)[len(panels) :]:
        axis.remove()
    handles, labels = axes.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper", frameon=False, fontsize=8.5)
    figure.set_layout_engine("constrained")
    return figure


def _entitled(axis: Any, document: dict[str, Any], palette: dict[str, str]) -> None:
    for phase in document["phases"]:
        for job in phase["jobs"]:
            if len(phase["jobs"]) > 1 and job["entitled"] is not None:
                height = job["entitled"] * phase["throughput"] / 1e9
                axis.hlines(
                    height, phase["begin_s"], phase["end_s"], color=palette[job["name"]], linewidth=0.7
                )
