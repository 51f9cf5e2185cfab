"""``python -m tests.attacks.cachevol --minutes N``: one JSON object; exits 1 if anything was got."""

from __future__ import annotations

import sys

from ..attackers import parser, run
from .campaign import campaign


def main() -> int:
    words = parser(__doc__)
    asked = words.parse_args()
    return run(lambda: campaign(asked.minutes, asked.seed))


if __name__ == "__main__":
    sys.exit(main())
