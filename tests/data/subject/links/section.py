from tiercel.pages.tables import table
from tiercel.report.sections.base import Context, Section, sections


@sections.register("links")
def links(context: Context) -> Section | None:
    rows = context.results.observations
    rows = rows[rows["operation"] == "link-open"]
    if rows.empty:
        return None
    best = rows.groupby("storage")["links_per_second"].max()
    return Section(
        "links", "Names behind links",
        tables=(table("Links followed in a second", ("Storage", "Best"), [[k, v] for k, v in best.items()]),),
    )  # fmt: skip
