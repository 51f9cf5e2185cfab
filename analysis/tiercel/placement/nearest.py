"""Expected times from any study's measurements: of each file part, the configuration that is most like it.

Nothing is learnt here. A part that no measured configuration is like (`_far`) is named and decides nothing,
and a difference between systems is one only where ``tiercel.statistics`` claims it for the measurement that
most of the group's time rests on.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from tiercel.errors import UserError
from tiercel.placement.dataset import numbers_of
from tiercel.placement.estimate import Judgement
from tiercel.placement.features import NAMES, READS, of_sweep
from tiercel.placement.syncs import sync_calls
from tiercel.results.validity import FLAGS
from tiercel.statistics.comparison import Comparison, compare
from tiercel.statistics.noise import UNKNOWN, Floor, floors, lookup, widest
from tiercel.statistics.select import flag_list, newest
from tiercel.units import format_share, format_size

#: log2 of the factors up to which a configuration is like a part.
_TRANSFER, _PER_OPEN, _PROCESSES = 2.0, 3.0, 1.0
#: From so many bytes on (log2), what an open costs does not show.
_LARGE = 24.0
#: Up to so many bytes (log2), a synchronisation costs what its call costs.
_SMALL_SYNC = 16.0
#: From so many on, it costs what its bytes cost.
_LARGE_SYNC = 20.0
_SYNC = 2.0
_SYNC_LARGE = 6.0
#: Standard errors of 90 %.
_NINETY = 1.645


@dataclass
class Measurements:
    """`keys`: a row for each configuration (features as in ``features``, `name`, `words`); `values`: its
    bytes/s on every system, one array a system."""

    site: str
    study: str
    systems: list[str]
    keys: pd.DataFrame
    values: pd.DataFrame
    noise: Mapping[tuple[str, str], Floor]
    notes: list[str] = field(default_factory=list)

    @classmethod
    def load(cls, results: Path, site: str, study: str | None = None) -> Measurements:
        """Return the measurements of `study`, by default of the study with most configurations."""
        from tiercel.results.observations import load_observations  # noqa: PLC0415 -- pyarrow

        observations = load_observations(results)
        return cls.of(observations, site, study, results)

    @classmethod
    def of(cls, observations: pd.DataFrame, site: str, study: str | None, where: Path | str) -> Measurements:
        """As `load`, from the table. UserError when nothing in it compares two storage systems."""
        rows = _usable(observations[observations["site"] == site])
        found: dict[str, Measurements] = {}
        for name in [study] if study is not None else sorted(rows["study"].unique()):
            own = rows[rows["study"] == name]
            if not own.empty and (made := _of_study(own, observations, site, str(name))) is not None:
                found[str(name)] = made
        if not found:
            what = f"study {study}" if study is not None else "any study"
            raise UserError(
                f"{where}: no measurements of {what} on two storage systems or more, no sweep and no model: "
                f"run `tiercel evaluate --site {site}`, or for a model `tiercel evaluate --site {site} "
                "--study placement-quick`, `tiercel place sweep` and `tiercel place train`"
            )
        return max(found.values(), key=lambda m: len(m.keys))

    @property
    def basis(self) -> str:
        return f"measurements of {self.study}"

    def data_seconds(self, parts: pd.DataFrame) -> pd.DataFrame:
        medians = self.values.map(np.median)
        near = self._nearest(parts)
        each = 1.0 / medians.iloc[near].to_numpy(dtype=float)
        # Where no write was measured without its synchronisations, they are the whole time.
        each[self._in_syncs(parts, near)] = 0.0
        return pd.DataFrame(
            parts["bytes"].to_numpy(dtype=float)[:, None] * each, index=parts.index, columns=self.systems
        )

    def _in_syncs(self, parts: pd.DataFrame, near: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        synced = self.keys["fsync"].to_numpy(dtype=float)[near] > 0
        found: npt.NDArray[np.bool_] = synced & (parts["fsync"].to_numpy(dtype=float) > 0)
        return found

    def sync_seconds(self, files: pd.DataFrame) -> pd.DataFrame:
        """By the configuration that brings nearly as many bytes with each call, its unsynced writes taken
        off where they were measured too. Of large calls the bytes count, of small ones the call."""
        calls = files["syncs"].to_numpy(dtype=float)
        found = np.zeros((len(files), len(self.systems)))
        synced = self._synced()
        if len(synced):
            each = np.log2(np.maximum(files["bytes_written"].to_numpy(float) / np.maximum(calls, 1), 1.0))
            cost = self._sync_costs(synced)
            for row in np.flatnonzero(calls > 0):
                near = self._nearest_sync(synced, each[row])
                own = float(synced["amount"].iloc[near])
                large = min(own, each[row]) >= _LARGE_SYNC
                found[row] = calls[row] * cost[near] * (2.0 ** (each[row] - own) if large else 1.0)
        return pd.DataFrame(found, index=files.index, columns=self.systems)

    def outside(self, parts: pd.DataFrame) -> list[str]:
        near = self._nearest(parts)
        said = []
        in_syncs = self._in_syncs(parts, near)
        for row, key, inside in zip(parts.to_dict("records"), near, in_syncs, strict=True):
            words = [] if inside else _far(row, self.keys.iloc[key])
            said.append(f"{self.study} measured nothing like it ({'; '.join(words)})" if words else "")
        return said

    def outside_syncs(self, files: pd.DataFrame) -> list[str]:
        synced, said = self._synced(), []
        for calls, written in zip(files["syncs"], files["bytes_written"], strict=True):
            if not calls:
                said.append("")
                continue
            if not len(synced):
                said.append(f"{self.study} measured no synchronisations")
                continue
            each = math.log2(max(written / calls, 1.0))
            own = float(synced["amount"].iloc[self._nearest_sync(synced, each)])
            near = (
                abs(own - each) <= (_SYNC_LARGE if min(own, each) >= _LARGE_SYNC else _SYNC)
                or max(own, each) <= _SMALL_SYNC
            )
            said.append(
                ""
                if near
                else f"{self.study} measured nothing like it (synchronisations of "
                f"{format_size(round(2**each))} against {format_size(round(2**own))})"
            )
        return said

    def rests_on(self, parts: pd.DataFrame) -> list[str]:
        near = self._nearest(parts)
        words = []
        for row, key in zip(parts.to_dict("records"), near, strict=True):
            own = self.keys.iloc[key]
            apart = _apart(row, own)
            words.append(f"{own['words']}" + (f" ({', '.join(apart)})" if apart else ""))
        return words

    def syncs_rest_on(self, files: pd.DataFrame) -> list[str]:
        synced, words = self._synced(), []
        for calls, written in zip(files["syncs"], files["bytes_written"], strict=True):
            if not calls or not len(synced):
                words.append("")
                continue
            each = math.log2(max(written / calls, 1.0))
            near = self._nearest_sync(synced, each)
            own, amount = self.keys.iloc[int(synced["row"].iloc[near])], float(synced["amount"].iloc[near])
            apart = f" (a call for {format_size(round(2**each))} against {format_size(round(2**amount))})"
            words.append(own["words"] + (apart if abs(each - amount) > 0.5 else ""))
        return words

    def judge(self, better: str, worse: str, ratio: float, rests_on: Mapping[str, float]) -> Judgement:
        """The errors of the measurements that the time rests on, each by its share; and what statistics
        claim of the main one."""
        total = 0.0
        for words, share in rests_on.items():
            if not words:
                continue
            key = self._key(words)
            error = math.hypot(*(float(self.keys.iloc[key][f"error:{s}"]) for s in (better, worse)))
            total += (share * error) ** 2
        spread = _NINETY * math.sqrt(total)
        main = self._key(max(rests_on, key=rests_on.__getitem__))
        compared = self._compared(main, better, worse)
        floor = math.log2(compared.floor.high) if compared.floor.known else 0.0
        doubt = ""
        if compared.verdict != "higher":
            doubt = f"{self.keys.iloc[main]['words']}: {compared.reason or 'it measured slower'}"
        return Judgement(1 - compared.p_value, ratio - spread, ratio + spread, floor, doubt)

    def _compared(self, key: int, better: str, worse: str) -> Comparison:
        own = self.values.iloc[key]
        name = str(self.keys["name"].iloc[key])
        noise = widest([self.noise.get((name, better), UNKNOWN), self.noise.get((name, worse), UNKNOWN)])
        return compare(own[better], own[worse], noise)

    def _key(self, words: str) -> int:
        plain = words.partition(" (")[0]  # without how far it is
        return int(np.flatnonzero(self.keys["words"].to_numpy() == plain)[0])

    def _nearest(self, parts: pd.DataFrame) -> npt.NDArray[np.int64]:
        """Return for each part the number of the configuration that is most like it."""
        known = self.keys
        found = []
        # Unsynced configurations first: what a synchronisation costs is added by the call.
        free = known["fsync"].to_numpy(dtype=float) == 0
        for row in parts.to_dict("records"):
            reads = any(row[h] > 0 for h in READS)
            distance = np.where(known["reads"].to_numpy(dtype=bool) == reads, 0.0, 1e6)
            for name, weight in _WEIGHTS.items():
                own = _random(row) if name == "random" else float(row[name])
                distance = distance + weight * np.abs(known[name].to_numpy(dtype=float) - own)
            distance = distance + np.where(free, 0.0, 100.0)
            found.append(int(distance.argmin()))
        return np.array(found, dtype=np.int64)

    def _synced(self) -> pd.DataFrame:
        """Return the synced writes: `row`, their number, `calls`, and `amount`, log2 of the bytes of one."""
        calls = sync_calls(self.keys)
        rows = np.flatnonzero(calls > 0)
        amount = self.keys["bytes_per_open"].to_numpy(dtype=float)[rows] - np.log2(calls[rows])
        return pd.DataFrame({"row": rows, "calls": calls[rows], "amount": amount})

    def _nearest_sync(self, synced: pd.DataFrame, each: float) -> int:
        return int(np.abs(synced["amount"].to_numpy() - each).argmin())

    def _sync_costs(self, synced: pd.DataFrame) -> npt.NDArray[np.float64]:
        """Return seconds of one call: shape (synced configurations, systems)."""
        medians = self.values.map(np.median).to_numpy(dtype=float)
        out = np.empty((len(synced), len(self.systems)))
        for number, (row, calls) in enumerate(zip(synced["row"], synced["calls"], strict=True)):
            own = self.keys.iloc[row]
            moved = 2.0 ** float(own["bytes_per_open"])
            whole = moved / medians[row]
            plain = own.to_dict() | {"fsync": 0.0, "syncs_per_write": 0.0}
            near = int(self._nearest(pd.DataFrame([plain]))[0])
            rest = self.keys.iloc[near]
            if float(rest["fsync"]) == 0 and not _far(plain, rest):
                whole = np.maximum(whole - moved / medians[near], 1e-7)
            out[number] = whole / calls
        return out


#: What one unit of a feature is apart, in powers of two of the transfer size.
_WEIGHTS = {
    "transfer_size": 1.0, "bytes_per_open": 0.25, "random": 4.0, "processes": 1.0, "mpiio": 8.0,
    "hdf5": 4.0, "collective": 4.0, "shared_file": 2.0, "RO": 1.0, "WO": 0.25,
}  # fmt: skip


def _usable(observations: pd.DataFrame) -> pd.DataFrame:
    """Return measured reads and writes, without traced runs, twins and invalid numbers."""
    invalid = {code for code, flag in FLAGS.items() if flag.severity == "invalid"}
    rows = observations[
        (observations["origin"] == "measured")
        & (observations["role"] == "measured")
        & (observations["twin"] == "a")
        & ~observations["traced"].astype(bool)
        & observations["operation"].isin(["read", "write"])
        & observations["bandwidth"].notna()
        & observations["transfer_size"].notna()
        & observations["bytes_per_process"].notna()
    ]
    good = [not invalid.intersection(flag_list(flags)) for flags in rows["flags"]]
    return rows.loc[np.array(good, dtype=bool)]


def _of_study(rows: pd.DataFrame, observations: pd.DataFrame, site: str, study: str) -> Measurements | None:
    """Return the measurements of one study; None when fewer than two systems have one in common."""
    rows = rows.assign(
        system=np.where(rows["layer"] == "none", rows["storage"], rows["storage"] + "+" + rows["layer"]),
        key=rows["engine"] + " " + rows["experiment"] + "/" + rows["workload"] + "/"
        + rows["nodes"].astype(str) + "x" + rows["processes"].astype(str) + "/" + rows["operation"],
    )  # fmt: skip
    rows = rows.groupby(["key", "system"], group_keys=False)[list(rows.columns)].apply(newest)
    logs = (
        rows.groupby(["key", "system"])["bandwidth"]
        .apply(lambda v: np.log2(v.to_numpy(dtype=float)))
        .unstack("system")
    )
    # The systems that most configurations have in common.
    common = logs.notna().apply(lambda has: tuple(logs.columns[has]), axis=1)
    several = common[common.map(len) > 1]
    if several.empty:
        return None
    systems = list(several.value_counts().index[0])
    whole = logs[systems].dropna()
    left = len(logs) - len(whole)
    first = rows.drop_duplicates("key").set_index("key").loc[whole.index]
    flags = ["collective", "file_view", "preallocate", "unique_directories"]
    first[flags] = first[flags].astype("boolean").fillna(False).astype(bool)
    keys = of_sweep(first)[list(NAMES)]
    keys["reads"] = (first["operation"] == "read").to_numpy()
    keys["name"] = keys.index
    keys["words"] = [_words(row) for row in first.to_dict("records")]
    for system in systems:
        keys[f"error:{system}"] = numbers_of(whole[system], system)[f"error:{system}"]
    noise = _noise(
        observations[(observations["site"] == site) & (observations["study"] == study)], first, systems
    )
    notes = [f"no model and no sweep: expected times are the nearest of {len(whole)} measured configurations "
             f"of study {study}"]  # fmt: skip
    if left:
        notes.append(
            f"{left} configurations of {study} that were not measured on all of {', '.join(systems)} are "
            "left out"
        )
    return Measurements(site, study, systems, keys, 2.0**whole, noise, notes)


def _noise(
    observations: pd.DataFrame, first: pd.DataFrame, systems: list[str]
) -> dict[tuple[str, str], Floor]:
    """Return the A/A noise floor of each configuration and system."""
    find = lookup(floors(observations))
    found = {}
    for key, row in first.iterrows():
        for system in systems:
            storage, _, layer = system.partition("+")
            found[str(key), system] = find({**dict(row), "storage": storage, "layer": layer or "none"})
    return found


def _words(row: Mapping[Any, Any]) -> str:
    """Return what a configuration is, in one phrase without brackets."""
    sync = {"write": ", synced each", "phase": ", synced"}.get(str(row["fsync"]), "")
    count, nodes = int(row["processes"]), int(row["nodes"])
    return (
        f"measured as {row['experiment']}/{row['workload']}: {row['pattern']} {row['operation']} "
        f"{format_size(int(row['transfer_size']))}{sync}, {count} process{'es' if count > 1 else ''}"
        + (f" on {nodes} nodes" if nodes > 1 else "")
        + (f", {row['engine']}" if row["engine"] != "iokernel" else "")
    )


def _random(part: Mapping[Any, Any]) -> float:
    """Return how far the order of accesses is random: 1 for a random order, of which half goes backwards."""
    return min(1.0, 2 * float(part["random"]))


def _apart(part: Mapping[Any, Any], key: pd.Series) -> list[str]:
    """Return how a part differs from its configuration, in words."""
    words = []
    for name, said in (("transfer_size", "transfers"), ("bytes_per_open", "from open to close")):
        if abs(float(part[name]) - float(key[name])) > 0.5:
            here, there = (format_size(round(2 ** float(v))) for v in (part[name], key[name]))
            words.append(f"{said} {here} against {there}")
    if abs(_random(part) - float(key["random"])) > 0.25:
        words.append(f"{format_share(float(part['random']))} of the accesses go backwards")
    if abs(float(part["processes"]) - float(key["processes"])) > 0.25:
        words.append(f"{2 ** float(part['processes']):.0f} processes")
    if float(part["hdf5"]) > float(key["hdf5"]):
        words.append("through HDF5")
    return words


def _far(part: Mapping[Any, Any], key: pd.Series) -> list[str]:
    """Return why a part is not like its configuration; empty when it is like it."""
    words = []
    if bool(key["reads"]) != any(float(part[h]) > 0 for h in READS):
        return ["no reads" if not key["reads"] else "no writes"]
    if float(key["fsync"]) > 0:
        words.append("no writes without synchronisation")
    if abs(float(part["transfer_size"]) - float(key["transfer_size"])) > _TRANSFER:
        here, there = (
            format_size(round(2 ** float(v))) for v in (part["transfer_size"], key["transfer_size"])
        )
        words.append(f"transfers of {here} against {there}")
    sizes = float(part["bytes_per_open"]), float(key["bytes_per_open"])
    if min(sizes) < _LARGE and abs(sizes[0] - sizes[1]) > _PER_OPEN:
        here, there = (format_size(round(2**v)) for v in sizes)
        words.append(f"{here} from open to close against {there}")
    if abs(_random(part) - float(key["random"])) > 0.5:
        words.append("random" if _random(part) > 0.5 else "in order")
    if abs(float(part["processes"]) - float(key["processes"])) > _PROCESSES:
        words.append(f"{2 ** float(part['processes']):.0f} processes")
    for name, said in (("mpiio", "MPI-IO"), ("collective", "collective")):
        if float(part[name]) != float(key[name]):
            words.append(said if part[name] else f"no {said}")
    # What HDF5 does reaches the storage as calls that are measured without it, too; not the other way round.
    if float(key["hdf5"]) > float(part["hdf5"]):
        words.append("no HDF5")
    if any(float(part[h]) > 0 for h in ("RAR", "RAW")) and float(key["RO"]) > 0:
        words.append("reads of what was read or written just before")
    return words
