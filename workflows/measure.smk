# The runs of the plan, many to a job (see docs/architecture.md: why runs are batched).
# Round r holds repetition r of every configuration, in random order over the storage systems; it
# needs the rounds before, because what they showed decides whether it is still wanted.


def rounds_before(wildcards):
    if wildcards.batch not in BATCHES:
        return []  # a job whose plan has changed since it was submitted: the batch itself says so
    number = BATCHES[wildcards.batch].round
    return [STAMPS / f"{b.name}.done" for b in PROJECT.plan.batches if b.round == number - 1]


rule batch:
    input:
        rounds_before,
    output:
        stamp=STAMPS / "{batch}.done",
    wildcard_constraints:
        batch=r"round-[^/]+",
    resources:
        # One measurement at a time: jobs on one machine disturb each other whatever they test.
        measuring=1,
        **SCHEDULED,
    params:
        call=TIERCEL + ["batch", "--site", SITE, "--study", STUDY],
    shell:
        # In the shell's place, so that it sees Snakemake go.
        "exec {params.call:q} --parent $PPID --name {wildcards.batch:q} --stamp {output.stamp:q} " + WALLTIME
