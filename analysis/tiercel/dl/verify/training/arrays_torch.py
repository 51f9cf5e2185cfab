# mypy: ignore-errors
# ruff: noqa: E402 (warnings are silenced before the imports)
"""Trains a small network on files of numbers with PyTorch, data-parallel: a real application to compare with.

Each format is read with the library, and in the way, that PyTorch programs read it: a sample whenever the
loader asks for one. That matters here; the network learns a mean from the first numbers of a sample.
"""

from __future__ import annotations

import warnings

import numpy as np

warnings.filterwarnings("ignore")
import torch
from common import files_in, run
from learn_torch import learn
from torch import nn
from torch.utils.data import Dataset, IterableDataset, get_worker_info

VALUES = 1024


def _npz(path: str):
    with np.load(path) as archive:
        values = archive["x"]
    return lambda number: values[..., number], _nothing


def _npy(path: str):
    values = np.load(path)
    return lambda number: values[..., number], _nothing


def _hdf5(path: str):
    import h5py  # noqa: PLC0415 (only this format needs it)

    file = h5py.File(path, "r")
    return file["records_0"].__getitem__, file.close


def _csv(path: str):
    import pandas  # noqa: PLC0415 (only this format needs it)

    return pandas.read_csv(path).to_numpy().__getitem__, _nothing


def _nothing() -> None:
    """Of files that are closed as soon as they are read."""


class _Opened:
    """Reads a sample of a file. `opening` returns, of its path, what gives a sample and what closes the file.

    Each sample opens its file, as loaders over many files do. Of one file that all samples are in that would
    be another program than the applications are: they keep it open (`keep_open`), and with it what its
    library holds of it, such as HDF5 whole chunks. Each worker opens it itself: a handle must not cross a
    fork.
    """

    def __init__(self, opening, keep_open: bool) -> None:
        self._opening, self._keep_open, self._open = opening, keep_open, {}

    def __call__(self, path: str, number: int):
        if path in self._open:
            return self._open[path](number)
        sample, close = self._opening(path)
        if self._keep_open:
            self._open[path] = sample
            return sample(number)
        try:
            return sample(number)
        finally:
            close()


class _Indexed:
    """Indexed dataset whose data is not mapped; each worker reads its indices once.

    Megatron core (indexed_dataset.py, _FileBinReader) opens the data file for each sample. fairseq
    (IndexedDataset) keeps it open: `keep_open`.
    """

    def __init__(self, keep_open: bool) -> None:
        self._keep_open = keep_open
        self._indices, self._open = {}, {}

    def __call__(self, path: str, number: int):
        if path not in self._indices:
            self._indices[path] = [
                np.fromfile(path + ending, dtype=np.int64) for ending in (".off.idx", ".sz.idx")
            ]
        offsets, sizes = self._indices[path]
        file = self._open.get(path) or open(path, "rb", buffering=0)  # noqa: PTH123, SIM115 (may stay open)
        found = np.empty(sizes[number], dtype=np.uint8)
        file.seek(offsets[number])
        file.readinto(found)
        if self._keep_open:
            self._open[path] = file
        else:
            file.close()
        return found


class _Mapped:
    """Megatron's mapped dataset: indices and data are mapped, samples copied out when they are collated."""

    def __init__(self) -> None:
        self._open = {}

    def __call__(self, path: str, number: int):
        if path not in self._open:
            self._open[path] = (
                np.memmap(path, mode="r"),
                *(np.memmap(path + ending, dtype=np.int64, mode="r") for ending in (".off.idx", ".sz.idx")),
            )
        data, offsets, sizes = self._open[path]
        return np.array(data[offsets[number] : offsets[number] + sizes[number]])


_OPENING = {"npz": _npz, "npy": _npy, "hdf5": _hdf5, "csv": _csv}


def _reader_of(options):
    """Return what reads a sample, by path and number within the file."""
    if options.format == "indexed_binary":
        return _Indexed(options.keep_open)
    if options.format == "mmap_indexed_binary":
        return _Mapped()
    return _Opened(_OPENING[options.format], options.keep_open)


class Samples(Dataset):
    """The samples of all files; what is learned of one is the mean of its first numbers."""

    def __init__(self, files: list[str], each: int, read) -> None:
        self._files, self._each, self._read = files, each, read

    def __len__(self) -> int:
        return len(self._files) * self._each

    def __getitem__(self, index: int):
        file, number = divmod(index, self._each)
        return _learned(self._read(self._files[file], number))


class Groups(IterableDataset):
    """Samples of Parquet files, a row group after the other: each worker has files of its own."""

    def __init__(self, files: list[str], ranks) -> None:
        self._files = ranks.share(files)

    def __iter__(self):
        from pyarrow import parquet  # noqa: PLC0415 (only this format needs it)

        worker = get_worker_info()
        first, step = (worker.id, worker.num_workers) if worker else (0, 1)
        for path in self._files[first::step]:
            with parquet.ParquetFile(path) as file:
                for number in range(file.num_row_groups):
                    group = file.read_row_group(number, use_threads=False)
                    values = group["data"].combine_chunks().flatten().to_numpy()
                    yield from map(_learned, values.reshape(group.num_rows, -1))


class Made(Dataset):
    """Samples that the program makes itself (synthetic)."""

    def __init__(self, samples: int) -> None:
        self._samples = samples

    def __len__(self) -> int:
        return self._samples

    def __getitem__(self, index: int):
        return _learned(np.random.default_rng(index).integers(0, 256, VALUES, dtype=np.uint8))


def _learned(sample):
    values = np.resize(np.asarray(sample).ravel(), VALUES).astype(np.float32) / 255
    return torch.from_numpy(values), torch.tensor([values.mean()])


def train(options, ranks, spans) -> list[float]:
    if options.format == "synthetic":
        samples: Dataset = Made(options.files * options.samples_per_file)
    else:
        files = files_in(options.data, options.format)
        samples = (
            Groups(files, ranks)
            if options.format == "parquet"
            else Samples(files, options.samples_per_file, _reader_of(options))
        )

    def network() -> nn.Module:
        return nn.Sequential(nn.Linear(VALUES, 64), nn.ReLU(), nn.Linear(64, 1))

    return learn(options, ranks, spans, samples, network, nn.functional.mse_loss)


if __name__ == "__main__":
    run(__doc__.splitlines()[0], train)
