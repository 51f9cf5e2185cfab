"""Fair I/O sharing: the layer `fairshare`, its experiments, and the simulator of its policies."""
