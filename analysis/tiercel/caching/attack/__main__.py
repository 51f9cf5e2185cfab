"""``python -m tiercel.caching.attack --minutes N``: one JSON object; exits 1 if anything was got."""

from __future__ import annotations

import argparse
import json
import sys
import time

from tiercel.caching.attack.campaign import campaign
from tiercel.errors import UserError


def main() -> int:
    parser = argparse.ArgumentParser(prog="attack", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=int(time.time()), help="repeats what is drawn")
    asked = parser.parse_args()
    try:
        found = campaign(asked.minutes, asked.seed)
    except UserError as error:
        print(f"attack: {error}", file=sys.stderr)
        return 2
    print(json.dumps(found, indent=1))
    return 1 if found["got"] or found["victim"]["not_served"] else 0


if __name__ == "__main__":
    sys.exit(main())
