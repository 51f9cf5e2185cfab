"""The section on placement: the sweep, the model card with what it is worth, and the plans that were made."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from tiercel.errors import UserError
from tiercel.pages.tables import table
from tiercel.report.axes import log_ticks
from tiercel.report.picture import picture
from tiercel.report.sections.base import Context, Section, sections
from tiercel.units import format_bandwidth, format_latency, format_size


@sections.register("placement")
def placement(context: Context) -> Section | None:
    """Return the section of the study's sweep, or None where no dataset of it was made."""
    from tiercel.placement.dataset import PROVENANCE, load_sweep, placement_folder, throughput  # noqa: PLC0415

    folder = placement_folder(context.folder, context.results.study.study)
    if not (folder / PROVENANCE).exists():
        return None
    try:
        sweep = load_sweep(folder)
    except UserError as error:
        return Section("placement", "Placement", (f"The dataset cannot be used: {error}",))
    from tiercel.placement.score import best_of, differ  # noqa: PLC0415

    systems, provenance = sweep.attrs["systems"], sweep.attrs["provenance"]
    best, clear = best_of(sweep), differ(sweep)
    speed = throughput(sweep)
    counts = ", ".join(f"{s} in {int((best == s).sum())}" for s in systems)
    texts = [
        f"{len(sweep)} configurations of Table I of the PrismIO paper ran on {', '.join(systems)} "
        f"({'simulated' if 'simulated' in provenance['origin'] else 'measured'}). Fastest: {counts}. "
        f"The best differs from the next by more than the noise in {int(clear.sum())}.",
    ]
    pictures = []
    if len(systems) >= 2:
        a, b = sorted(systems, key=lambda s: -float((best == s).sum()))[:2]
        pictures.append(
            picture(
                context.figures,
                "placement-sweep",
                f"Throughput of each configuration on {a} and {b}",
                f"Each point is one configuration (median of its repetitions). Above the diagonal {a} is "
                "faster; grey points do not differ by more than the noise.",
                (4.8, 4.4),
                lambda axes: _scatter(axes, speed[b].to_numpy(), speed[a].to_numpy(), clear, b, a),
            )
        )
    tables, notes = [], list(_left_out(provenance))
    card = _json(folder / "model.json")
    if card and card.get("evaluation"):
        tables += _model_tables(card)
        texts.append(_abstention(card["evaluation"]))
        notes += [*card["notes"], *card["limits"]]
        pictures.append(
            picture(
                context.figures,
                "placement-importances",
                "What the choice of a system hangs on",
                "Accuracy lost on configurations held back in groups when one feature is shuffled "
                "(decision tree).",
                (4.8, 4.4),
                lambda axes: _bars(axes, card["importances"]),
            )
        )
    else:
        notes.append("No model was trained on this sweep: run `tiercel place train`.")
    for path in sorted(context.folder.glob("placement/plans/*/plan.json")):
        plan = _json(path)
        if plan:
            tables.append(_plan_table(path.parent.name, plan))
    return Section(
        "placement",
        "Placement: which file on which storage system",
        tuple(texts),
        tuple(pictures),
        tuple(tables),
        tuple(notes),
    )


