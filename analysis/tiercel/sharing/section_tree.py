"""The tree of parts: what groups, users and jobs got of what a policy of several levels promises them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pandas as pd

from tiercel.layers.fairshare.policies import levels_of
from tiercel.report.picture import Picture, picture_of
from tiercel.report.sections.base import Context
from tiercel.sharing.parts import Member, Part, parts_of
from tiercel.sharing.parts_figure import draw_parts
from tiercel.sharing.workload import ContestWorkload

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_POLICY = re.compile(r"fairshare(?: [^+]*?)? policy=([a-z-]+)")
CAPTION = (
    "Each box is as wide as what the policy promises (jobs within users, users within groups); its words and "
    "its bar say what was got of that. Means over the repetitions, so "
    "that parts add up."
)

Tree = tuple[Part, ...]


def tree_pictures(context: Context, rows: pd.DataFrame) -> Iterator[Picture]:
    """Yield a figure for each workload and storage that ran under a policy of several levels.

    `rows`: of all jobs, with ``stack`` and ``job``.
    """
    for (experiment, workload, storage), group in rows.groupby(
        ["experiment", "workload", "storage"], sort=False
    ):
        trees = dict(_trees(context, group))
        if not trees:
            continue
        place = str(group["storage_label"].iloc[0] or storage)
        said = context.results.title(str(experiment), str(workload))
        title = f"{context.results.experiment_title(str(experiment))}: who got what of {place}, {said}"
        height = sum(0.45 + 0.74 * _depth(tree) for tree in trees.values())
        drawn = picture_of(
            context.figures, f"sharing-{experiment}-{workload}-{storage}-tree", title, CAPTION,
            (8.4, 0.3 + height), partial(_draw, trees=trees), str(experiment),
        )  # fmt: skip
        yield replace(drawn, data=_data(trees))


def _trees(context: Context, rows: pd.DataFrame) -> Iterator[tuple[str, Tree]]:
    for _, group in rows.groupby("stack", sort=False):
        policy = _POLICY.search(str(group["layer"].iloc[0]))
        levels = levels_of(policy[1]) if policy else ()
        if policy is None or len(levels) < 2:  # one level is the table's
            continue
        whose = _whose(context, str(group["experiment"].iloc[0]), str(group["workload"].iloc[0]))
        shares = group.groupby("job", sort=False)[["entitled_share", "share"]].mean()
        if set(shares.index) - set(whose) or shares["entitled_share"].isna().any():
            continue  # the study file names other jobs today
        members = [
            Member(str(job), whose[str(job)], float(row.entitled_share), float(row.share))
            for job, row in shares.iterrows()
        ]
        # Runs with other options of the layer have panels of their own.
        yield str(group["layer"].iloc[0]).partition(" ")[2], parts_of(levels, members)


def _data(trees: Mapping[str, Tree]) -> list[dict[str, Any]]:
    return [
        {"options": options, "level": part.level if part.below else "job", "name": part.name,
         "entitled_share": part.entitled, "share": part.measured}
        for options, tree in trees.items() for top in tree for _, part in top.walk()
    ]  # fmt: skip


def _whose(context: Context, experiment: str, workload: str) -> Mapping[str, Mapping[str, str]]:
    found = context.results.study.experiments.get(experiment)
    contest = found.workloads.get(workload) if found else None
    if not isinstance(contest, ContestWorkload):
        return {}
    return {
        job.name: {level: str(getattr(job, level)) for level in ("group", "user", "size", "priority")}
        for job in contest.jobs
    }


def _depth(tree: Tree) -> int:
    return 1 + max(depth for top in tree for depth, _ in top.walk())


def _draw(figure: Figure, trees: Mapping[str, Tree]) -> None:
    ratios: list[Any] = [_depth(tree) for tree in trees.values()]
    axes = figure.subplots(len(trees), 1, squeeze=False, height_ratios=ratios)
    for ax, (name, tree) in zip(axes.flat, trees.items(), strict=True):
        draw_parts(ax, tree)
        ax.set_title(name, fontsize=8.5)
