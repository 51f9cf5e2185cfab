"""``python -m tiercel`` is ``tiercel``."""

from tiercel.cli.main import main

main()
