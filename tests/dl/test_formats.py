"""Formats: what dlkernel writes, others can read; and damage is named."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pandas as pd
import pytest
from PIL import Image

from tiercel.dl.kernel.crc import crc32c, masked
from tiercel.dl.kernel.failure import Failure
from tiercel.dl.kernel.files import FileSpec, file_spec, path_of
from tiercel.dl.kernel.formats import Format, format_of
from tiercel.dl.kernel.io import IO
from tiercel.dl.kernel.spec import Spec

from .kernel import run, spec

FORMATS = ["tfrecord", "hdf5", "csv", "npz", "npy", "jpeg", "png", "indexed_binary", "mmap_indexed_binary"]
MANY = {"num_samples_per_file": 3}


def written(folder: Path, name: str, **dataset: Any) -> tuple[Format, Spec, FileSpec, str]:
    if name not in ("jpeg", "png"):
        dataset = {**MANY, **dataset}
    chosen = spec(dataset={"format": name, "record_length_bytes": 10_000, **dataset})
    handler, file = format_of(name), file_spec(chosen, "train", 0)
    path = folder / f"f.{name}"
    handler.write(str(path), file, chosen)
    return handler, chosen, file, str(path)


def read_all(handler: Format, chosen: Spec, path: str) -> list[int]:
    """Return the bytes of each sample, read by the handler."""
    calls = IO()
    if handler.streams:
        return [each for count, each in handler.stream(path, chosen, calls) for _ in range(count)]
    opened = handler.open(path, chosen, calls)
    sizes = [opened.read(sample) for sample in range(chosen.per_file)]
    opened.close()
    return sizes


@pytest.mark.parametrize("name", FORMATS)
def test_what_was_written_is_read(tmp_path: Path, name: str) -> None:
    handler, chosen, file, path = written(tmp_path, name)
    sizes = read_all(handler, chosen, path)
    assert len(sizes) == file.samples
    assert all(size >= file.sample_bytes for size in sizes)
    samples, each = handler.describe(path, chosen, IO())
    assert samples in (None, file.samples)
    assert each == file.sample_bytes
    assert handler.expected_size(file, chosen) in (None, Path(path).stat().st_size)


@pytest.mark.parametrize("name", ["npy", "npz", "indexed_binary"])
def test_direct_reads_give_the_same(tmp_path: Path, name: str) -> None:
    handler, chosen, file, path = written(tmp_path, name)
    direct = spec(dataset={"format": name, **MANY}, reader={"odirect": True})
    try:
        assert read_all(handler, direct, path) == read_all(handler, chosen, path)
    except Failure as failure:  # tmpfs of old kernels
        assert "no direct reads" in str(failure)
    assert file.samples == 3


@pytest.mark.parametrize("name", ["indexed_binary", "mmap_indexed_binary"])
@pytest.mark.parametrize(
    ("which", "numbers", "says"),
    [
        (".sz.idx", [0, 0, 0], "has a sample of 0 bytes"),
        (".sz.idx", [2**62, 2**62, 2**62], "do not follow each other"),
        (".off.idx", [0, 0, 0], "do not follow each other"),
        (".sz.idx", [1000, 1000, 1], "its index knows of"),
    ],
)
def test_an_index_that_says_less_is_no_dataset(
    tmp_path: Path, name: str, which: str, numbers: list[int], says: str
) -> None:
    """Trainings read nothing, or one sample again and again, and passed with AU 94 %."""
    handler, chosen, file, path = written(tmp_path, name)
    numbers = [file.sample_bytes if number == 1000 else number for number in numbers]
    Path(path + which).write_bytes(struct.pack("<3q", *numbers))
    with pytest.raises(Failure, match=says):
        read_all(handler, chosen, path)


def test_the_check_value_of_crc_32c() -> None:
    assert crc32c(b"123456789") == 0xE3069283  # the check value in the catalogue of CRCs
    # From RFC 3720, appendix B.4: 32 bytes of zeros.
    assert crc32c(bytes(32)) == 0x8A9136AA
    assert masked(0) == 0xA282EAD8


def test_tfrecord_by_its_definition(tmp_path: Path) -> None:
    _, _, file, path = written(tmp_path, "tfrecord")
    data, records = Path(path).read_bytes(), []
    while data:
        (length, crc) = struct.unpack_from("<QI", data)
        body = data[12 : 12 + length]
        assert masked(crc32c(data[:8])) == crc
        assert masked(crc32c(body)) == struct.unpack_from("<I", data, 12 + length)[0]
        records.append(body)
        data = data[16 + length :]
    assert len(records) == 3
    # The protocol buffer: Example{features{feature{"image": bytes}, feature{"size": int64}}}.
    assert b"\x0a\x05image" in records[0]
    assert b"\x0a\x04size" in records[0]
    assert len(records[0]) - file.sample_bytes < 80
    assert records[0] != records[1]


def test_numpy_reads_npz_and_npy(tmp_path: Path) -> None:
    _, _, file, path = written(tmp_path, "npz", record_element_type="float32")
    array = np.load(path)["x"]
    assert array.shape == (*file.shape, 3)
    assert array.dtype == np.float32
    assert np.load(path)["y"].shape == (3,)
    _, _, file, path = written(tmp_path, "npy")
    assert np.load(path).shape == (*file.shape, 3)


def test_compressed_npz_is_read_by_both(tmp_path: Path) -> None:
    handler, chosen, file, path = written(tmp_path, "npz", compression="zip")
    assert np.load(path)["x"].nbytes == 3 * file.sample_bytes
    assert read_all(handler, chosen, path) == [file.sample_bytes] * 3


def test_hdf5_has_chunks_and_compression(tmp_path: Path) -> None:
    _, _, file, path = written(
        tmp_path, "hdf5", enable_chunking=True, chunk_size=2000, compression="gzip", compression_level=4
    )
    with h5py.File(path) as found:
        data = found["records_0"]
        assert data.shape == (3, *file.shape)
        assert data.compression == "gzip"
        # Rows of 100 bytes: 20 of them are 2,000 bytes.
        assert data.chunks == (1, 20, 100)
        assert data.id.get_storage_size() < 0.8 * data.nbytes  # about half of it compresses away


def test_hdf5_of_dlio_2_0_0_has_another_name(tmp_path: Path) -> None:
    _, _, _, path = written(tmp_path, "hdf5")
    with h5py.File(path, "r+") as found:
        assert found["records"] == found["records_0"]  # ours has both: any DLIO reads it
        del found["records_0"]  # as DLIO 2.0.0 makes it
    done = run(tmp_path / "trains", dataset={"format": "hdf5", "num_files_train": 2}, train={"epochs": 1})
    assert done.returncode == 0, done.stderr
    for made in (tmp_path / "trains" / "data" / "train").iterdir():
        with h5py.File(made, "r+") as found:
            del found["records_0"]
    again = run(
        tmp_path / "trains", dataset={"format": "hdf5", "num_files_train": 2}, train={"epochs": 1},
        workflow={"generate_data": False},
    )  # fmt: skip
    assert again.returncode == 0, again.stderr


@pytest.mark.parametrize(
    ("size", "chunks"), [(50, (1, 1, 50)), (10_000, (1, 100, 100)), (25_000, (2, 100, 100))]
)
def test_chunks_of_a_given_size(tmp_path: Path, size: int, chunks: tuple[int, ...]) -> None:
    _, _, _, path = written(tmp_path, "hdf5", enable_chunking=True, chunk_size=size)
    with h5py.File(path) as found:
        assert found["records_0"].chunks == chunks


@pytest.mark.parametrize("compression", ["none", "gzip", "bz2", "zip", "xz"])
def test_pandas_reads_csv(tmp_path: Path, compression: str) -> None:
    handler, chosen, file, path = written(
        tmp_path, "csv", record_element_type="float32", record_dims=[2500], compression=compression
    )
    how = None if compression == "none" else compression
    table = pd.read_csv(path, compression=how)
    assert table.shape == (3, 2500)
    assert table.to_numpy().max() < 1
    assert len(read_all(handler, chosen, path)) == 3
    if compression == "none":
        # Ten characters a number, as CANDLE's 700 MB; and the names 0 to 2499, each with a comma or the end.
        names = 10 * 1 + 90 * 2 + 900 * 3 + 1500 * 4 + 2500
        assert Path(path).stat().st_size == 3 * 2500 * 10 + names
    assert file.samples == 3


@pytest.mark.parametrize("length", [3000, 20_000, 153_600])
def test_jpeg_files_are_as_large_as_stated(tmp_path: Path, length: int) -> None:
    _, _, file, path = written(tmp_path, "jpeg", record_length_bytes=length)
    assert Path(path).stat().st_size == length
    with Image.open(path) as image:
        image.load()
        assert (image.height, image.width) == file.shape


def test_png_is_an_image_of_the_samples_size(tmp_path: Path) -> None:
    _, _, file, path = written(tmp_path, "png")
    with Image.open(path) as image:
        assert (image.height, image.width) == file.shape


@pytest.mark.parametrize(
    "name", [n for n in FORMATS if n not in ("hdf5", "indexed_binary", "mmap_indexed_binary", "npy")]
)
def test_a_damaged_sample_is_named(tmp_path: Path, name: str) -> None:
    """Formats with checksums (or, CSV, with numbers) notice a byte that changed."""
    handler, chosen, _, path = written(tmp_path, name)
    data = bytearray(Path(path).read_bytes())
    where = {"jpeg": 2, "csv": len(data) // 2}.get(name, len(data) // 2)
    data[where : where + 4] = b"\x00XY\xff" if name != "csv" else b"abcd"
    Path(path).write_bytes(bytes(data))
    with pytest.raises(Failure) as caught:
        read_all(handler, chosen, path)
    assert path in str(caught.value)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("share", [0.0, 0.01, 0.6])
def test_a_cut_file_is_named(tmp_path: Path, name: str, share: float) -> None:
    handler, chosen, _, path = written(tmp_path, name)
    size = Path(path).stat().st_size
    with Path(path).open("r+b") as file:
        file.truncate(int(size * share))
    if name == "tfrecord" and share == 0:
        assert read_all(handler, chosen, path) == []  # no record at all is a whole file; the check sees it
        return
    with pytest.raises(Failure) as caught:
        assert len(read_all(handler, chosen, path)) == chosen.per_file, f"{path}: too few samples"
        raise Failure(path)  # pragma: no cover (CSV cut at a row's end: noticed by the number of rows)
    assert path in str(caught.value)


@pytest.mark.parametrize("lacking", [1, 3000])
def test_a_row_that_is_shorter_than_its_heading_is_named(tmp_path: Path, lacking: int) -> None:
    """A file of one row says only in its heading how long that is."""
    path = tmp_path / "one.csv"
    path.write_text(",".join(map(str, range(5000))) + "\n" + ",".join(["7"] * (5000 - lacking)) + "\n")
    chosen = spec(dataset={"format": "csv", "record_length_bytes": 5000})
    telling = f"sample 0 is damaged: {5000 - lacking} columns where the heading has 5000"
    with pytest.raises(Failure, match=telling):
        format_of("csv").open(str(path), chosen, IO())


def test_the_same_seed_gives_the_same_file(tmp_path: Path) -> None:
    for name in FORMATS:
        contents = []
        for folder in ("a", "b"):
            (tmp_path / folder).mkdir(exist_ok=True)
            contents.append(Path(written(tmp_path / folder, name)[3]).read_bytes())
        if name != "hdf5":  # HDF5 notes the time in its headers
            assert contents[0] == contents[1], name


def test_sizes_vary_with_a_deviation() -> None:
    chosen = spec(dataset={"record_length_bytes": 1_000_000, "record_length_bytes_stdev": 200_000,
                           "num_files_train": 300})  # fmt: skip
    sizes = [file_spec(chosen, "train", n).sample_bytes for n in range(300)]
    # Both sides vary by 10 %, so a product does by 14 %: DLIO's way of drawing.
    assert np.mean(sizes) == pytest.approx(1_000_000, rel=0.05)
    assert np.std(sizes) == pytest.approx(141_000, rel=0.2)


def test_mapped_files_have_the_names_of_dlio() -> None:
    # DLIO 2.0.0 looks for files that end with the format's name.
    found = spec(dataset={"format": "mmap_indexed_binary", "num_files_train": 3})
    assert path_of(found, "train", 1) == "train/img_1_of_3.mmap_indexed_binary"


def test_a_mapped_file_is_mapped_once_and_its_samples_are_whole(tmp_path: Path) -> None:
    of = spec(
        dataset={"format": "mmap_indexed_binary", "num_samples_per_file": 3, "record_length_bytes": 400}
    )
    handler, path = format_of("mmap_indexed_binary"), str(tmp_path / "a")
    handler.write(path, file_spec(of, "train", 0), of)
    calls = IO()
    opened = handler.open(path, of, calls)
    assert [opened.read(n) for n in range(3)] == [400, 400, 400]
    opened.close()
    # Two indices of three 64-bit numbers, and three samples: 2 * 24 + 3 * 400.
    assert (calls.counts.opens, calls.counts.bytes) == (3, 1248)
    Path(path + ".sz.idx").write_bytes(b"")
    with pytest.raises(Failure, match=r"a\.sz\.idx: is empty"):
        format_of("mmap_indexed_binary").open(path, of, IO())
