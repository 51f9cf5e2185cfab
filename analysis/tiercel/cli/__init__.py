"""The command line: ``tiercel``. One file for each group of commands."""
