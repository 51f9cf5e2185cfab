"""``leveldb.py BASE ANSWER BATCHES EACH``: synced batches into a new LevelDB, then a pass over it."""

import sys
from pathlib import Path

import plyvel

base, answer, batches, each = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
database = plyvel.DB(base, create_if_missing=True)
for batch in range(batches):
    with database.write_batch(sync=True) as writes:
        for number in range(each):
            writes.put(f"{(batch * each + number) * 7919 % 1_000_003:08}".encode(), b"v" * 100)
entries = [len(value) for _, value in database]
database.close()
answer.write_text(f"{len(entries)} {sum(entries)}\n")
