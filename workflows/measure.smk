# The runs of the plan, many to a job (see docs/architecture.md: why runs are batched).
# Round r holds repetition r of every configuration, in random order over the storage systems; it
# needs the round before, because what that showed decides whether it is still wanted.


rule batch:
    input:
        lambda wildcards: [STAMPS / stamp for stamp in PLAN.before(wildcards.batch)],
    output:
        stamp=STAMPS / "{batch}{again}.done",
    log:
        LOGS / PLAN.study / "{batch}{again}.log",
    message:
        "Measuring: {wildcards.batch}"
    wildcard_constraints:
        batch=r"round-\d+\.nodes-\d+\.part-\d+\.[0-9a-f]+",
        again=r"(\.again-\d+)?",
    resources:
        # One measurement at a time: jobs on one machine disturb each other whatever they test.
        measuring=1,
        **SCHEDULED,
    params:
        call=TIERCEL + ["batch", "--site", SITE, "--study", STUDY],
        # The job stops cleanly before its time is over, and goes on when it is submitted again.
        minutes=lambda wildcards, resources: f"--minutes {resources.runtime}" if SCHEDULED else "",
    shell:
        # In the shell's place, so that it sees Snakemake go.
        "exec {params.call:q} --parent $PPID --name {wildcards.batch:q} --stamp {output.stamp:q} --log {log:q} "
        "{params.minutes}"
