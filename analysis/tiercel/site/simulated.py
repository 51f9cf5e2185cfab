"""Sites without their machine: ``lassen-simulated`` is site ``lassen`` as its site file describes it.

The name is all there is: every command takes it, the results have a folder of their own, and nothing that was
measured can come among them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tiercel.site.scheduler import Limits

if TYPE_CHECKING:
    from tiercel.site.model import Site

SUFFIX = "-simulated"


def simulated_name(site: str) -> str:
    """Return the name under which a site is simulated."""
    return site if is_simulated(site) else f"{site}{SUFFIX}"


def is_simulated(site: str) -> bool:
    """Return whether this is the name of a simulated site."""
    return site.endswith(SUFFIX)


def real_name(site: str) -> str:
    """Return the site that a simulated one is of; another site is itself."""
    return site.removesuffix(SUFFIX)


def without_machine(site: Site) -> Site:
    """Return a site as it is simulated: nothing is submitted or paid for."""
    said = f"{site.description or site.site}, simulated"
    return site.model_copy(
        update={"site": simulated_name(site.site), "description": said, "scheduler": None, "limits": Limits()}
    )
