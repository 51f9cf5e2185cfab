"""Accelerator utilisation and throughput, counted by hand."""

from __future__ import annotations

import pytest

from tiercel.dl.kernel.epoch import Block, Epoch
from tiercel.dl.showing import _utilisation

from .kernel import spec


def block(steps: int, load: float = 1.0, compute: float = 3.0, samples: int = 1) -> Block:
    ended = steps * (load + compute)
    return Block(0.0, ended, [load] * steps, [load + compute] * steps, [compute] * steps, [samples] * steps)


def test_the_first_step_is_left_out() -> None:
    slow = block(5, samples=2)
    slow.proc[0], slow.ended = 14.0, slow.ended + 10
    # Four steps of 3 s computation in 30 - 14 = 16 s; two samples each.
    assert slow.utilisation(1, 0) == (0.75, 0.5, 4)


def test_what_is_left_out_is_told_where_it_is_much() -> None:
    """A first step of 14 s among steps of 4 s: footers of many Parquet files are read in it, for instance."""
    slow, even = block(5), block(5)
    slow.proc[0], slow.ended = 14.0, slow.ended + 10
    rows = []
    for one in (slow, even):
        epoch = Epoch("train", 1, 0.0, blocks=[one])
        rows.append({"left_out": epoch.left_out(spec()), "seconds": one.ended, "steps": 5})
    assert [row["left_out"] for row in rows] == [14.0, 4.0]
    # Of 30 s 14, while the others took 4 each; of 20 s 4, as each of the others.
    assert next(_utilisation(rows)).startswith("AU leaves out 14 of 30 s of 1 epochs")
    assert list(_utilisation(rows[1:])) == []
    assert Epoch("train", 1, 0.0, blocks=[block(1)]).left_out(spec()) == 0  # all of it counts


def test_the_last_steps_too() -> None:
    # Of five steps the middle three count: 9 s computation in 12 s.
    assert block(5).utilisation(1, 1) == (0.75, 0.25, 3)


def test_too_few_steps_count_all() -> None:
    assert block(1).utilisation(1, 0) == (0.75, 0.25, 1)


def test_blocks_weigh_by_their_steps() -> None:
    epoch = Epoch("train", 1, 0.0, blocks=[block(3), block(5, load=3.0)])
    au, _ = epoch.utilisation(spec())
    # 0.75 over two steps, 0.5 over four.
    assert au == pytest.approx((2 * 0.75 + 4 * 0.5) / 6)


def test_no_block_has_no_utilisation() -> None:
    assert Epoch("train", 1, 0.0).utilisation(spec()) == (0.0, 0.0)
