"""Attacks a fairshare server as a user does who wants what is not its own: ``make attack MINUTES=N``."""
