# From raw folders to tables, dataset and report. Each step can be made again from the earlier files alone.


rule collect:
    input:
        [STAMPS / f"{name}.done" for name in BATCHES],
        # Newer than the tables when some batch is to be carried out again (runs.stamps).
        [path for path in [STAMPS / AGAIN] if path.exists()],
    output:
        observations=RESULTS / "observations.parquet",
        runs=RESULTS / "runs.parquet",
        dataset=RESULTS / "dataset.nc",
    params:
        call=TIERCEL + ["collect", "--site", SITE, "--study", STUDY],
        study=STUDY,
    shell:
        "{params.call:q}"


rule report:
    input:
        observations=rules.collect.output.observations,
        runs=rules.collect.output.runs,
        traces=TRACE_TABLES if TRACED else [],
    output:
        RESULTS / "report" / "index.html",
    params:
        call=TIERCEL + ["report", "--site", SITE, "--study", STUDY],
    shell:
        "{params.call:q} > /dev/null"
