# The programs that Spack builds for a site (docs/stack.md):
#
#   snakemake --profile lassen stack                                 resolve and build
#   snakemake --profile lassen stack --config mirror=/path/of/mirror     without network
#
# A site that asks for it (build_before_measuring in its parts.yaml) has its stack built before it measures.
STACK = RESULTS / "stack"
STACK_CALL = TIERCEL + ["stack"]


localrules:
    stack,
    concretize,
    install,


rule stack:
    input:
        STACK / "programs.json",


# The lock is kept with the results: it says which programs measured.
rule concretize:
    output:
        lock=STACK / "spack.lock",
        summary=STACK / "stack.json",
    log:
        LOGS / "concretize.log",
    message:
        "Resolving the stack"
    resources:
        mem_mb=4000,
    params:
        call=STACK_CALL + ["concretize", "--site", SITE],
    shell:
        "TIERCEL_PARENT=$PPID exec {params.call:q} 2> >(tee {log:q} >&2)"


# Spack keeps every package that was built: after a failure the same command goes on.
rule install:
    input:
        rules.concretize.output.lock,
    output:
        STACK / "programs.json",
    log:
        LOGS / "install.log",
    message:
        "Building the stack"
    resources:
        mem_mb=4000,
    params:
        call=STACK_CALL + ["install", "--site", SITE, "--mirror", str(config.get("mirror", ""))],
    shell:
        "TIERCEL_PARENT=$PPID exec {params.call:q} 2> >(tee {log:q} >&2)"
