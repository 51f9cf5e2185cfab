"""What runs inside upstream DLIO's own environment; the adapter is ``tiercel.dl.upstream.engine``."""
