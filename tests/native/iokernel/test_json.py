"""The document is valid JSON whatever a path holds."""

import json
import os

from hypothesis import HealthCheck, example, given, settings, strategies

# any bytes but NUL and '/', short enough for a file name with its suffix
NAMES = (
    strategies.binary(min_size=1, max_size=60)
    .map(lambda b: b.replace(b"\0", b"_").replace(b"/", b"_"))
    .filter(lambda b: b not in (b".", b"..") and not b.startswith(b"-"))
)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=NAMES)
@example(name=b'say "hello" \\ and\nleave')
@example(name=b"\xff\xfe \x80 \xed\xa0\x80 \xc0\x80 \xf4\x90\x80\x80 \xe2\x82")
@example(name="Grüße, 世界 \U0001f642".encode())
@example(name=b"a@b,c=d#e%s%n")
@example(name=bytes(range(1, 32)))
@example(name=b"\x7f\x7f")
def test_any_path_survives_the_round_trip(iokernel, name):
    run = iokernel.good("-t 8 -b 16 -F -o", name, "--per-rank")
    run.stdout.encode()  # UTF-8 without surrogates: those are escapes
    document = run.document
    test = document["tests"][0]
    assert os.fsencode(test["Path"]) == os.fsencode(test["Parameters"]["testFileName"]) == name
    assert os.fsencode(test["Results"][0]["perRank"][0]["path"]) == name + b".00000000"
    assert name in [os.fsencode(argument) for argument in document["argv"]]
    assert list(iokernel.directory.iterdir()) == []


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=NAMES)
def test_errors_are_valid_too_and_one_line(iokernel, name):
    run = iokernel("-r -t 8 -b 16 -o", name)
    assert run.status == 1 and run.stderr.count("\n") == 1
    assert run.document["status"] == "failed" and run.document["summary"] == []
    assert os.fsencode(run.document["error"]["path"]) == name
    assert run.document["error"]["errno"] == 2


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=NAMES)
def test_the_summary_file_may_have_any_name(iokernel, name):
    run = iokernel("-w -t 8 -b 16 -o f --summary-file", name)
    assert (run.status, run.stdout, run.stderr) == (0, "", "")
    summary = iokernel.path(os.fsdecode(name))
    assert json.loads(summary.read_bytes())["status"] == "ok"
    summary.unlink()
    assert list(iokernel.directory.iterdir()) == []  # no temporary file either


def test_ior_keys_are_there(iokernel):
    run = iokernel("-w -r -t 4k -b 8k -O summaryFile=s.json,summaryFormat=JSON")
    assert run.status == 0
    document = json.loads(iokernel.path("s.json").read_text())
    assert {"Version", "Began", "Command line", "Machine", "tests", "summary", "Finished"} <= document.keys()
    (test,) = document["tests"]
    assert {"TestID", "StartTime", "Path", "Parameters", "Options", "Results"} <= test.keys()
    for result in test["Results"]:
        assert {
            "access",
            "bwMiB",
            "blockKiB",
            "xferKiB",
            "iops",
            "latency",
            "openTime",
            "wrRdTime",
            "closeTime",
            "totalTime",
        } <= result.keys()
    for line in document["summary"]:
        assert {
            "operation",
            "API",
            "TestID",
            "segmentCount",
            "blockSize",
            "transferSize",
            "numTasks",
            "tasksPerNode",
            "repetitions",
            "filePerProc",
            "reorderTasks",
            "taskPerNodeOffset",
            "reorderTasksRandom",
            "reorderTasksRandomSeed",
            "bwMaxMIB",
            "bwMinMIB",
            "bwMeanMIB",
            "bwStdMIB",
            "OPsMax",
            "OPsMin",
            "OPsMean",
            "OPsSD",
            "MeanTime",
            "xsizeMiB",
        } <= line.keys()


def test_one_line_options_are_recorded(iokernel):
    run = iokernel.good("-n 2 -w -F -z --random-offset-seed 11 -t 4k -b 16k -Y -B -G 12")
    parameters = run.parameters
    assert parameters["randomSeed"] == 11 and parameters["randomSeedGiven"] is True
    assert parameters["dataSeed"] == 12 and parameters["dataPattern"] == "checkable"
    assert parameters["odirect"] is True and parameters["preallocate"] is False
    assert (
        parameters["fsyncperwrite"] == 1
        and parameters["randomOffset"] == 1
        and parameters["filePerProc"] == 1
    )
