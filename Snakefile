# The workflow of tiercel. It only declares: every decision is made by the package analysis/tiercel, and what has
# effects happens in rules, in onstart, or in commands (docs/architecture.md).
#
#   snakemake --profile local                         this machine, study quick
#   snakemake --profile local --config study=NAME     another study of workflows/studies/
#   snakemake --profile local -n                      the plan
from snakemake.utils import min_version

min_version("9.0")


include: "workflows/common.smk"


localrules:
    all,
    collect,
    report,


rule all:
    default_target: True
    input:
        shown,
        # Asked for by name: for the tables alone, Snakemake does not look for a missing one where tables are that
        # were made by hand.
        [STAMPS / stamp for stamp in PLAN.stamps],
        RESULTS / "report" / "index.html",
        RESULTS / "dataset.nc",


include: "workflows/stack.smk"
include: "workflows/measure.smk"
include: "workflows/traces.smk"
include: "workflows/results.smk"


onstart:
    once_ready()


onsuccess:
    # A project's own rules may have run before anything was measured.
    if ALOUD and (RESULTS / "observations.parquet").is_file():
        shell("{TIERCEL:q} show --site {SITE:q} --study {STUDY:q}")
