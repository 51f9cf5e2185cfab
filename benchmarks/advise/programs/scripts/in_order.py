"""``in_order.py FILE``: print how many rows a Parquet file has, and whether its keys ascend."""

import sys

import duckdb

reader = f"read_parquet('{sys.argv[1]}', file_row_number=true)"
before = f"SELECT key, lag(key, 1, 0) OVER (ORDER BY file_row_number) AS before FROM {reader}"
answer = duckdb.connect().execute(f"SELECT count(*), bool_and(key >= before) FROM ({before})").fetchall()
print(*answer[0])
