"""``python -m tiercel.caching.attack --minutes N``: one JSON object; exits 1 if anything was got."""

from __future__ import annotations

import sys

from tiercel.attacking import parser, run
from tiercel.caching.attack.campaign import campaign


def main() -> int:
    words = parser(__doc__)
    asked = words.parse_args()
    return run(lambda: campaign(asked.minutes, asked.seed))


if __name__ == "__main__":
    sys.exit(main())
