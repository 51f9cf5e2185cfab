from collections.abc import Iterable

from tiercel.report.data import Results
from tiercel.report.findings.finding import Finding


def followed(results: Results) -> Iterable[Finding]:
    rows = results.observations[results.observations["operation"] == "link-open"]
    if len(rows):
        yield Finding("engineer", "fact", f"Names lead through {rows['chain'].max()} symbolic links.")


RULES = (followed,)
