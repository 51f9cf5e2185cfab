"""Recommendations: where the files of each workload class and traced run belong, and why."""

from tiercel.report.recommend.document import as_json
from tiercel.report.recommend.judging import recommendations
from tiercel.report.recommend.model import LITTLE, GroupAdvice, Judgement, Recommendation

__all__ = ["LITTLE", "GroupAdvice", "Judgement", "Recommendation", "as_json", "recommendations"]
