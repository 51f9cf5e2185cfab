"""`python -m benchmarks.findings`: the labelled set, its halves, and how precision and recall are counted."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import tarfile
from collections import Counter
from pathlib import Path

import pytest
from benchmarks.findings.command import main
from benchmarks.findings.drishti import ask_drishti, labels_of
from benchmarks.findings.halves import halves, write_halves
from benchmarks.findings.labels import HALVES, Trace, read_set
from benchmarks.findings.make import main as make
from benchmarks.findings.score import Count, score

from tiercel.errors import UserError
from tiercel.traces import open_trace


def _trace(name: str, *labels: str, allowed: str = "", half: str = "tuning", tracer: str = "strace") -> Trace:
    return Trace(name, f"{name}.x", tracer, frozenset(labels), {allowed: "why"} if allowed else {}, half)  # type: ignore[arg-type]


def test_precision_and_recall_by_hand() -> None:
    traces = [
        _trace("a", "stdio", "imbalance"),  # stdio found, imbalance missed
        _trace("b", "stdio"),  # missed, and slow-part said falsely
        _trace("c"),  # clean, and nothing said
        _trace("d"),  # clean, and stdio said falsely
        _trace("e", "imbalance", allowed="slow-part"),  # found; what is allowed counts neither way
    ]
    said = {"a": {"stdio"}, "b": {"slow-part"}, "d": {"stdio"}, "e": {"imbalance", "slow-part"}}
    found = score(traces, said)
    assert found.labels["stdio"] == Count(right=1, false=1, missed=1)
    assert found.labels["imbalance"] == Count(right=1, false=0, missed=1)
    assert found.labels["slow-part"] == Count(right=0, false=1, missed=0)
    # Of the four said that count, two are right; of the four that are true, two were said.
    assert found.whole == Count(right=2, false=2, missed=2)
    assert (found.whole.precision, found.whole.recall) == (0.5, 0.5)
    assert (found.labels["slow-part"].precision, found.labels["slow-part"].recall) == (0.0, None)
    assert (found.labels["misaligned"].precision, found.labels["misaligned"].recall) == (None, None)
    assert (found.traces, found.clean, found.alarmed) == (5, 2, 1)
    assert [(m.trace, m.missed, m.false) for m in found.misses] == [
        ("a", ["imbalance"], []), ("b", ["stdio"], ["slow-part"]), ("d", [], ["stdio"]),
    ]  # fmt: skip


def test_only_the_judged_labels_count() -> None:
    found = score([_trace("a", "stdio", "imbalance")], {"a": {"stdio", "slow-part"}}, ["stdio", "misaligned"])
    assert found.whole == Count(right=1) and list(found.labels) == ["misaligned", "stdio"]


def test_a_set_is_read_and_its_mistakes_are_told(tmp_path: Path) -> None:
    table = tmp_path / "labels.yaml"
    table.write_text(
        "- {name: a, file: a.strace, tracer: strace, labels: [stdio], allowed: {imbalance: why}}"
    )
    [trace] = read_set(tmp_path)
    assert trace.labels == {"stdio"} and trace.allowed == {"imbalance": "why"} and trace.half == "tuning"
    for wrong, said in {
        "- {name: a, file: f, tracer: t}": "no labels",
        "- {name: a, file: f, tracer: t, labels: [slow]}": "no label slow",
        "- {name: a, file: f, tracer: t, labels: [], half: third}": "half is one of",
        "- {name: a, file: f, tracer: t, labels: [stdio], allowed: {stdio: x}}": "a label and allowed",
        "- {name: a, file: f, tracer: t, labels: [], note: x}": "note means nothing",
        "[1": "not YAML",
        "name: a": "not a list",
    }.items():
        table.write_text(wrong)
        with pytest.raises(UserError, match=said):
            read_set(tmp_path)


def test_halves_are_the_same_each_time_and_share_labels_and_tracers() -> None:
    traces = [
        _trace(f"{label}-{tracer}-{i}", *([label] if label else []), tracer=tracer)
        for label in ("stdio", "imbalance", "")
        for tracer in ("darshan", "strace")
        for i in range(4)
    ]
    chosen = halves(traces)
    assert chosen == halves(list(reversed(traces)))
    for what in ("stdio", "imbalance", "", "darshan", "strace"):
        members = [
            t for t in traces if what == t.tracer or (what or None) in (*t.labels, *([None] * (not t.labels)))
        ]
        count = Counter(chosen[t.name] for t in members)
        assert abs(count["tuning"] - count["kept-apart"]) <= 2, what


def test_drawing_the_halves_leaves_the_rest_of_the_table(tmp_path: Path) -> None:
    table = tmp_path / "labels.yaml"
    entry = "- name: {}\n  file: f\n  tracer: strace\n  labels: [stdio]  # why\n"
    table.write_text("# A set.\n" + entry.format("a") + entry.format("b"))
    write_halves(tmp_path)
    first = table.read_text()
    assert sorted(t.half for t in read_set(tmp_path)) == ["kept-apart", "tuning"]
    write_halves(tmp_path)
    assert table.read_text() == first
    assert re.sub(r"  half: .*\n", "", first) == "# A set.\n" + entry.format("a") + entry.format("b")


_SYNC = '7 {:.6f} write(3</d/f>, "", 4096) = 4096 <0.000010>\n7 {:.6f} fsync(3</d/f>) = 0 <0.010000>\n'


def _labelled(folder: Path) -> Path:
    """Two traces: 100 synced writes, half of the time syncs, labelled so; and one read, labelled wrongly."""
    folder.mkdir()
    lines = ['7 1700000000.000000 openat(AT_FDCWD, "/d/f", O_WRONLY) = 3</d/f> <0.000010>\n']
    lines += [_SYNC.format(1700000000 + i * 0.02 + 0.001, 1700000000 + i * 0.02 + 0.002) for i in range(100)]
    (folder / "sync.strace.gz").write_bytes(gzip.compress("".join(lines).encode()))
    (folder / "read.strace").write_text(
        '7 1700000000.000000 openat(AT_FDCWD, "/d/f", O_RDONLY) = 3</d/f> <0.000010>\n'
        '7 1700000000.100000 read(3</d/f>, "", 4194304) = 4194304 <0.020000>\n'
        "7 1700000005.000000 close(3</d/f>) = 0 <0.000010>\n"
    )
    (folder / "labels.yaml").write_text(
        "- {name: sync, file: sync.strace.gz, tracer: strace, labels: [fsync-storm],\n"
        "   allowed: {small-transfers: records}}\n"
        "- {name: read, file: read.strace, tracer: strace, labels: [imbalance], half: kept-apart}\n"
    )
    return folder


def test_the_command_asks_every_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = _labelled(tmp_path / "set")
    assert main([str(folder), "--json", "--show"]) == 0
    result = json.loads(capsys.readouterr().out)["tiercel"]
    storm = result["tuning"]["labels"]["fsync-storm"]
    assert storm == {"right": 1, "false": 0, "missed": 0, "precision": 1.0, "recall": 1.0}
    assert result["kept-apart"]["labels"]["imbalance"]["missed"] == 1
    assert "misses" in result["tuning"] and "misses" not in result["kept-apart"]
    assert main([str(folder), "--half", "kept-apart", "--show"]) == 0
    shown = capsys.readouterr().out
    assert "read: missed imbalance" in shown and "tiercel, tuning" not in shown


def test_an_unreadable_trace_is_told_and_counts_as_silence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = _labelled(tmp_path / "set")
    (folder / "sync.strace.gz").unlink()
    assert main([str(folder), "--json"]) == 1
    captured = capsys.readouterr()
    assert "sync: " in captured.err
    tuning = json.loads(captured.out)["tiercel"]["tuning"]
    assert tuning["labels"]["fsync-storm"]["missed"] == 1 and tuning["unread"] == 1
    assert main([str(tmp_path / "nowhere")]) == 2


def test_a_set_of_which_nothing_could_be_read_has_no_score(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = _labelled(tmp_path / "set")
    for trace in read_set(folder):
        (folder / trace.file).write_bytes(b"")
    assert main([str(folder)]) == 2
    captured = capsys.readouterr()
    assert "none of its traces could be read" in captured.err and not captured.out


def test_a_code_that_means_several_labels_means_the_true_one() -> None:
    assert labels_of({"P19"}, _trace("a", "slow-part")) == {"slow-part"}
    assert labels_of({"P19"}, _trace("a", "single-writer", allowed="imbalance")) == {"single-writer"}
    assert labels_of({"P19"}, _trace("a", allowed="slow-part")) == {"slow-part"}
    assert labels_of({"P19", "P05"}, _trace("a")) == {"imbalance", "small-transfers"}
    assert labels_of({"P01", "JOB"}, _trace("a")) == set()


def test_drishti_is_run_on_each_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for Drishti: it writes the CSV file where it is told to, and fails on one log."""
    stand_in = tmp_path / "drishti"
    stand_in.write_text(
        "#!/bin/sh\n"
        'test -e "$4" || exit 3\n'
        'case "$4" in *broken*) echo "no such log" >&2; exit 1;; esac\n'
        'printf "JOB,S01,P05,P01\\n1,True,False,True\\n" > "$3/log.csv"\n'
    )
    stand_in.chmod(0o755)
    traces = [_trace("good", "stdio"), _trace("broken", "stdio")]
    for trace in traces:
        (tmp_path / trace.file).touch()
    monkeypatch.chdir(tmp_path)  # it is started elsewhere: a relative folder must do, too
    said, unread = ask_drishti(str(stand_in), traces, Path())
    assert said == {"good": {"stdio"}}
    assert unread == ["broken: no such log"]


