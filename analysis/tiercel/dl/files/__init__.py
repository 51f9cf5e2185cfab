"""Deep-learning workload files: DLIO's YAML schema as typed objects. `tiercel.dl.workload` is the way in."""
