"""The names of simulated sites: ``lassen-simulated`` is site ``lassen`` as its site file describes it.

Every command takes such a name, and its results have a folder of their own: nothing that was measured can
come among them. Whether a loaded site is simulated is a field of it (``Site.simulated``).
"""

from __future__ import annotations

SUFFIX = "-simulated"


def simulated_name(site: str) -> str:
    """Return the name under which a site is simulated."""
    return site if is_simulated(site) else f"{site}{SUFFIX}"


def is_simulated(site: str) -> bool:
    """Return whether this is the name of a simulated site; only what loads or names a site asks."""
    return site.endswith(SUFFIX)


def real_name(site: str) -> str:
    """Return the site that a simulated one is of; another site is itself."""
    return site.removesuffix(SUFFIX)
