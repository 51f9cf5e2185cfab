# What all rules share: the plan, folders, and how tiercel is called. No rules here.
import os
import sys
from pathlib import Path

from tiercel.errors import UserError
from tiercel.project import results_folder, workflow_root
from tiercel.runs.stamps import stamps_folder
from tiercel.site.discover import hold
from tiercel.site.profile import check_named_profile
from tiercel.workflow import begin, check_keys, name_user, speak_up, start_over, workflow_plan

SITE = config.get("site", "local")
STUDY = config.get("study", "quick")
# Whether Snakemake speaks for itself; `tiercel evaluate` keeps it quiet, and says what comes of it.
ALOUD = str(config.get("announce", True)).lower() != "false"

name_user()
if workflow.is_main_process and not ALOUD:
    speak_up()
try:
    ROOT = workflow_root()
    if workflow.is_main_process:
        check_keys(workflow.config_settings.config, Path(workflow.main_snakefile))
        check_named_profile(SITE, sys.argv[1:], ROOT)
    PLAN = workflow_plan(SITE, STUDY, ROOT, make=workflow.is_main_process)
    if workflow.is_main_process:
        hold(PLAN.storages)  # for its jobs: a mount that appears meanwhile is none of theirs
    if workflow.is_main_process and PLAN.used_up:
        print(f"tiercel: {PLAN.used_up}", file=sys.stderr)
except UserError as error:
    print(f"tiercel: {error}", file=sys.stderr)
    sys.exit(2)

RESULTS = results_folder(ROOT, SITE).relative_to(ROOT)
LOGS = RESULTS / "logs"
STAMPS = stamps_folder(RESULTS, PLAN.study)
TIERCEL = [sys.executable, "-m", "tiercel"]
# What a batch asks of the site's scheduler; nothing where there is none.
SCHEDULED = PLAN.resources(ROOT)
SHOWN = []

if "TMPDIR" not in os.environ:
    # Snakemake sets it for every job, and a job would take its folder for the user's choice of scratch: the plan
    # and its runs must see the same storages.
    shell.prefix("unset TMPDIR; ")


def shown(wildcards):
    """Input of the whole: nothing. In a dry run, which Snakemake knows of only now, the plan is shown."""
    if workflow.dryrun and workflow.is_main_process:
        if not SHOWN:  # Snakemake may ask more than once
            SHOWN.append(STUDY)
            PLAN.show(ROOT)
    return []


def once_ready():
    """Make the site ready for jobs, and look again at what is to be done where that changed it."""
    if workflow.touch:
        return
    try:
        if begin(PLAN, ROOT, workflow.executor_plugin.name):
            start_over()
    except UserError as error:
        print(f"tiercel: {error}", file=sys.stderr)
        sys.exit(2)
