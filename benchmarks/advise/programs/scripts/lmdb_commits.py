"""Commits transactions to a memory-mapped database: folder, count."""

import sys

import lmdb

with lmdb.open(sys.argv[1], map_size=1 << 26) as base:
    for number in range(int(sys.argv[2])):
        with base.begin(write=True) as transaction:
            transaction.put(b"%08d" % number, b"x" * 400)
