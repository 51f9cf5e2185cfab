"""Many jobs: a row for each of a centre's traces, and what the rows say of the machine."""

from tiercel.traces.survey.page import answers
from tiercel.traces.survey.table import load_findings, load_survey, survey

__all__ = ["answers", "load_findings", "load_survey", "survey"]
