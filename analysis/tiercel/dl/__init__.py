"""Deep-learning I/O: workloads in DLIO's schema, the engine that runs them, and what can be learned."""
