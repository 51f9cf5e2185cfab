"""``parquet.py FOLDER FILES ROWS``: Parquet files of made rows, always the same."""

import sys

import duckdb

folder, files, rows = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
connection = duckdb.connect()
connection.execute("SET threads=1")
for number in range(files):
    connection.execute(
        f"COPY (SELECT hash(i) AS key, md5(i::VARCHAR) AS name, i % 97 AS kind "
        f"FROM range({number * rows}, {(number + 1) * rows}) t(i)) "
        f"TO '{folder}/part{number}.parquet' (FORMAT parquet)"
    )
