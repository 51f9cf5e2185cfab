"""A placement model of one site: learnt from a sweep, saved with its card, refused elsewhere.

It is saved as what determines it, in formats that run no code: the training data (``sweep.parquet``), the
errors on held-out configurations (``model-errors.parquet``), and the recipe, splits and limits
(``model.json``, the model card). Loading learns it again, which takes a second or two. The card holds some
predictions: a model that does not repeat them (another version of scikit-learn) says so. Nothing is ever
unpickled.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import sklearn
from sklearn.preprocessing import StandardScaler

import tiercel
from tiercel.atomic_file import write_text
from tiercel.errors import UserError
from tiercel.placement.dataset import PROVENANCE, TABLE, load_sweep, of_systems, vectors
from tiercel.placement.estimate import Judgement
from tiercel.placement.features import FEATURES, NAMES
from tiercel.placement.score import best_of, differ
from tiercel.placement.syncs import unsynced
from tiercel.placement.throughput import ThroughputModel
from tiercel.units import format_size

#: 2: synchronisations count by the call.
FORMAT = 3
CARD, ERRORS = "model.json", "model-errors.parquet"
#: log2 by which predictions of a model learnt again may differ from the card's.
_SAME = 0.02
_CHECKED = 20


@dataclass
class PlacementModel:
    """`throughput_model` predicts; `card` tells where it comes from and how good it is."""

    site: str
    systems: list[str]
    table: pd.DataFrame
    throughput_model: ThroughputModel
    card: dict[str, Any]
    notes: list[str] = field(default_factory=list)

    @classmethod
    def train(cls, table: pd.DataFrame, features: tuple[str, ...] = NAMES, seed: int = 0) -> PlacementModel:
        """Learn from a dataset (`load_sweep`)."""
        provenance = table.attrs["provenance"]
        if isinstance(provenance["site"], list):
            raise UserError(
                f"the sweep mixes sites ({', '.join(provenance['site'])}): a model is of one site"
            )
        model = ThroughputModel(list(table.attrs["systems"]), features, seed).fit(table)
        found = cls(provenance["site"], model.systems, table, model, {}, class_notes(table))
        found.card = found._card()
        return found

    def _card(self) -> dict[str, Any]:
        model, table = self.throughput_model, self.table
        sample = vectors(table).iloc[:: max(1, len(table) // _CHECKED)]
        labels = pd.Series(best_of(table)).value_counts()
        return {
            "format": FORMAT,
            "tiercel": tiercel.__version__,
            "scikit_learn": sklearn.__version__,
            "site": self.site,
            "systems": self.systems,
            "method": "extremely randomised trees on log2 throughput, one output for each system; seconds of "
            "each synchronisation added by the call; cross-conformal intervals from grouped folds",
            "features": {name: FEATURES[name] for name in model.features},
            "seed": model.seed,
            "data": {k: table.attrs["provenance"][k] for k in
                     ("study", "engine", "host", "kernel", "began", "ended", "configurations", "left_out",
                     "flags", "origin")},
            "sync_seconds": {
                s: {str(2**n): float(model.syncs.seconds(np.ones(1), np.full(1, 2.0**n))[0, i])
                    for n in (6, 12, 16, 20)}
                for i, s in enumerate(self.systems)
            },
            "best": {s: int(labels.get(s, 0)) for s in self.systems},
            "systems_differ": int(differ(table).sum()),
            "intervals_90": {s: model.interval(s) for s in self.systems},
            "noise_floor": {f"{a} / {b}": 2.0**v for (a, b), v in model.floors.items() if a < b},
            "training_range": {n: [float(v.min()), float(v.max())] for n, v in vectors(table).items()},
            "check": {"rows": sample.index.tolist(), "predicted": model.predict(sample).to_numpy().tolist()},
            "notes": self.notes,
            "limits": LIMITS,
        }  # fmt: skip

    def save(self, folder: Path, sweep: Path) -> Path:
        """Write the model into `folder` (training data from folder `sweep`) and return its card's path."""
        folder.mkdir(parents=True, exist_ok=True)
        if folder.resolve() != sweep.resolve():
            for name in (TABLE, PROVENANCE):
                shutil.copyfile(sweep / name, folder / name)
        residuals = pd.DataFrame(
            self.throughput_model.residuals, index=self.table.index, columns=self.systems
        )
        residuals.to_parquet(folder / ERRORS)
        return write_text(folder / CARD, json.dumps(self.card, indent=1) + "\n")

    @classmethod
    def load(cls, folder: Path, site: str | None = None) -> PlacementModel:
        """Return the model in `folder`. UserError for none, a damaged one, or one of another site than
        `site`."""
        path = folder / CARD
        try:
            card = json.loads(path.read_text(encoding="utf-8"))
            own, systems, features, seed = (
                card["site"],
                card["systems"],
                tuple(card["features"]),
                int(card["seed"]),
            )
            checked, expected = card["check"]["rows"], np.array(card["check"]["predicted"], dtype=float)
        except FileNotFoundError:
            raise UserError(
                f"{path}: no model yet: run `tiercel place train --site {site or 'SITE'}`"
            ) from None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UserError(f"{path}: not a complete model card: {error!r}: train it again") from None
        if card.get("format") != FORMAT:
            raise UserError(f"{path}: format {card.get('format')}, not {FORMAT}: train it again")
        if site is not None and own != site:
            raise UserError(
                f"{path}: this model was learnt on site {own}, whose storage systems "
                f"({', '.join(systems)}) are not "
                f"those of {site}: run the sweep on {site} and train"
            )
        if unknown := [name for name in features if name not in NAMES]:
            raise UserError(f"{path}: unknown feature {unknown[0]}: train it again")
        table = load_sweep(folder)
        if not set(systems) <= set(table.attrs["systems"]) or table.attrs["provenance"]["site"] != own:
            raise UserError(
                f"{folder}: the card and the training data are not of the same sweep: train it again"
            )
        table = of_systems(table, systems)
        try:
            residuals = pd.read_parquet(folder / ERRORS).loc[table.index, systems].to_numpy(dtype=float)
        except (OSError, ValueError, KeyError) as error:
            raise UserError(
                f"{folder / ERRORS}: not the errors of this model: {error}: train it again"
            ) from None
        model = ThroughputModel(systems, features, seed).fit(table, calibrate=False)
        model.calibrate(table, residuals)
        found = cls(own, systems, table, model, card, list(card["notes"]))
        again = model.predict(vectors(table).loc[checked]).to_numpy()
        if again.shape != expected.shape or np.abs(np.log2(again / expected)).max() > _SAME:
            found.notes.append(
                f"learnt again with scikit-learn {sklearn.__version__} it predicts otherwise than its card "
                "says "
                f"(made with {card['scikit_learn']}): train it again"
            )
        return found

    # -- what a plan asks (`estimate.Estimator`) -----------------------------------------------------------

    @property
    def study(self) -> str:
        return str(self.card["data"]["study"])

    @property
    def basis(self) -> str:
        return f"model of {self.study}"

    def data_seconds(self, parts: pd.DataFrame) -> pd.DataFrame:
        return self.throughput_model.predict(unsynced(parts)).rdiv(parts["bytes"], axis=0)

    def sync_seconds(self, files: pd.DataFrame) -> pd.DataFrame:
        calls, amount = files["syncs"].to_numpy(dtype=float), files["bytes_written"].to_numpy(dtype=float)
        found = self.throughput_model.syncs.seconds(calls, amount)
        return pd.DataFrame(found, index=files.index, columns=self.systems)

    def outside_syncs(self, files: pd.DataFrame) -> list[str]:
        """Fewer bytes than any that were synced are no reason: what is paid is the call."""
        known = self.throughput_model.syncs
        calls = files["syncs"].to_numpy(dtype=float)
        each = files["bytes_written"].to_numpy(dtype=float) / np.maximum(calls, 1)
        if not known.curves:
            return ["outside the training data (nothing was synchronised there)" if n else "" for n in calls]
        return [
            f"outside the training data ({b:.4g} bytes a synchronisation, {known.largest:.4g} at most)"
            if n and b > 2 * known.largest
            else ""
            for n, b in zip(calls, each, strict=True)
        ]

    def rests_on(self, parts: pd.DataFrame) -> list[str]:
        return [self.basis] * len(parts)

    def syncs_rest_on(self, files: pd.DataFrame) -> list[str]:
        return [self.basis if n else "" for n in files["syncs"]]

    def judge(self, better: str, worse: str, ratio: float, rests_on: Mapping[str, float]) -> Judgement:
        learnt = self.throughput_model
        low, high = learnt.gain_interval(better, worse, ratio)
        return Judgement(learnt.confidence(better, worse, ratio), low, high, learnt.floors[better, worse])

    # -- where a file lies beside the training data ----------------------------------------------------------

    def outside(self, rows: pd.DataFrame) -> list[str]:
        """Return for each row what lies outside the training data, in words; empty where nothing does.

        Each feature has its range; and a row as a whole may be farther from every configuration than those
        are from each other (99 % of their distances to their nearest; each feature scaled to one).
        """
        known = vectors(self.table)[list(self.throughput_model.features)]
        asked = rows[list(self.throughput_model.features)].copy()
        if "hdf5" in known and not known["hdf5"].any():
            # Without HDF5 in the sweep a file behind it is what reaches the storage: MPI-IO or POSIX.
            asked["hdf5"] = 0.0
        low, high = known.min(), known.max()
        words: list[list[str]] = [[] for _ in range(len(rows))]
        for name in known.columns:
            values = asked[name].to_numpy(dtype=float)
            for i in np.flatnonzero((values < low[name] - 0.5) | (values > high[name] + 0.5)):
                words[i].append(_said(name, values[i], float(low[name]), float(high[name])))
        scaler = StandardScaler().fit(known)
        own, theirs = scaler.transform(known), scaler.transform(asked)
        limit = float(np.quantile(_nearest(own, own, skip_self=True), 0.99))
        for i in np.flatnonzero(_nearest(theirs, own) > max(2 * limit, 1e-9)):
            if not words[i]:
                words[i].append("no configuration of the sweep is like it")
        return [f"outside the training data ({'; '.join(w)})" if w else "" for w in words]


