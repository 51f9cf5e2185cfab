"""Attacks the node-local folder of cachevol, and what lies beside its files, as a second user."""
