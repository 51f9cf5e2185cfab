"""Random HDF5 programs, run with the connector and without: results and files must be the same."""
