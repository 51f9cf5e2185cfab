"""Bad input to every command: one line that says what is wrong, exit code 2, no traceback, nothing done."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from tiercel.cli.main import MISTAKE, app, run

from ..conftest import Project

#: What typer makes of the program at each call, a tenth of a second long: here once for a thousand of them.
COMMAND: Any = get_command(app)
#: A trace of a real run: the events that a filter is tried on.
STRACE = Path(__file__).parents[1] / "data" / "traces" / "strace" / "dd.strace"


def asked(words: list[str]) -> tuple[int, str, str]:
    """Run the command line in this process; return its exit code, and what it printed on both streams."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = run(lambda **options: COMMAND(words, **options))
    return code, out.getvalue(), err.getvalue()


def commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


def usage_mistakes() -> Iterator[list[str]]:
    """A command of each group with an option that it does not have; an option of each type without its value,
    with nothing as its value (`--folder "$UNSET"`: the current folder, as a path), and with a word for a
    number. Every option that takes a fraction, with one that nothing can have."""
    groups: set[tuple[str, ...]] = set()
    types: set[str] = set()
    for path, command in commands(COMMAND):
        if path[:-1] not in groups:  # before a program's own options, where a command takes a program
            groups.add(path[:-1])
            yield [*path, "--no-such-option"]
        for parameter in command.params:
            name = max(getattr(parameter, "opts", [""]), key=len)
            if not name.startswith("--") or getattr(parameter, "is_flag", False):
                continue
            kind = parameter.type_descriptor.annotation
            if kind is float:
                yield [*path, name, "inf"]
            if str(kind) in types:
                continue
            types.add(str(kind))
            yield [*path, name]
            yield [*path, name, ""]
            if kind in (int, float):
                yield [*path, name, "many"]


@pytest.mark.parametrize("words", list(usage_mistakes()), ids=" ".join)
def test_a_mistake_in_usage(words: list[str]) -> None:
    code, out, err = asked(words)
    assert code == MISTAKE and out == "", (out, err)
    assert err.startswith("tiercel: ") and err.count("\n") == 1


# -- files that are not what they should be ------------------------------------------------------------------

_VERBS = ("summary", "overlap", "explain", "files", "report", "timeline", "convert", "export-perfetto")


def trace_command(verb: str, path: Path, out: Path) -> list[str]:
    if verb in {"convert", "export-perfetto"}:
        return ["trace", verb, str(path), str(out / ("x.parquet" if verb == "convert" else "x.json"))]
    more = ["-o", str(out / "x.html")] if verb in {"report", "timeline"} else []
    return ["trace", verb, str(path), *more]


def no_file(folder: Path) -> Path:
    return folder / "nowhere"


def empty_folder(folder: Path) -> Path:
    (folder / "empty").mkdir()
    return folder / "empty"


def written(name: str, content: bytes) -> Any:
    def make(folder: Path) -> Path:
        (folder / name).write_bytes(content)
        return folder / name

    return make


_FILES = {
    "no file": no_file,
    "an empty folder": empty_folder,
    "text": written("x.pfw", b"hello, I am no trace\n" * 3),
    "noise named Darshan": written("x.darshan", bytes(range(256)) * 8),
    "noise named Parquet": written("x.parquet", bytes(range(256)) * 8),
    "noise named gzip": written("x.pfw.gz", b"\x1f\x8b" + bytes(range(256))),
    "a torn tar": written("x.tar", b"\0" * 512),
    "a page": written("x.html", b"<html></html>"),
    "a name with a newline": written("a\nb.pfw", b"nothing"),
}


