# From raw folders to tables, dataset and report. Each step can be made again from the earlier files alone.


rule collect:
    input:
        [STAMPS / stamp for stamp in PLAN.stamps],
    output:
        observations=RESULTS / "observations.parquet",
        runs=RESULTS / "runs.parquet",
        dataset=RESULTS / "dataset.nc",
    log:
        LOGS / "collect.log",
    message:
        "Tables of all runs"
    resources:
        mem_mb=2000,
    params:
        call=TIERCEL + ["collect", "--site", SITE, "--study", STUDY],
    shell:
        "TIERCEL_PARENT=$PPID exec {params.call:q} 2> >(tee {log:q} >&2)"


rule report:
    input:
        observations=rules.collect.output.observations,
        runs=rules.collect.output.runs,
        traces=TRACE_TABLES if PLAN.traced else [],
    output:
        report(
            RESULTS / "report" / "index.html",
            caption="captions/report.rst",
            category="Report",
        ),
    log:
        LOGS / "report.log",
    message:
        "The report"
    resources:
        mem_mb=2000,
    params:
        call=TIERCEL + ["report", "--site", SITE, "--study", STUDY],
    shell:
        "TIERCEL_PARENT=$PPID exec {params.call:q} > /dev/null 2> >(tee {log:q} >&2)"
