"""The section on the site's facts: what was measured, what has a source, what is unverified."""

from __future__ import annotations

from tiercel.pages.tables import table
from tiercel.report.sections.base import Context, Section, sections
from tiercel.site.facts import facts_of, read_facts, summary


@sections.register("facts")
def facts(context: Context) -> Section | None:
    """Return the section of a site with a scheduler, or of one that was checked; None for others."""
    site = context.site
    # results/<site> lies in the folder that has site-configs/<site> too.
    measured = read_facts(site.site, context.folder.parent.parent)
    if site.scheduler is None and measured is None:
        return None
    found = facts_of(site, measured)
    rows = [
        [fact.name, fact.stated, fact.standing, fact.problem or fact.found, fact.source] for fact in found
    ]
    when = f"Measured on {measured.date} on the site's nodes" if measured else "Nothing was measured"
    return Section(
        "facts",
        "Sources of the site's facts",
        (f"{len(found)} facts: {summary(found)}.",),
        tables=(
            table(
                "Facts of the site. Values in the site file and their sources",
                ("Fact", "Site file", "Status", "Measured", "Source or date"),
                rows,
            ),
        ),
        notes=(f"{when} (tiercel site check {site.site} --submit).",),
    )
