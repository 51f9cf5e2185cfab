"""The dataset of a deep-learning workload file: how many files of how many samples of which shape."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from tiercel.dl.files.parts import LARGEST, Count, Positive, renamed
from tiercel.documents import Document

Format = Literal["tfrecord", "hdf5", "hdf5_opt", "csv", "npz", "npy", "jpeg", "png", "indexed_binary",
                 "mmap_indexed_binary", "parquet", "synthetic"]  # fmt: skip
Compression = Literal["none", "gzip", "lzf", "bz2", "zip", "xz", "snappy", "lz4", "zstd"]

#: Bytes of one element, for the types that all formats know.
ELEMENT_BYTES = {
    "uint8": 1, "int8": 1, "uint16": 2, "int16": 2, "float16": 2, "uint32": 4, "int32": 4, "float32": 4,
    "uint64": 8, "int64": 8, "float64": 8,
}  # fmt: skip
ElementType = Literal["uint8", "int8", "uint16", "int16", "float16", "uint32", "int32", "float32",
                      "uint64", "int64", "float64"]  # fmt: skip

_COMPRESSIONS = {"hdf5": {"gzip", "lzf"}, "hdf5_opt": {"gzip", "lzf"}, "npz": {"zip"},
                 "csv": {"gzip", "bz2", "zip", "xz"},
                 "parquet": {"gzip", "snappy", "lz4", "zstd"}}  # fmt: skip
#: Of a sample that may grow. (HDF5's library ends the process where it cannot hold the index of its chunks.)
_MOST_ELEMENTS = 2**40
_RENAMED = {"record_length": "record_length_bytes", "record_length_stdev": "record_length_bytes_stdev",
            "record_length_resize": "record_length_bytes_resize"}  # fmt: skip


def _no(value: Any) -> Any:
    return "none" if value is None or value is False else value


def _whole(value: Any) -> Any:
    return round(value) if isinstance(value, float) and math.isfinite(value) else value


def _named(value: Any) -> Any:
    return {"name": value} if isinstance(value, str) else value


class Hdf5(Document):
    chunk_dims: list[Positive] = []
    num_dset_per_record: Positive = 1
    max_shape: list[Positive] = []


class ParquetColumn(Document):
    """A column of Parquet files: numbers, or lists of `size` numbers; words, bytes, truth values."""

    name: str = Field(min_length=1)
    dtype: ElementType | Literal["list", "string", "binary", "bool"] = "float32"
    size: Positive = 1
    read: bool = True

    @property
    def bytes(self) -> int:
        """Return the bytes of a sample's part, about: what a file holds depends on how it is encoded."""
        if self.dtype in ("string", "bool"):  # one, whatever the size
            return 12 if self.dtype == "string" else 1
        return self.size * {**ELEMENT_BYTES, "list": 4, "binary": 1}[self.dtype]


class Parquet(Document):
    columns: list[Annotated[ParquetColumn, BeforeValidator(_named)]] = []
    row_group_size: Positive = Field(default=1024, description="samples")
    generation_batch_size: Count = Field(default=0, description="samples; 0: a row group")
    partition_by: str | None = None
    use_s3dlio_gen: bool = False
    read_mode: str = "row_group"

    @model_validator(mode="after")
    def _different(self) -> Parquet:
        names = [column.name for column in self.columns]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(f"columns: {twice} is there twice")
        return self


