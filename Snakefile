# The workflow of tiercel. It only wires: every decision is made by the package analysis/tiercel.
#
#   snakemake --profile local                         this machine, study quick
#   snakemake --profile local --config study=NAME     another study of workflows/studies/
#   snakemake --profile local -n                      the plan
import re
import sys

from snakemake.utils import min_version

from tiercel.errors import UserError
from tiercel.project import project_root, results_folder
from tiercel.runs.budget import settle
from tiercel.runs.plan_table import print_plan
from tiercel.runs.controller import take_over
from tiercel.runs.planning import check_site, make_plan
from tiercel.runs.scheduling import batch_resources
from tiercel.runs.stamps import AGAIN, stamps_folder
from tiercel.site.profile import check_named_profile
from tiercel.stack import prepare

min_version("9.0")

SITE = config.get("site", "local")
STUDY = config.get("study", "quick")
# Snakemake itself knows only after parsing whether this is a dry run.
DRY_RUN = any(re.fullmatch(r"--dry-?run|-[a-zA-Z]*n[a-zA-Z]*", word) for word in sys.argv[1:])

try:
    ROOT = project_root()
    if workflow.is_main_process:
        check_named_profile(SITE, sys.argv[1:], ROOT)
    if workflow.is_main_process and not DRY_RUN:
        prepare(SITE, STUDY, ROOT)
    PROJECT = make_plan(SITE, STUDY, ROOT)
    if workflow.is_main_process:
        if DRY_RUN:
            print_plan(PROJECT, ROOT, sys.stderr)
        else:
            check_site(PROJECT)
            take_over(PROJECT.plan.site, ROOT, results_folder(ROOT, SITE))
            if used_up := settle(PROJECT, results_folder(ROOT, SITE)):
                print(f"tiercel: {used_up}", file=sys.stderr)
    # What a batch asks of the site's scheduler; nothing where there is none.
    SCHEDULED = batch_resources(PROJECT, results_folder(ROOT, SITE), DRY_RUN)
except UserError as error:
    print(f"tiercel: {error}", file=sys.stderr)
    sys.exit(2)

RESULTS = results_folder(ROOT, SITE).relative_to(ROOT)
TIERCEL = [sys.executable, "-m", "tiercel"]
BATCHES = {batch.name: batch for batch in PROJECT.plan.batches}
# The job stops cleanly before its time is over, and goes on when it is submitted again.
WALLTIME = "--minutes {resources.runtime}" if SCHEDULED else ""
STAMPS = stamps_folder(PROJECT, RESULTS)


localrules:
    all,
    collect,
    report,


rule all:
    default_target: True
    input:
        RESULTS / "report" / "index.html",
        RESULTS / "dataset.nc",


include: "workflows/stack.smk"
include: "workflows/measure.smk"
include: "workflows/traces.smk"
include: "workflows/results.smk"


onsuccess:
    if str(config.get("announce", True)).lower() != "false":
        shell("{TIERCEL:q} show --site {SITE:q} --study {STUDY:q}")
