"""``python -m tests.attacks.fairshare --minutes N``: one JSON object; exits 1 if anything was got."""

from __future__ import annotations

import sys

from ..attackers import parser, run
from .campaign import campaign


def main() -> int:
    words = parser(__doc__)
    words.add_argument("options", nargs="*", help="of the server, behind --: to see what they let happen")
    asked = words.parse_args()
    return run(lambda: campaign(asked.minutes, asked.seed, asked.options))


if __name__ == "__main__":
    sys.exit(main())