def _strace_works() -> bool:
    try:
        return (
            subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True, check=False).returncode
            == 0
        )
    except OSError:
        return False


@pytest.mark.skipif(not _strace_works(), reason="strace is not installed, or may not trace")
def test_a_trace_is_made_as_the_table_says(tmp_path: Path) -> None:
    folder, study = tmp_path / "set", tmp_path / "study"
    folder.mkdir()
    (folder / "labels.yaml").write_text(
        "- {name: copy, file: copy.strace.gz, tracer: strace, labels: [small-transfers], storage: near,\n"
        "   inputs: {input: 64KiB}, program: 'dd if={data}/input of={data}/output bs=4096'}\n"
    )
    assert make(["--set", str(folder), "--study", str(study)]) == 0
    frame = open_trace(folder / "copy.strace.gz", cache=tmp_path / "cache")
    where = str(study / "data" / "output")
    written = frame.query(f"SELECT size FROM events WHERE kind = 'write' AND file = '{where}'")
    assert list(written["size"]) == [4096] * 16
    text = gzip.decompress((folder / "copy.strace.gz").read_bytes()).decode()
    assert all("(DELAYED)" in line for line in text.splitlines() if " write(" in line and where in line)
    assert not (study / "data").exists() and not (study / "logs").exists()


