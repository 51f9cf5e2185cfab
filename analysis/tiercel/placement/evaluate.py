"""How well a sweep predicts the best system: every classifier, three ways of holding back, accuracy and
regret.

The paper's way (ten random 90/10 splits, section V.A) stands beside the honest ones (`splits`).
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd

from tiercel.placement.classifiers import classifiers
from tiercel.placement.dataset import throughput, vectors
from tiercel.placement.features import NAMES
from tiercel.placement.model import class_notes, learnable
from tiercel.placement.score import Names, best_of, differ, mean_score, score
from tiercel.placement.splits import KINDS, folds, splits
from tiercel.placement.throughput import ThroughputModel

#: Our own way of choosing: predicted throughput on each system, the highest taken.
OURS = "predicted-throughput"
#: Always the system that is best most often in training: what a model must beat.
BASELINE = "always-the-same"
#: Below this confidence a plan leaves a file where it is.
CONFIDENCE = 0.9


def evaluate_sweep(table: pd.DataFrame, seed: int = 0, kinds: tuple[str, ...] = KINDS) -> dict[str, Any]:
    """Return accuracy, regret and abstention of every model on a dataset, as plain values for JSON."""
    kept = learnable(table)
    models: dict[str, dict[str, Any]] = {}
    for name in (BASELINE, *classifiers, OURS):
        models[name] = {kind: _scored(name, kept, kind, seed) for kind in kinds}
    labels = pd.Series(best_of(table)).value_counts()
    return {
        "configurations": len(table),
        "systems": table.attrs["systems"],
        "best": {s: int(labels.get(s, 0)) for s in table.attrs["systems"]},
        "systems_differ": int(differ(table).sum()),
        "trained_without": len(table) - len(kept),
        "notes": class_notes(table),
        "models": models,
        "abstention": abstention(kept),
    }


def _scored(name: str, table: pd.DataFrame, kind: str, seed: int) -> dict[str, float]:
    clear = differ(table)
    scores = []
    for train, test in splits(kind, vectors(table), seed):
        part = table.iloc[test]
        part.attrs.update(table.attrs)
        scores.append(score(part, chosen_by(name, table, train, test, seed), clear[test]))
    return mean_score(scores)


def chosen_by(
    name: str, table: pd.DataFrame, train: Any, test: Any, seed: int = 0, features: tuple[str, ...] = NAMES
) -> Names:
    """Return the systems that model `name`, trained on rows `train`, chooses for rows `test`."""
    learning = table.iloc[train]
    learning.attrs.update(table.attrs)
    labels = best_of(learning)
    rows = vectors(table).iloc[test]
    if name == BASELINE or len(set(labels)) == 1:
        return np.full(len(test), pd.Series(labels).mode()[0], dtype=object)
    if name == OURS:
        model = ThroughputModel(list(table.attrs["systems"]), features, seed)
        return model.fit(learning, calibrate=False).choose(rows)
    classifier = classifiers.get(name)(seed)
    # What does not vary teaches nothing, but would change how ties between the others are broken.
    taught = vectors(learning)
    columns = [n for n in features if taught[n].nunique() > 1] or list(features)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a network that stops before it converged is scored as it is
        classifier.fit(taught[columns].to_numpy(), labels.astype(str))
        found: Names = classifier.predict(rows[columns].to_numpy()).astype(object)
    return found


def abstention(table: pd.DataFrame, confidence: float = CONFIDENCE) -> dict[str, Any]:
    """Return how often a plan would abstain, and how good it is where it does not (grouped folds).

    It abstains where the best predicted system is not faster than the next with `confidence`, or by no more
    than the noise floor. Errors behind the confidence are those of configurations held back.
    """
    systems = list(table.attrs["systems"])
    model = ThroughputModel(systems).fit(table)
    speed = throughput(table)
    predicted = np.log2(speed.to_numpy()) - model.residuals
    order = np.argsort(-predicted, axis=1)
    decided = np.zeros(len(table), dtype=bool)
    for row, (first, second) in enumerate(order[:, :2]):
        ratio = predicted[row, first] - predicted[row, second]
        a, b = systems[first], systems[second]
        decided[row] = ratio > model.floors[a, b] and model.confidence(a, b, ratio) >= confidence
    chosen = np.array(systems, dtype=object)[order[:, 0]]
    clear = differ(table)
    found: dict[str, Any] = {"confidence": confidence, "abstained": float(1 - decided.mean())}
    for name, mask in (("decided", decided), ("abstained_rows", ~decided)):
        part = table[mask]
        part.attrs.update(table.attrs)
        found[name] = score(part, chosen[mask], clear[mask]).row()
    return found


def eliminate(name: str, table: pd.DataFrame, seed: int = 0, tolerance: float = 0.01) -> list[dict[str, Any]]:
    """Return recursive feature elimination: features dropped one by one, and the accuracy at each step.

    The accuracy is that of `evaluate_sweep` with groups held back, on the same splits. Each step drops the
    feature whose loss costs least (section VII.A: until the accuracy starts to drop). The row with `chosen`
    is the smallest set within `tolerance` of the best accuracy.
    """
    kept = learnable(table)
    held = list(splits("grouped", vectors(kept), seed))

    def accuracy(features: tuple[str, ...]) -> float:
        right = [
            (chosen_by(name, kept, train, test, seed, features) == best_of(kept)[test]).mean()
            for train, test in held
        ]
        return float(np.mean(right))

    features = tuple(n for n in NAMES if vectors(kept)[n].nunique() > 1)
    steps: list[dict[str, Any]] = [
        {"features": list(features), "dropped": None, "accuracy": accuracy(features)}
    ]
    while len(features) > 1:
        tried = [(accuracy(tuple(f for f in features if f != out)), out) for out in features]
        best, out = max(tried, key=lambda pair: pair[0])
        features = tuple(f for f in features if f != out)
        steps.append({"features": list(features), "dropped": out, "accuracy": best})
    top = max(step["accuracy"] for step in steps)
    chosen = max(i for i, step in enumerate(steps) if step["accuracy"] >= top - tolerance)
    for i, step in enumerate(steps):
        step["chosen"] = i == chosen
    return steps


def importances(table: pd.DataFrame, name: str = "decision-tree", seed: int = 0) -> pd.DataFrame:
    """Return importances of the features (index): `impurity` of the fitted trees, and `permutation`.

    Permutation: accuracy lost on held-back groups when one feature's values are shuffled, mean over five
    folds; unlike impurity it is not raised by a feature's number of levels.
    """
    from sklearn.inspection import permutation_importance  # noqa: PLC0415

    kept = learnable(table)
    x, y = vectors(kept).to_numpy(), best_of(kept).astype(str)
    if len(set(y)) < 2:
        return pd.DataFrame({"impurity": 0.0, "permutation": 0.0}, index=pd.Index(NAMES, name="feature"))
    lost = []
    for train, test in folds(vectors(kept), 5):
        classifier = classifiers.get(name)(seed).fit(x[train], y[train])
        found = permutation_importance(classifier, x[test], y[test], n_repeats=5, random_state=seed)
        lost.append(found.importances_mean)
    whole = classifiers.get(name)(seed).fit(x, y)
    impurity = getattr(whole, "feature_importances_", np.full(len(NAMES), np.nan))
    return pd.DataFrame(
        {"impurity": impurity, "permutation": np.mean(lost, axis=0)}, index=pd.Index(NAMES, name="feature")
    ).sort_values("permutation", ascending=False)
