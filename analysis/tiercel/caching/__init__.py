"""Node-local caching of HDF5 files: launching, logs, checks against plain HDF5, experiments (paper 002)."""
