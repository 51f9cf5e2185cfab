"""Does a benchmark do the I/O of a real training? Traces of both, compared as in paper 000, section V.B."""
