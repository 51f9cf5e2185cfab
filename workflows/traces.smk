# From the traces of traced runs to tables of their own; made again from the raw folders at any time.
# A study without traced runs (or a machine without a tracer) has none, and its report asks for none.
TRACE_TABLES = [RESULTS / name for name in ("traces.parquet", "trace-groups.parquet", "traces.nc")]


localrules:
    traces,


rule traces:
    input:
        # What tracing cost is told against the untraced repetitions.
        observations=RESULTS / "observations.parquet",
        runs=RESULTS / "runs.parquet",
    output:
        TRACE_TABLES,
    log:
        LOGS / "traces.log",
    message:
        "Tables of all traces"
    resources:
        mem_mb=2000,
    params:
        call=TIERCEL + ["trace", "collect", "--site", SITE, "--study", STUDY],
    shell:
        "TIERCEL_PARENT=$PPID exec {params.call:q} > /dev/null 2> >(tee {log:q} >&2)"
