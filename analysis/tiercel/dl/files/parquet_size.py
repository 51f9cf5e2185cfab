"""How large Parquet files of a workload become: pyarrow stores the distinct values of a group of rows as a
dictionary and every value as an index into it, as long as the dictionary is small; pages, statistics and the
footer come on top. Of small groups, or of many columns of few bytes, that is several times the numbers.
"""

from __future__ import annotations

from tiercel.dl.files.dataset import ELEMENT_BYTES, Dataset, ParquetColumn

#: Bytes of a dictionary, from which on pyarrow stores values as they are.
_DICTIONARY = 1 << 20
#: Bytes of a column in a group (headers of its pages, its entry in the footer with statistics), and in a file
#: (its place in both schemas), without its name: what files of one row have, rounded up.
_IN_A_GROUP, _IN_A_FILE = 240, 300
#: A word that dlkernel writes, with its length.
_WORD = 16


def parquet_bytes(data: Dataset) -> int:
    """Return about the bytes of all files of a dataset, rather more than less; compression is not counted."""
    columns = data.parquet.columns or [ParquetColumn(name="data", dtype="uint8", size=data.sample_bytes)]
    per_file, parquet = data.num_samples_per_file, data.parquet
    batch = parquet.generation_batch_size or parquet.row_group_size
    rows = min(per_file, parquet.row_group_size, batch)
    # A batch ends a group: of 1,500 rows in groups of 1,024 two are made, and so on for each.
    batches, left = divmod(per_file, batch)
    groups = batches * -(-batch // parquet.row_group_size) + -(-left // parquet.row_group_size)
    each = sum(_values(one, per_file, rows) + groups * (_IN_A_GROUP + len(one.name)) for one in columns)
    around = sum(_IN_A_FILE + 2 * len(one.name) for one in columns)
    return (data.num_files_train + data.num_files_eval) * (each + around)


def _values(column: ParquetColumn, samples: int, rows: int) -> int:
    """Return the bytes of a column's values in `samples`, in groups of `rows`."""
    if column.dtype == "bool":
        return -(-samples // 8)
    if column.dtype in ("string", "binary"):
        each, width = 1, _WORD if column.dtype == "string" else column.size + 4
        distinct = 1 << 62
    else:
        element = 4 if column.dtype == "list" else ELEMENT_BYTES[column.dtype]
        whole = element < 4 and column.dtype != "float16"  # stored as numbers of four bytes
        each, width, distinct = column.size, 4 if whole else element, 1 << (8 * element)
    count, values = samples * each, rows * each
    listed = min(values, distinct, max(1, _DICTIONARY // width))  # in a group's dictionary
    index = max(1, (listed - 1).bit_length())
    if distinct <= _DICTIONARY // width:  # all there can be fit in
        stored = -(-samples // rows) * listed * width + count * index // 8
    else:
        stored = count * width + -(-samples // rows) * min(values, listed) * index // 8
    return stored + (count // 8 if each > 1 else 0)  # where each list begins
