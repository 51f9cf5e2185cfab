"""What campaigns of attacks on a layer share: attackers in processes of their own, and the command line."""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Protocol

from tiercel.errors import UserError


class Attacker(Protocol):
    """One attacking process: what it draws from, what it tried, what it got."""

    rng: random.Random
    tried: Counter[str]
    gains: list[str]


def start(
    become: Callable[[], None],
    make: Callable[[], Any],
    attacks: Sequence[Callable[[Any], None]],
    until: float,
    refusals: tuple[type[Exception], ...],
) -> tuple[int, int]:
    """Start one; its number, and the end of a pipe where it tells in the end what it tried and got.

    `become` has the process be the attacking user, `make` gives its `Attacker`; `refusals`: how an attack
    ends to which something said no.
    """
    mine, its = os.pipe()
    if pid := os.fork():
        os.close(its)
        return pid, mine
    code = 1
    try:
        become()
        it = make()
        order = list(attacks)
        while time.monotonic() < until:
            random.Random(it.rng.random()).shuffle(order)
            for attack in order:
                with suppress(*refusals):
                    attack(it)
                it.tried[attack.__name__] += 1
        tell(it, its)
        code = 0
    except BaseException:
        traceback.print_exc()  # nothing above it tells: the process ends here
    finally:
        sys.stderr.flush()
        os._exit(code)


def tell(it: Attacker, pipe: int) -> None:
    """Write what an attacker tried and got to the one that started it."""
    with os.fdopen(pipe, "w") as told:
        json.dump({"tried": it.tried, "gains": it.gains}, told)


def told_by(pipe: int) -> dict[str, Any]:
    """Return what an attacker tells at its end."""
    with os.fdopen(pipe) as said:
        text = said.read()
    if not text:
        raise RuntimeError("an attacking process ended before it told what it tried")
    told: dict[str, Any] = json.loads(text)
    return told


def parser(description: str | None) -> argparse.ArgumentParser:
    """Return the command line of a campaign."""
    made = argparse.ArgumentParser(prog="attack", description=description)
    made.add_argument("--minutes", type=float, default=1.0)
    made.add_argument("--seed", type=int, default=int(time.time()), help="repeats what is drawn")
    return made


def run(campaign: Callable[[], dict[str, Any]]) -> int:
    """Print what a campaign found; 1 if anything was got, or the victim not served."""
    try:
        found = campaign()
    except UserError as error:
        print(f"attack: {error}", file=sys.stderr)
        return 2
    print(json.dumps(found, indent=1))
    return 1 if found["got"] or found["victim"]["not_served"] else 0
