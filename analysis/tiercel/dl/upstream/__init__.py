"""What runs inside upstream DLIO's own environment; the adapter is ``tiercel.engines.dlio``."""
