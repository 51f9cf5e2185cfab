"""A subject that is no part of tiercel: how fast names are found behind symbolic links."""
