"""Sites: the machines that are evaluated, and their storage systems."""

from tiercel.site.load import known_sites, load_site
from tiercel.site.model import Site, Stack, Storage

__all__ = ["Site", "Stack", "Storage", "known_sites", "load_site"]