def _model_tables(card: dict[str, Any]) -> list[Any]:
    models = card["evaluation"]["models"]
    kinds = list(next(iter(models.values())))
    # Accuracy as the paper counts it, where it is comparable with the paper's: in random splits.
    scores = [(kinds[0], "accuracy", "accuracy")]
    scores += [
        (k, w, s) for k in kinds for w, s in (("right", "accuracy_where_differ"), ("regret", "regret"))
    ]
    columns = ["model", *(f"{word}, {kind.replace('-', ' ')}" for kind, word, _ in scores)]
    rows = [
        [name.replace("-", " "), *(_percent(by[kind][score]) for kind, _, score in scores)]
        for name, by in models.items()
    ]
    data = card["data"]
    facts = [
        ["site", card["site"]], ["systems", ", ".join(card["systems"])], ["method", card["method"]],
        ["features", ", ".join(card["features"])], ["engine", ", ".join(data["engine"])],
        ["configurations", data["configurations"]], ["origin", ", ".join(data["origin"])],
        *([f"90 % of predictions on {s} lie within", f"{low:.2g} to {high:.2g} times"] for s, (low,
        high) in card["intervals_90"].items()),
        ["scikit-learn", card["scikit_learn"]],
    ]  # fmt: skip
    return [
        table(
            "How often each model names the fastest system (accuracy: everywhere, as in the paper; right: "
            "where systems differ beyond noise), and the share of throughput that its choices lose (regret): "
            "in random splits, with groups held back, and for sizes that it never saw",
            columns,
            rows,
            columns[1:],
        ),
        table("Model card", ["", "value"], facts),
    ]


def _plan_table(name: str, plan: dict[str, Any]) -> Any:
    rows = [
        [r["group"], r["files"], (format_size(r["bytes"]), r["bytes"]), r["system"],
         (f"{r['expected_gain']:.0%}", r["expected_gain"]), (format_latency(abs(r["saved_seconds"])),
         r["saved_seconds"]),
         (f"{r['confidence']:.0%}", r["confidence"]), r["reason"]]
        for r in plan["rows"]
    ]  # fmt: skip
    columns = ["files", "of", "size", "system", "gain", "saved", "sure", "why"]
    return table(f"Plan {name}: from {plan['home']}", columns, rows, ("of", "size", "gain", "saved", "sure"))


def _scatter(axes: Axes, x: Any, y: Any, clear: Any, name_x: str, name_y: str) -> None:
    axes.scatter(x[~clear], y[~clear], s=9, color="0.6", alpha=0.6, label="no more than noise", linewidths=0)
    axes.scatter(x[clear], y[clear], s=9, alpha=0.6, label="differ", linewidths=0)
    ends = [float(min(x.min(), y.min())), float(max(x.max(), y.max()))]
    axes.plot(ends, ends, color="0.4", linewidth=0.8)
    axes.set(xscale="log", yscale="log", xlabel=name_x, ylabel=name_y)
    for axis in (axes.xaxis, axes.yaxis):
        log_ticks(axis, format_bandwidth, 2)
    axes.legend(loc="upper left", fontsize=8)


def _bars(axes: Axes, importances: list[dict[str, Any]]) -> None:
    rows = [r for r in importances if r["permutation"] > 0][:10][::-1] or importances[:1]
    axes.barh(np.arange(len(rows)), [100 * r["permutation"] for r in rows])
    axes.set_yticks(np.arange(len(rows)), [r["feature"] for r in rows])
    axes.set_xlabel("accuracy lost (percentage points)")


def _abstention(evaluation: dict[str, Any]) -> str:
    a = evaluation["abstention"]
    decided = a["decided"]
    if not decided["count"]:
        return "A plan would decide nowhere in this sweep: no predicted difference is beyond noise."
    return (
        f"At {a['confidence']:.0%} confidence a plan decides in {1 - a['abstained']:.0%} of the "
        "configurations; "
        f"there it names the fastest system in {decided['accuracy']:.1%} and loses {decided['regret']:.1%} "
        "of its throughput."
    )


def _left_out(provenance: dict[str, Any]) -> list[str]:
    left = provenance["left_out"]
    missing = left["configurations that lack a system"]
    words = [f"{len(missing)} configurations lack numbers on a system and are left out."] if missing else []
    words += [f"{n} {what} are left out." for what, n in left.items() if isinstance(n, int) and n]
    return [
        *words,
        *(f"{n} runs failed: {reason}" for reason, n in provenance.get("failed_runs", {}).items()),
    ]


def _percent(value: float | None) -> Any:
    return ("-", -1.0) if value is None or math.isnan(value) else (f"{100 * value:.1f} %", value)


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
