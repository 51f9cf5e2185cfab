"""The section on placement: the sweep, the model card with what it is worth, and the plans that were made."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tiercel.errors import UserError
from tiercel.pages.tables import table
from tiercel.report.sections.base import Context, Section, sections
from tiercel.units import format_latency, format_share, format_size


@sections.register("placement")
def placement(context: Context) -> Section | None:
    """Return the section of the study's sweep, or None where no dataset of it was made."""
    from tiercel.placement.dataset import KEPT, PROVENANCE, load_sweep, named, placement_folder  # noqa: PLC0415

    folder = placement_folder(context.folder, context.results.study.study)
    if not (folder / PROVENANCE).exists():
        return None
    try:
        sweep = load_sweep(folder)
    except UserError as error:
        return Section("placement", "Placement", (f"The dataset cannot be used: {error}",))
    from tiercel.placement.score import best_of, differ  # noqa: PLC0415
    from tiercel.placement.section_figures import application_picture, model_pictures, sweep_pictures  # noqa: PLC0415

    name = context.results.name
    sweep = named(sweep, name)
    systems, provenance = sweep.attrs["systems"], sweep.attrs["provenance"]
    best, clear = best_of(sweep), differ(sweep)
    counts = ", ".join(f"{s} in {int((best == s).sum())}" for s in systems)
    texts = [
        f"{len(sweep)} configurations of Table I of the PrismIO paper ran on {', '.join(systems)} "
        f"({'simulated' if 'simulated' in provenance['origin'] else 'measured'}). Fastest: {counts}. "
        "The best differs from the next by more than the noise, here two standard errors of the repetitions, "
        f"in {int(clear.sum())}.",
    ]
    pictures = sweep_pictures(context.figures, sweep)
    tables, notes = [], list(_left_out(provenance))
    card = _json(folder / "model.json")
    if card and card.get("evaluation"):
        tables += _model_tables(card, name)
        texts.append(_abstention(card["evaluation"]))
        notes += [*card["notes"], *card["limits"]]
        pictures += model_pictures(context.figures, card)
        if text := _elimination(card["elimination"]):
            texts.append(text)
    else:
        notes.append("No model was trained on this sweep: run `tiercel place train`.")
    scored = _json(folder / KEPT)
    if scored:
        pictures.append(application_picture(context.figures, scored))
        tables.append(_applications_table(scored))
        notes += scored["notes"]
        if scored["sweep"] != provenance["sha256"]:
            notes.append("The applications were judged by an older sweep: run `tiercel place evaluate`.")
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


def _model_tables(card: dict[str, Any], name: Callable[[str], str]) -> list[Any]:
    models = card["evaluation"]["models"]
    kinds = list(next(iter(models.values())))
    # Accuracy as the paper counts it, where it is comparable with the paper's: in random splits.
    scores = [(kinds[0], "accuracy", "accuracy")]
    scores += [
        (k, w, s) for k in kinds for w, s in (("right", "accuracy_where_differ"), ("regret", "regret"))
    ]
    columns = ["model", *(f"{word}, {kind.replace('-', ' ')}" for kind, word, _ in scores)]
    rows = [
        [model.replace("-", " "), *(_percent(by[kind][score]) for kind, _, score in scores)]
        for model, by in models.items()
    ]
    data = card["data"]
    facts = [
        ["site", card["site"]], ["systems", ", ".join(f"{name(s)} ({s})" for s in card["systems"])],
        ["method", card["method"]],
        ["features", ", ".join(card["features"])], ["engine", ", ".join(data["engine"])],
        ["configurations", data["configurations"]], ["origin", ", ".join(data["origin"])],
        *([f"90 % of predictions on {name(s)} lie within", f"{low:.2g} to {high:.2g} times"] for s, (low,
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
        table("Model card", ["what", "value"], facts),
    ]


def _plan_table(name: str, plan: dict[str, Any]) -> Any:
    rows = [
        [r["group"], r["files"], (format_size(r["bytes"]), r["bytes"]), r["system"],
         (format_share(r["expected_gain"]), r["expected_gain"]), (format_latency(abs(r["saved_seconds"])),
         r["saved_seconds"]),
         (format_share(r["confidence"]), r["confidence"]), r["reason"]]
        for r in plan["rows"]
    ]  # fmt: skip
    columns = ["files", "of", "size", "system", "gain", "saved", "sure", "why"]
    return table(f"Plan {name}: from {plan['home']}", columns, rows, ("of", "size", "gain", "saved", "sure"))


def _abstention(evaluation: dict[str, Any]) -> str:
    a = evaluation["abstention"]
    decided = a["decided"]
    if not decided["count"]:
        return "A plan would decide nowhere in this sweep: no predicted difference is beyond noise."
    return (
        f"At {format_share(a['confidence'])} confidence a plan decides in {format_share(1 - a['abstained'])} "
        "of the "
        "configurations; "
        f"there it names the fastest system in {format_share(decided['accuracy'], 1)} and loses "
        f"{format_share(decided['regret'], 1)} "
        "of its throughput."
    )


def _elimination(steps: list[dict[str, Any]]) -> str:
    """Return what is left when features are dropped one by one, each time learning anew (paper, VII.A)."""
    chosen = next((step for step in steps if step.get("chosen")), None)
    if chosen is None or len(chosen["features"]) == len(steps[0]["features"]):
        return ""
    names = ", ".join(name.replace("_", " ") for name in chosen["features"])
    return (
        f"Learnt anew on {len(chosen['features'])} of {len(steps[0]['features'])} features ({names}), a "
        "decision tree "
        f"names the fastest system in {format_share(chosen['accuracy'], 1)} of the configurations held back "
        "in groups; on "
        "all "
        f"of them in {format_share(steps[0]['accuracy'], 1)}."
    )


def _applications_table(scored: dict[str, Any]) -> Any:
    rows = []
    for name, totals in [*scored["applications"].items(), ("all", scored["total"])]:
        chosen, decided = totals["chosen"], totals["decided"]
        rows.append(
            [name, chosen["count"], _percent(chosen["accuracy"]), chosen["differing"],
             _percent(chosen["accuracy_where_differ"]), _percent(chosen["regret_where_differ"]),
             _percent(totals["abstained"]), _percent(decided["accuracy_where_differ"])]
        )  # fmt: skip
    columns = [
        "application", "samples", "right", "differ", "right where they differ", "regret there", "abstained",
        "right where a plan decides",
    ]  # fmt: skip
    return table(
        "Real applications (`tiercel place apps`), traced once on each system: how often the predicted "
        "system is the "
        "one that measured best, by samples: groups of files of one variant of a program",
        columns,
        rows,
        columns[1:],
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