class Dataset(Document):
    """Files of samples. A sample is a square image of `record_length_bytes`, or has `record_dims`."""

    format: Format = "tfrecord"
    data_folder: str = "./data/"
    file_prefix: str = Field(default="img", pattern=r"^[A-Za-z0-9_.-]+$")
    num_files_train: Positive = 8
    num_files_eval: Count = 0
    num_samples_per_file: Positive = 1
    num_subfolders_train: Count = 0
    num_subfolders_eval: Count = 0
    record_length_bytes: Annotated[int, BeforeValidator(_whole), Field(ge=1, le=LARGEST)] = 64 * 1024
    record_length_bytes_stdev: Annotated[int, BeforeValidator(_whole), Field(ge=0, le=LARGEST)] = 0
    record_length_bytes_resize: Annotated[int, BeforeValidator(_whole), Field(ge=0, le=LARGEST)] = 0
    record_element_type: ElementType = "uint8"
    record_element_bytes: Positive | None = None
    record_dims: list[Positive] = []
    enable_chunking: bool = False
    chunk_size: Count = Field(default=0, description="bytes of an HDF5 chunk")
    compression: Annotated[Compression, BeforeValidator(_no)] = "none"
    compression_level: int = Field(default=4, ge=0, le=9)
    hdf5: Hdf5 = Hdf5()
    parquet: Parquet = Parquet()
    generation_buffer_size: Positive = 2 * 1024**3
    data_gen_method: Literal["auto", "dgen", "numpy"] = "auto"
    skip_listing: bool = False
    listing_validation_interval: Count = 0
    keep_files: bool = True

    @model_validator(mode="before")
    @classmethod
    def _renamed(cls, content: Any) -> Any:
        return renamed(content, _RENAMED)

    @model_validator(mode="after")
    def _consistent(self) -> Dataset:
        hdf5 = self.format in ("hdf5", "hdf5_opt")
        if self.compression != "none" and self.compression not in _COMPRESSIONS.get(self.format, set()):
            allowed = ", ".join(sorted(_COMPRESSIONS.get(self.format, set()) | {"none"}))
            raise ValueError(
                f"compression: {self.compression} does not go with format: {self.format} (allowed: {allowed})"
            )
        if (self.enable_chunking or self.hdf5.chunk_dims) and not hdf5:
            key = "enable_chunking" if self.enable_chunking else "hdf5.chunk_dims"
            raise ValueError(f"{key}: chunks need format: hdf5 (given: {self.format})")
        if hdf5:
            self._check_hdf5()
        elif self.hdf5.max_shape:
            raise ValueError(f"hdf5.max_shape needs format: hdf5 (given: {self.format})")
        if self.parquet.columns:
            self._check_columns()
        if self.enable_chunking and not (self.chunk_size or self.hdf5.chunk_dims):
            raise ValueError("enable_chunking needs chunk_size (bytes) or hdf5.chunk_dims")
        if self.chunk_size and not self.enable_chunking:
            raise ValueError("chunk_size needs enable_chunking: true")
        self._check_deviation()
        if self.format in ("jpeg", "png"):
            self._check_images()
        size = ELEMENT_BYTES[self.record_element_type]
        if self.record_element_bytes not in (None, size):
            raise ValueError(
                f"record_element_bytes: {self.record_element_bytes} is not that of "
                f"record_element_type: {self.record_element_type} ({size})"
            )
        if self.record_length_bytes < size:
            raise ValueError(f"record_length_bytes must hold one {self.record_element_type} at least")
        if self.record_dims and self.record_dims[0] % self.hdf5.num_dset_per_record:
            raise ValueError("record_dims[0] must be a multiple of hdf5.num_dset_per_record")
        return self

    def _check_deviation(self) -> None:
        """Raise ValueError where sizes cannot vary as stated."""
        length, stdev = self.record_length_bytes, self.record_length_bytes_stdev
        if self.record_dims and stdev:
            raise ValueError("record_dims and record_length_bytes_stdev exclude each other")
        if stdev > length:  # what is drawn would have another mean, and files no end
            raise ValueError(f"record_length_bytes_stdev: {stdev} is more than record_length_bytes: {length}")

    def _check_images(self) -> None:
        """Raise ValueError where images cannot hold the samples."""
        if self.num_samples_per_file != 1:
            raise ValueError(f"format: {self.format} holds one sample a file (num_samples_per_file: 1)")
        if self.record_element_type != "uint8" or len(self.record_dims) > 2:
            raise ValueError(f"format: {self.format} needs record_element_type: uint8 and two dimensions")

    def _check_columns(self) -> None:
        """Raise ValueError where Parquet's columns contradict what else is said of the samples."""
        if self.format != "parquet":
            raise ValueError(f"parquet.columns needs format: parquet (given: {self.format})")
        if self.record_dims or self.record_length_bytes_stdev:
            raise ValueError("parquet.columns excludes record_dims and record_length_bytes_stdev")

    def _check_hdf5(self) -> None:
        """Raise ValueError where keys of HDF5 do not go with the shape of a sample."""
        first, *others = self.shape
        if self.hdf5.num_dset_per_record > first:
            raise ValueError(
                f"hdf5.num_dset_per_record: {self.hdf5.num_dset_per_record} is more than the {first} rows of "
                "a sample"
            )
        part, most = (first // self.hdf5.num_dset_per_record, *others), self.hdf5.max_shape
        words = "x".join(map(str, part))
        if self.hdf5.chunk_dims and len(self.hdf5.chunk_dims) not in (len(part), len(part) + 1):
            raise ValueError(
                f"hdf5.chunk_dims must have as many dimensions as a sample ({words}), or one more before them"
            )
        if most and (len(part) != len(most) or any(m < n for n, m in zip(part, most, strict=True))):
            raise ValueError(f"hdf5.max_shape must hold a sample of {words} elements")
        if math.prod(most) > _MOST_ELEMENTS:
            raise ValueError(
                f"hdf5.max_shape: HDF5 keeps an index of all chunks that there may ever be: at most "
                f"{_MOST_ELEMENTS} elements"
            )

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the mean shape of a sample, in elements: DLIO's square image, or `record_dims`."""
        if self.parquet.columns:
            return (self.sample_bytes // ELEMENT_BYTES[self.record_element_type],)
        if self.record_dims:
            return tuple(self.record_dims)
        side = max(1, math.isqrt(self.record_length_bytes // ELEMENT_BYTES[self.record_element_type]))
        return (side, side)

    @property
    def sample_bytes(self) -> int:
        """Return the mean bytes of a sample's content, without the format around it."""
        if self.parquet.columns:
            return sum(column.bytes for column in self.parquet.columns)
        return math.prod(self.shape) * ELEMENT_BYTES[self.record_element_type]

    @property
    def stated_length(self) -> int:
        """Return the bytes of a sample as the file states them: by dimensions, by columns, or as such."""
        stated = self.record_dims or self.parquet.columns
        return self.sample_bytes if stated else self.record_length_bytes

    @property
    def samples_train(self) -> int:
        return self.num_files_train * self.num_samples_per_file

    @property
    def samples_eval(self) -> int:
        return self.num_files_eval * self.num_samples_per_file