def test_what_a_trace_needs_is_named_and_nothing_is_removed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "labels.yaml").write_text(
        "- {name: a, file: a.darshan, tracer: darshan, labels: [], program: 'true', storage: disk}\n"
        "- {name: b, file: b.darshan, tracer: darshan, labels: [], program: 'true', storage: network}\n"
    )
    study = tmp_path / "study"
    command = ["--set", str(tmp_path), "--study", str(study)]
    assert make(command) == 1
    said = capsys.readouterr().err
    assert "needs --darshan" in said and "needs --place network=FOLDER" in said
    (study / "data").mkdir()
    (study / "data" / "precious").touch()
    assert make([*command, "--only", "a"]) == 1
    assert "in the way" in capsys.readouterr().err and (study / "data" / "precious").exists()


def test_the_projects_set_is_whole(checkout: Path) -> None:
    """Every trace is there, both halves have every tracer, and the files stay small."""
    folder = checkout / "benchmarks" / "findings" / "set"
    traces = read_set(folder)
    assert len(traces) >= 80
    files = [folder / t.file for t in traces]
    assert {p.name for p in files} | {"labels.yaml"} == {p.name for p in folder.iterdir()}
    assert sum(p.stat().st_size for p in files) < 3 << 20
    for tracer in ("darshan", "dxt", "dftracer", "strace"):
        assert {t.half for t in traces if t.tracer == tracer} == set(HALVES)


#: Where a neutral machine's files lie: the study's folder, and what every system has.
_NEUTRAL = re.compile(
    r"/(?:tmp/study|mnt/shared|mnt/memory|dev|etc|lib|lib64|opt/hpc|proc|run|selinux|sys|usr|var)(?:/|$)"
)
_PATH = re.compile(r"""(?<=["<;, ])/\w[^">;, ]*""")


def test_the_projects_text_traces_name_only_neutral_paths(checkout: Path) -> None:
    folder = checkout / "benchmarks" / "findings" / "set"
    texts = {p.name: gzip.decompress(p.read_bytes()) for p in folder.glob("*.gz")}
    for path in folder.glob("*.tar"):
        with tarfile.open(path) as tar:
            for member in tar:
                stream = tar.extractfile(member)
                assert stream is not None
                texts[f"{path.name}: {member.name}"] = gzip.decompress(stream.read())
    assert texts
    for name, text in texts.items():
        named = set(_PATH.findall(text.decode(errors="replace")))
        assert {p for p in named if not _NEUTRAL.match(p)} <= {"/", "/bin", "/sbin", "/tmp"}, name


def test_the_projects_darshan_logs_name_only_neutral_paths(checkout: Path) -> None:
    darshan = pytest.importorskip("darshan")
    folder = checkout / "benchmarks" / "findings" / "set"
    logs = sorted(folder.glob("*.darshan"))
    assert logs
    for path in logs:
        report = darshan.DarshanReport(str(path), read_all=False)
        named = {name for name in report.name_records.values() if name.startswith("/")}
        named |= {word for word in report.metadata["exe"].split() if word.startswith("/")}
        named |= {mount for mount, _ in report.mounts} - {"/"}
        assert {p for p in named if not _NEUTRAL.match(p)} == set(), path.name
        assert report.metadata["job"]["uid"] == 0, path.name