LIMITS = (
    "Learnt from synthetic files on an otherwise idle part of the site: load by others is not in it.",
    "The features are those of Table I of PrismIO (2023): what they do not tell (compression, file counts in "
    "a folder, think time) is not seen.",
    "Expected gains are of time in I/O calls, not of the program's run time.",
)


def class_notes(table: pd.DataFrame) -> list[str]:
    """Return sentences on systems that are best too seldom to learn when."""
    best = pd.Series(best_of(table), index=table.index)
    notes = []
    for system in table.attrs["systems"]:
        count = int((best == system).sum())
        if count == 0:
            notes.append(f"{system} is best in none of the {len(table)} configurations")
        elif count == 1:
            name = best.index[best == system][0]
            notes.append(
                f"{system} is best in one configuration only ({name}): no classifier can learn and be "
                "tested on one "
                "sample, so classifiers are trained without it; predicted throughputs do use it"
            )
    return notes


def learnable(table: pd.DataFrame) -> pd.DataFrame:
    """Return the configurations whose best system is best more than once: what classifiers can learn."""
    best = pd.Series(best_of(table), index=table.index)
    counts = best.map(best.value_counts())
    kept = table[counts > 1]
    kept.attrs.update(table.attrs)
    return kept


def _nearest(
    rows: npt.NDArray[np.float64], known: npt.NDArray[np.float64], skip_self: bool = False
) -> npt.NDArray[np.float64]:
    from sklearn.neighbors import NearestNeighbors  # noqa: PLC0415

    distance, _ = NearestNeighbors(n_neighbors=2 if skip_self else 1).fit(known).kneighbors(rows)
    found: npt.NDArray[np.float64] = distance[:, -1]
    return found


def _said(name: str, value: float, low: float, high: float) -> str:
    if name in ("transfer_size", "accesses_per_open", "bytes_per_open", "processes"):
        value, low, high = 2**value, 2**low, 2**high
    size = name in ("transfer_size", "bytes_per_open")
    told, least, most = (format_size(v) if size else f"{v:.4g}" for v in (value, low, high))
    return f"{name} {told} is outside {least} to {most}"
