"""``duckdb_sort.py FOLDER MEMORY``: sort Parquet files by key into a new one, with a bounded memory."""

import sys
from pathlib import Path

import duckdb

folder, memory = Path(sys.argv[1]), sys.argv[2]
connection = duckdb.connect()
connection.execute(f"SET threads=1; SET memory_limit='{memory}'; SET temp_directory='{folder}/spill'")
rows = f"SELECT * FROM '{folder}/part*.parquet' ORDER BY key"
connection.execute(f"COPY ({rows}) TO '{folder}/sorted.parquet' (FORMAT parquet)")
