"""Campaigns of a second user against the layers: `make attack`."""
