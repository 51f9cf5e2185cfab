"""Tables as Parquet files that carry unit and meaning of each column, and what code wrote them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

import tiercel
from tiercel.atomic_file import drafted
from tiercel.columns import COUNT, FLAG, NUMBER, ROWS, WORD, WORDS, Column
from tiercel.errors import UserError, one_line

_ARROW = {
    WORD: pa.string(),
    COUNT: pa.int64(),
    NUMBER: pa.float64(),
    FLAG: pa.bool_(),
    WORDS: pa.list_(pa.string()),
}


class Damaged(UserError):
    """A table that cannot be read. `reason`: why."""

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


def write_table(
    path: Path, rows: Iterable[Mapping[str, Any]], columns: Sequence[Column], signature: str
) -> None:
    """Write rows (whole or not at all). `signature` names the code that made them, for `known_rows`."""
    table = _arrow(rows, columns, signature)
    path.parent.mkdir(parents=True, exist_ok=True)
    # With checksums a bit that flipped on a disk is an error, and no other number.
    with drafted(path) as draft:
        pq.write_table(table, draft, compression="zstd", write_page_checksum=True)


def as_frame(rows: Iterable[Mapping[str, Any]], columns: Sequence[Column]) -> pd.DataFrame:
    """Return rows as `load_table` would, had they been written."""
    table: pd.DataFrame = _arrow(rows, columns, "").to_pandas(types_mapper=_nullable)
    return table


def _arrow(rows: Iterable[Mapping[str, Any]], columns: Sequence[Column], signature: str) -> pa.Table:
    arrow = pa.schema([_field(c) for c in columns], metadata={"tiercel": signature})
    wanted = [{c.name: row[c.name] for c in columns} for row in rows]
    try:
        return pa.Table.from_pylist(wanted, schema=arrow)
    except (pa.ArrowException, OverflowError) as error:
        raise next((wrong for row in wanted if (wrong := misfit(row, columns))), error) from None


def misfit(row: Mapping[str, Any], columns: Sequence[Column]) -> UserError | None:
    """Return the error that names the row and the first value which its column cannot hold, if any."""
    for column in columns:
        try:
            pa.array([row[column.name]], _field(column).type)
        except (pa.ArrowException, OverflowError):
            name, value = row[columns[0].name], one_line(repr(row[column.name]))
            return UserError(f"{name}: {column.name} is {value}, no {column.kind}: move what is damaged away")
    return None


def _field(column: Column) -> pa.Field:
    kind = (
        pa.list_(pa.struct([_field(c) for c in column.columns]))
        if column.kind == ROWS
        else _ARROW[column.kind]
    )
    return pa.field(column.name, kind, metadata={"unit": column.unit, "meaning": column.meaning})


def code_signature(names: Iterable[str]) -> str:
    """Identify the code that makes a table: tiercel's version and the contents of these files and folders of
    the package."""
    package = Path(tiercel.__file__).parent
    found = hashlib.sha256()
    for name in names:
        path = package / name
        for source in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            found.update(source.read_bytes())
    return f"{tiercel.__version__}/{found.hexdigest()[:12]}"


def known_rows(path: Path, signature: str) -> list[dict[str, Any]] | None:
    """Return the rows of a table that the same code wrote; None where absent, torn or of other code."""
    try:
        table = pq.read_table(path, page_checksum_verification=True)
    except MemoryError:  # pyarrow's is an ArrowException too
        raise
    except (OSError, ValueError, pa.ArrowException):
        return None
    if (table.schema.metadata or {}).get(b"tiercel") != signature.encode():
        return None
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def load_table(path: Path, how: str, key: str = "run") -> pd.DataFrame:
    """Return the table at `path`, known by its column `key`; UserError that says `how` it is made where it is
    absent or damaged."""
    try:
        table = pq.read_table(path, page_checksum_verification=True)
        if key not in table.column_names:  # another's, or a folder by that name
            raise ValueError(f"no column {key}: not a table of tiercel's")
        frame: pd.DataFrame = table.to_pandas(types_mapper=_nullable)
    except FileNotFoundError:
        raise UserError(f"{path}: no such file: run `{how}`") from None
    except MemoryError:  # pyarrow's is an ArrowException too, and nothing is damaged
        raise
    except (OSError, ValueError, pa.ArrowException) as error:
        reason = one_line(str(error)) or type(error).__name__
        raise Damaged(f"{path}: is damaged ({reason}): `{how}` makes it again", reason) from None
    return frame


def _nullable(kind: pa.DataType) -> Any:
    return {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}.get(kind)
