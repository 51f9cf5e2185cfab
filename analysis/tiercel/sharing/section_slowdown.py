"""What a background job costs applications under each policy: ThemisIO (001), figures 1 and 13."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from tiercel.report import style
from tiercel.report.picture import Picture, picture
from tiercel.report.sections.base import Context
from tiercel.sharing.section_labels import short, told_apart

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_NUMBERS = ("slowdown", "slowdown_allowed", "slowdown_noise")
_WIDTH = 0.8
#: By workload and stack.
Cells = Mapping[tuple[str, str], pd.DataFrame]


def slowdown_pictures(context: Context, rows: pd.DataFrame) -> Iterator[Picture]:
    """Yield a figure for each experiment and storage on which applications ran beside a background job.

    `rows`: of all jobs, with ``stack`` and ``job``, in the order in which stacks are shown.
    """
    if not {"slowdown", "slowdown_noise"} <= set(rows.columns):
        return
    chosen = rows[rows["slowdown"].notna() & rows["slowdown_noise"].notna()]
    for (experiment, storage), group in chosen.groupby(["experiment", "storage"], sort=False):
        place = str(group["storage_label"].iloc[0] or storage)
        cells = {
            (str(workload), str(stack)): some.reindex(columns=_NUMBERS).astype(float)
            for (workload, stack), some in group.groupby(["workload", "stack"], sort=False)
        }
        stacks = list(dict.fromkeys(stack for _, stack in cells))
        labels, common = told_apart([short(context, stack, place) for stack in stacks])
        named = dict(zip(stacks, labels, strict=True))
        titles = {name: context.results.title(str(experiment), name) for name, _ in cells}
        where = f"{context.results.experiment_title(str(experiment))} on {place}"
        made = picture(
            context.figures, f"sharing-{experiment}-{storage}-slowdown",
            f"{where}: how much longer applications take{f', {common}' if common else ''}",
            "Time beside the background job over time alone, less one: bars are medians, dots repetitions; a "
            "black line is what the policy's share allows an application to lose. (ThemisIO, Figures 1, 13)",
            (6.2, 3.2), partial(_draw, cells, named, titles), str(experiment),
        )  # fmt: skip
        yield replace(made, data=_data(cells, named, titles))


def _data(cells: Cells, named: Mapping[str, str], titles: Mapping[str, str]) -> list[dict[str, Any]]:
    return [
        {"application": titles[workload], "layer": named[stack], "repetitions": len(some),
         **{name: float(some[name].median()) for name in _NUMBERS}}
        for (workload, stack), some in cells.items()
    ]  # fmt: skip


def _draw(cells: Cells, named: Mapping[str, str], titles: Mapping[str, str], axes: Axes) -> None:
    colours, width = style.colours(named), _WIDTH / len(named)
    for n, stack in enumerate(named):
        label: str | None = named[stack]
        for x, workload in enumerate(titles):
            some = cells.get((workload, stack))
            if some is None:
                continue
            at = x + (n - (len(named) - 1) / 2) * width
            axes.bar(
                at,
                100 * some["slowdown"].median(),
                width * 0.9,
                color=colours[stack],
                alpha=0.75,
                label=label,
            )
            axes.plot(
                [at] * len(some), 100 * some["slowdown"], ".", color=style.INK, markersize=3.5, alpha=0.6
            )
            allowed = 100 * some["slowdown_allowed"].median()
            if np.isfinite(allowed):
                axes.hlines(allowed, at - width * 0.45, at + width * 0.45, color=style.INK, linewidth=1.4)
            label = None  # once in the legend
    axes.axhline(0, color=style.INK, linewidth=0.8)
    axes.set_xticks(range(len(titles)), [_two_lines(title) for title in titles.values()])
    axes.grid(visible=False, axis="x")
    axes.set_ylabel("longer by, %")
    axes.legend(loc="upper left", bbox_to_anchor=(0, -0.18), ncols=2)


def _two_lines(title: str) -> str:
    """Return a title with what stands in brackets below it."""
    return title.replace(" (", "\n(", 1)