@pytest.mark.parametrize("verb", _VERBS)
@pytest.mark.parametrize("what", _FILES)
def test_a_trace_that_is_none(verb: str, what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = _FILES[what](tmp_path)
    there = {p for p in tmp_path.rglob("*") if "cache" not in p.parts}
    refused(trace_command(verb, path, tmp_path))
    assert {p for p in tmp_path.rglob("*") if "cache" not in p.parts} == there  # nothing half made


@pytest.mark.parametrize(
    "what", ["no file", "an empty folder", "text", "noise named Parquet", "noise named gzip"]
)
@pytest.mark.parametrize("words", [["place", "plan"], ["place", "check"], ["advise"]], ids=" ".join)
def test_a_program_whose_trace_is_none(words: list[str], what: str, tmp_path: Path) -> None:
    refused([*words, str(_FILES[what](tmp_path))])


def refused(words: list[str]) -> str:
    code, out, err = asked(words)
    assert code == MISTAKE and out == "", (code, out, err)
    assert err.startswith("tiercel: ") and err.count("\n") == 1 and "Traceback" not in err, err
    return err


# -- studies that say what cannot be -------------------------------------------------------------------------

_STUDY = """
study: bad
title: t
repetitions: {minimum: 1, maximum: 2}
experiments:
  e:
    processes_per_node: [1]
    workloads:
      w:
        operation: write
        transfer_size: 1MiB
        data_per_node: 4MiB
"""


@pytest.mark.parametrize(
    ("good", "bad", "said"),
    [
        ("study: bad", "study: BAD NAME", "study"),
        ("study: bad", "study: ../bad", "study"),
        ("study: bad", "", "study"),
        ("study: bad", "study: [bad]", "study"),
        ("title: t", "titel: t", "title"),
        ("title: t", "title: {a: b}", "title"),
        ("minimum: 1, maximum: 2", "minimum: 3, maximum: 2", "maximum"),
        ("minimum: 1, maximum: 2", "minimum: 0, maximum: 2", "minimum"),
        ("minimum: 1, maximum: 2", "minimum: -1, maximum: 2", "minimum"),
        ("minimum: 1, maximum: 2", "minimum: 1.5, maximum: 2", "minimum"),
        ("minimum: 1, maximum: 2", "minimum: many, maximum: 2", "minimum"),
        ("minimum: 1, maximum: 2", "minimum: 1, maximum: .inf", "maximum"),
        ("minimum: 1, maximum: 2", "minimum: 1, maximum: .nan", "maximum"),
        ("minimum: 1, maximum: 2", "minimum: 1, maximum: 2000000000", "maximum"),
        ("minimum: 1, maximum: 2", "minimum: 1, maximum: 2, target: .inf", "target"),
        ("minimum: 1, maximum: 2", "minimum: 1, maximum: 2, target: -0.1", "target"),
        ("minimum: 1, maximum: 2", "minimum: 1, most: 2", "most"),
        ("title: t", "title: t\ntimeout: never", "timeout"),
        ("title: t", "title: t\ntimeout: -5s", "timeout"),
        ("title: t", "title: t\ntimeout: .inf", "timeout"),
        ("title: t", "title: t\nbudget: .nan", "budget"),
        ("title: t", "title: t\nbudget: 1 fortnight", "budget"),
        ("title: t", "title: t\nengines: [ioor]", "engines"),
        ("title: t", "title: t\nengines: []", "engines"),
        ("title: t", "title: t\nengines: 5", "engines"),
        ("title: t", "title: t\ntrace: perhaps", "trace"),
        ("title: t", "title: t\nstorages: [nowhere-at-all]", "storages"),
        ("title: t", "title: t\nlayers: [wishes]", "layers"),
        ("processes_per_node: [1]", "processes_per_node: []", "processes_per_node"),
        ("processes_per_node: [1]", "processes_per_node: [0]", "processes_per_node"),
        ("processes_per_node: [1]", "processes_per_node: [-2]", "processes_per_node"),
        ("processes_per_node: [1]", "processes_per_node: [all]", "processes_per_node"),
        ("processes_per_node: [1]", "processes_per_node: [1.5]", "processes_per_node"),
        ("processes_per_node: [1]", "processes_per_node: [1000000]", "processes_per_node"),
        ("processes_per_node: [1]", "processes_per_node: [.inf]", "processes_per_node"),
        ("processes_per_node: [1]", "processes_per_node: {1: 2}", "processes_per_node"),
        ("processes_per_node: [1]", "nodes: []", "nodes"),
        ("processes_per_node: [1]", "nodes: [0]", "nodes"),
        ("processes_per_node: [1]", "nodes: [none]", "nodes"),
        ("processes_per_node: [1]", "proceses_per_node: [1]", "processes_per_node"),
        ("operation: write", "operation: wriet", "operation"),
        ("operation: write", "operation: [write]", "operation"),
        ("operation: write", "oporation: write", "operation"),
        ("transfer_size: 1MiB", "transfer_size: 1MB", "transfer_size"),
        ("transfer_size: 1MiB", "transfer_size: 0", "transfer_size"),
        ("transfer_size: 1MiB", "transfer_size: -1", "transfer_size"),
        ("transfer_size: 1MiB", "transfer_size: .inf", "transfer_size"),
        ("transfer_size: 1MiB", "transfer_size: .nan", "transfer_size"),
        ("transfer_size: 1MiB", "transfer_size: 0.3", "transfer_size"),
        ("transfer_size: 1MiB", "transfer_size: much", "transfer_size"),
        ("transfer_size: 1MiB", "transfer_size: [1MiB", "not valid YAML"),
        ("transfer_size: 1MiB", "transfer_size: 99999999999999999999999TiB", "transfer_size"),
        ("data_per_node: 4MiB", "data_per_node: 0", "data_per_node"),
        ("data_per_node: 4MiB", "data_per_node: .inf", "data_per_node"),
        ("data_per_node: 4MiB", "data_per_node: 1PiB", "a run needs 1 PiB"),
        ("data_per_node: 4MiB", "data_per_node: 4MiB\n        pattern: randm", "pattern"),
        ("data_per_node: 4MiB", "data_per_node: 4MiB\n        fsync: often", "fsync"),
        ("data_per_node: 4MiB", "data_per_node: 4MiB\n        kind: i/o", "kind"),
        ("data_per_node: 4MiB", "data_per_node: 4MiB\n        kind: replay\n        trace: /nowhere.pfw", ""),
        ("workloads:", "workloads: {}\n    other:", "workloads"),
        ("workloads:", "workload:", "workloads"),
        ("experiments:", "experiment:", "experiments"),
        ("experiments:", "experiments: []\nother:", "experiments"),
        ("experiments:", "\texperiments:", "not valid YAML"),
        ("title: t", "title: t\ntitle: u", "title"),
        ("title: t", "&a title: *b", ""),
        ("title: t", "title: !!python/object/apply:os.system [true]", ""),
    ],
)
def test_a_study_that_cannot_be(good: str, bad: str, said: str, tmp_path: Path) -> None:
    assert good in _STUDY
    (tmp_path / "bad.yaml").write_text(_STUDY.replace(good, bad, 1))
    words = refused(["check", "--study", str(tmp_path / "bad.yaml")])
    assert "bad.yaml" in words or "study" in words
    assert said in words


def test_the_good_study_is_good(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text(_STUDY)
    code, out, err = asked(["check", "--study", str(tmp_path / "bad.yaml"), "--json"])
    assert code == 0 and err == "" and '"study": "bad"' in out


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"7",
        b"study: x\0",
        b"\xff\xfe",
        b"- a\n- b",
        b"{",
        b"a: &a [*a]",
        b"study: " + b"[" * 5000,
        b"study: " + b"[" * 100_000,  # libyaml went so deep by recursion, and the process ended
        b"- " * 100_000,
        b"x" * 1_000_000 + b": 1",
        b"a: &a [x, x, x, x, x, x, x, x, x, x]\n"
        + b"".join(b"%c: &%c [%b]\n" % (n + 1, n + 1, b", ".join([b"*%c" % n] * 10)) for n in b"abcdefghi"),
    ],
    ids=lambda content: repr(content[:40]),
)
def test_a_study_that_is_no_study(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_bytes(content)
    refused(["plan", "--study", str(tmp_path / "x.yaml")])


# -- words that do not fit -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        ["evaluate", "--site", "nowhere"], ["evaluate", "--site", "../local"], ["plan", "--site", ""],
        ["show", "--site", "a/b"], ["show", "--site", "nowhere"], ["report", "--site", "nowhere"],
        ["collect", "--site", "nowhere"], ["collect", "--site", ".."],
        ["trace", "collect", "--site", "../.."],
        ["show", "--site", "/"], ["artifact", "--site", "../results"], ["place", "train", "--site", ".."],
        ["advise", "--", ""], ["advise", "-o", "/dev/null", "--", "true"],
        ["clean", "--site", "nowhere"], ["check", "--site", "nowhere"],
        ["check", "--study", "nowhere"], ["plan", "--study", "/nowhere.yaml"], ["plan", "--study", "/"],
        ["show", "--study", "nowhere"], ["site", "show", "nowhere"], ["site", "check", "nowhere"],
        ["site", "check", ".."],
        ["site", "new", "Bad Name"], ["site", "new", "../x"], ["site", "new", "local"],
        ["stack", "status", "--site", "nowhere"], ["compare"], ["compare", "one"],
        ["compare", "nowhere", "local"], ["compare", "local", "local", "--fail-on", "sometimes"],
        ["compare", "local", "local", "--fail-on", "-5%"], ["engines", "compare", "ioor"],
        ["advise", "--", "/nowhere/program"], ["advise", "--minutes", "-1", "--", "true"],
        ["advise", "--minutes", "nan", "--", "true"], ["advise", "--minutes", "inf", "--", "true"],
        ["advise", "--home", "nowhere", "--", "true"], ["advise", "--files", "nowhere", "--", "true"],
        ["place", "train", "--study", "nowhere"],
        ["place", "sweep", "--study", "nowhere", "--site", "nowhere"],
        ["place", "apps", "--only", "nothing"], ["place", "apps", "--repetitions", "0"],
        ["place", "plan", "/nowhere", "--capacity", "x"], ["place", "plan", "/nowhere", "--confidence", "2"],
        ["dl", "run", "nowhere"], ["dl", "run", "/nowhere.yaml"], ["dl", "generate", "nowhere"],
        ["dl", "run", "cosmoflow", "--scale", "-1"], ["dl", "run", "cosmoflow", "--scale", "nan"],
        ["dl", "run", "cosmoflow", "--set", "no.such.key=1"], ["dl", "run", "cosmoflow", "--set", "x"],
        ["cache", "run"], ["cache", "drop", "--storage", "/nowhere"],
        ["share", "status", "--socket", "/nowhere/s"],
        ["share", "ticket"], ["share", "simulate", "--policy", "unfair"],
        ["trace", "survey", "/nowhere"], ["trace", "survey", "/etc/hostname"],
        ["trace", "survey", "/tmp", "--time-limit", "nan"],
        ["trace", "survey", "/tmp", "--time-limit", "1e400"],
        ["trace", "survey", "/tmp", "--filter", ""], ["trace", "survey", "/tmp", "--jobs", "0"],
        ["trace", "survey", "/tmp", "--since", "soon"],
        ["trace", "compare", "/nowhere", "/"],
        ["trace", "collect", "--site", "nowhere"], ["trace", "summary", "/nowhere", "--memory", "lots"],
        ["trace", "summary", "/nowhere", "--format", "papyrus"],
        ["trace", "files", "/nowhere", "--limit", "-1"], ["trace", "survey", "/nowhere", "--limit", "-1"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_words_that_do_not_fit(words: list[str]) -> None:
    refused(words)


def test_a_script_that_only_a_shell_starts_is_no_program(tmp_path: Path) -> None:
    script = Path(written("run.sh", b"echo hello\n")(tmp_path))
    script.chmod(0o755)
    assert "#!/bin/sh" in refused(["advise", "--", str(script)])


def test_a_program_of_another_machine_is_no_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel refuses it; its tracer ended with code 1, and the advice was that it writes no files."""
    monkeypatch.chdir(tmp_path)  # it is tried on a copy of the working folder
    program = bytearray(Path(sys.executable).resolve().read_bytes()[:4096])
    program[18:20] = (0xFFFF).to_bytes(2, "little")  # e_machine: none that there is
    path = Path(written("foreign", bytes(program))(tmp_path))
    path.chmod(0o755)
    said = refused(["advise", "-o", str(tmp_path / "out"), "--", str(path)])
    assert f"{path}: " in said and "Exec format error" in said


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("file::INTEGER > 1", "Could not convert"), ("error('no')", "no"),
        (f"size * {2**63 - 1} > 1", "Overflow"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("verb", ["summary", "files", "explain"])
def test_a_filter_that_no_row_fits(verb: str, condition: str, said: str) -> None:
    """Only the events show it: as a condition it is well formed."""
    assert said in refused(["trace", verb, str(STRACE), "--filter", condition])


@pytest.mark.parametrize("first", [b"#!/nowhere/sh", b"#!/bin/sh\r", b"#!"])
def test_a_script_whose_interpreter_is_not_there_is_no_program(tmp_path: Path, first: bytes) -> None:
    """It never ran, and was told to read and write no files of its own."""
    script = Path(written("run.sh", first + b"\necho hello\n")(tmp_path))
    script.chmod(0o755)
    assert "its first line names" in refused(["advise", "--", str(script)])


def test_what_lies_beside_the_results_is_no_site(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """`..` is a folder that is there: tables were written into the project itself."""
    project.results.mkdir(parents=True)
    (project.root / "raw").mkdir()
    monkeypatch.chdir(project.root)
    there = set(project.root.iterdir())
    assert "no site named '..'" in refused(["collect", "--site", "..", "--study", "tiny"])
    assert set(project.root.iterdir()) == there
    assert "did you mean local?" in refused(["show", "--site", "LOCAL", "--study", "tiny"])


def test_an_unknown_study_is_told_once_where_there_are_results(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.results.mkdir(parents=True)
    monkeypatch.chdir(project.root)
    refused(["report", "--study", "nowhere"])


# -- what is there and cannot be read as a file --------------------------------------------------------------


def a_pipe(folder: Path, ending: str) -> Path:
    os.mkfifo(folder / f"pipe{ending}")  # who opens it waits for one who writes
    return folder / f"pipe{ending}"


def a_link_to_itself(folder: Path, ending: str) -> Path:
    (folder / f"loop{ending}").symlink_to(f"loop{ending}")
    return folder / f"loop{ending}"


def a_link_to_nothing(folder: Path, ending: str) -> Path:
    (folder / f"dead{ending}").symlink_to("nowhere")
    return folder / f"dead{ending}"


def a_folder(folder: Path, ending: str) -> Path:
    (folder / f"folder{ending}").mkdir()
    return folder / f"folder{ending}"


def noise(folder: Path, ending: str) -> Path:
    return Path(written(f"noise{ending}", bytes(range(256)) * 16)(folder))


@pytest.mark.parametrize("thing", [a_pipe, a_link_to_itself, a_link_to_nothing, a_folder, noise])
@pytest.mark.parametrize(
    ("words", "ending"),
    [
        (["check", "--study"], ".yaml"), (["evaluate", "--study"], ".yaml"), (["dl", "check"], ".yaml"),
        (["dl", "rules"], ".yaml"), (["share", "policy", "fair", "--jobs"], ".yaml"),
        (["share", "calibrate"], ".yaml"), (["share", "calibrate"], ".json"), (["reproduce"], ".zip"),
        (["trace", "summary"], ".pfw"), (["trace", "summary"], ".parquet"),
        (["place", "plan"], ".parquet"), (["compare", "local"], ".zip"),
        (["cache", "inspect", "--storage"], ""),
        (["share", "status", "--socket"], ""), (["clean", "--study"], ".yaml"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else value,
)  # fmt: skip
def test_what_is_no_file(words: list[str], ending: str, thing: Any, tmp_path: Path) -> None:
    if thing is a_folder and words == ["cache", "inspect", "--storage"]:
        return  # that is what it wants
    refused([*words, str(thing(tmp_path, ending))])


@pytest.mark.parametrize(
    "words", [["advise", "-o", "LOOP", "--", "true"], ["trace", "survey", "LOOP"]], ids=" ".join
)
def test_a_link_that_leads_to_itself(words: list[str], tmp_path: Path) -> None:
    """Python's Path.resolve raises what is no OSError."""
    loop = str(a_link_to_itself(tmp_path, ""))
    assert "loop" in refused([loop if word == "LOOP" else word for word in words])


@pytest.mark.parametrize(
    "words",
    [
        ["plan", "--site", "x" * 1_000_000], ["plan", "--study", "x" * 1_000_000],
        ["x" * 1_000_000], ["trace", "summary", str(STRACE), "--filter", "x" * 1_000_000],
        ["dl", "check", "unet3d", "--set", "x" * 1_000_000 + "=1"], ["claims", "x" * 1_000_000],
    ],
    ids=lambda words: " ".join(words)[:40],
)  # fmt: skip
def test_a_word_of_a_megabyte_is_not_shown_whole(words: list[str]) -> None:
    assert len(refused(words)) < 5000


@pytest.mark.parametrize("condition", ["(" * 5000, "(" * 200 + "1 = 1" + ")" * 200])
def test_a_filter_of_parentheses_alone(condition: str) -> None:
    """DuckDB's parser took minutes for it."""
    assert "parentheses" in refused(["trace", "summary", str(STRACE), "--filter", condition])


@pytest.mark.parametrize(
    "words",
    [
        ["plan", "--jobs", "99999999999999999999999"], ["status", "--study", "a\nb"],
        ["show", "--site", "lo\x1b[31mcal"], ["show", "--site", "\udcff"],
        ["evaluate", "--minutes", "-1"], ["evaluate", "--minutes", "nan"],
        ["evaluate", "--simulate", "--set", "="], ["evaluate", "--simulate", "--set", "a.b.c=nan"],
        ["init", "/dev/null/x"], ["init", "/proc/x"], ["compare", "local", "local", "--margin", "nan"],
        ["compare", "local", "local", "--storage-map", "a=b=c"], ["compare", "local@2099", "local"],
        ["compare", ":", ":"], ["papers", "-1"], ["claims", ""], ["advise", "--runs", "-3", "--", "true"],
        ["advise", "-n", "0", "--", "true"], ["artifact", "--date", "2024-02-30"],
        ["artifact", "--doi", "no doi"], ["reproduce", "/dev/zero"], ["site", "new", "\u00e9t\u00e9"],
        ["site", "calibrate", "local", "--seconds", "1e308"], ["site", "whatif", "--set", "\0"],
        ["stack", "mirror", "--to", ""], ["stack", "install", "--packages", "a;b"],
        ["trace", "summary", str(STRACE), "--rank", "99999999999999999999999"],
        ["trace", "summary", str(STRACE), "--memory", "1B"],
        ["trace", "summary", str(STRACE), "--filter", "size > 1; DROP TABLE events"],
        ["trace", "summary", str(STRACE), "--filter", "(SELECT 1 FROM read_csv('/etc/passwd'))"],
        ["trace", "explain", str(STRACE), "--stripe", "-4MiB"],
        ["trace", "convert", str(STRACE), "/dev/null/x.parquet"], ["trace", "convert", str(STRACE), ""],
        ["cache", "run", "--size", "nan", "--", "true"], ["cache", "bench", "--rate", "-1"],
        ["dl", "rules", "unet3d", "--hosts", "3", "--processes", "2"],
        ["dl", "run", "unet3d", "--scale", "1e308"],
        ["dl", "check", "unet3d", "--set", "reader.batch_size=nan"],
        ["dl", "generate", "unet3d", "--start-limit", "nan"],
        ["place", "plan", str(STRACE), "--capacity", "main=nan"],
        ["place", "train", "--seed", "-1"], ["share", "policy", "size-fair", "--job", "a:nan"],
        ["share", "simulate", "--lambda", "nan"], ["share", "ticket", "--job", "j", "--for", "-1h"],
        ["share", "drop", "j", "--minutes", "nan"], ["share", "bench", "--servers", "0"],
        ["batch", "--name", "x"], ["site", "check-job", "--nodes", "0"], ["--site", "local", "show"],
        ["", "show"],
        ["show", "--json=maybe"], ["show", "--", "--json"],
    ],
    ids=lambda words: " ".join(words).encode("unicode_escape").decode(),
)  # fmt: skip
def test_odd_words(words: list[str]) -> None:
    refused(words)
