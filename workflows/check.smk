# The checklist of the first day on a machine, a workflow of its own: `tiercel site check SITE --submit` starts it
# with the site's profile, so that its jobs go the way that a study's go. The file of `jobs` says which there are.
import json
import sys
from pathlib import Path

from tiercel.workflow import name_user, prepare_scheduler

name_user()
JOBS = json.loads(Path(config["jobs"]).read_text())
RESULTS = Path("results") / config["site"] / "check"


def asked(key):
    def value(wildcards):
        return JOBS[wildcards.job]["resources"][key]

    return value


localrules:
    all,


rule all:
    default_target: True
    input:
        [RESULTS / f"{name}.json" for name in JOBS],


rule look:
    output:
        RESULTS / "{job}.json",
    log:
        RESULTS / "{job}.log",
    message:
        "The checklist of the first day: job {wildcards.job}"
    wildcard_constraints:
        job=r"nodes-\d+",
    resources:
        **{key: asked(key) for key in next(iter(JOBS.values()))["resources"]},
    params:
        call=[sys.executable, "-m", "tiercel", "site", "check-job", "--site", config["site"]],
        nodes=lambda wildcards: JOBS[wildcards.job]["nodes"],
    shell:
        "exec {params.call:q} --parent $PPID --nodes {params.nodes} --output {output:q} > {log:q} 2>&1"


onstart:
    prepare_scheduler(config["site"])
