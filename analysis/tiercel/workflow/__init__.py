"""What the Snakefile is made of: the plan that it declares, and what is done before jobs begin."""

from tiercel.workflow.account import name_user
from tiercel.workflow.begin import begin, make_ready, prepare_scheduler, start_over
from tiercel.workflow.errors import speak_up
from tiercel.workflow.keys import check_keys
from tiercel.workflow.plan import WorkflowPlan, hand_over, workflow_plan

__all__ = [
    "WorkflowPlan", "begin", "check_keys", "hand_over", "make_ready", "name_user", "prepare_scheduler",
    "speak_up", "start_over", "workflow_plan",
]  # fmt: skip
