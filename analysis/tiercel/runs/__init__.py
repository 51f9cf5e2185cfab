"""Runs: carries out the plan on a site and keeps what happened."""
