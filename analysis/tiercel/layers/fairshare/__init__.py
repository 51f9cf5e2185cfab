"""fairshare: a policy-driven burst buffer in front of a storage (paper 001; native/fairshare)."""

from tiercel.layers.fairshare.layer import FairShare

__all__ = ["FairShare"]
