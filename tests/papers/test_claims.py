"""Statements: what follows from a figure of ours."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tiercel.errors import UserError
from tiercel.papers import book as books
from tiercel.papers import measure as measuring
from tiercel.papers.book import Found, read_book, write_book
from tiercel.papers.load import load_papers
from tiercel.papers.model import Answer, Statement
from tiercel.papers.readings import Figure, reading_of
from tiercel.papers.verdicts import VERDICTS, decided, row, told, told_ours, verdict_of

from ..cli.test_bad_input import asked

COMMAND = "tiercel share bench --quick --json"


def answer(**keys: object) -> Answer:
    return Answer.model_validate(
        {"how": "measured", "command": COMMAND, "at_least": 3.8, "at_most": 4.2, **keys}
    )


def found(ours: float) -> Found:
    return Found(ours=ours, command=COMMAND, date="2026-01-01", machine="m", version="0.1.0")


@pytest.mark.parametrize(
    ("ours", "verdict"), [(3.79, "differs"), (3.8, "holds"), (4.2, "holds"), (4.21, "differs")]
)
def test_bounds_decide(ours: float, verdict: str) -> None:
    assert verdict_of(answer(), found(ours)) == verdict


@pytest.mark.parametrize(
    ("better", "low", "high"),
    [
        ("higher", "differs", "better than the paper"),
        ("lower", "better than the paper", "differs"),
        (None, "differs", "differs"),
    ],
)
def test_beyond_the_bounds_one_side_may_be_better(better: str | None, low: str, high: str) -> None:
    asked = answer(better=better)
    assert [verdict_of(asked, found(ours)) for ours in (3, 4, 5)] == [low, "holds", high]


def test_one_bound_is_enough() -> None:
    assert verdict_of(answer(at_most=None), found(100)) == "holds"
    assert verdict_of(answer(at_least=None), found(-100)) == "holds"


def test_an_interval_decides_where_all_of_it_holds_or_fails() -> None:
    assert decided(answer(), 3.9, 4.1) and decided(answer(), 4.3, 9) and decided(answer(), 3.8, 4.2)
    assert not decided(answer(), 3.7, 4.1) and not decided(answer(), 3.9, 4.3)
    assert not decided(answer(at_most=None), 3.7, 9) and decided(answer(at_most=None), 3.9, 9)
    assert told("1.0 (10.85 to 10.80 GB/s)", "x") == "1.0 x (10.85 to 10.80 GB/s)"
    assert told("above 1", "x") == "above 1 x" and told("2 (5 for 10 ms)", "none") == "2 (5 for 10 ms)"
    assert told_ours({"ours": 4.0, "low": 3.9, "high": 4.123, "unit": "x"}) == "4 x (3.9–4.12)"
    assert told_ours({"ours": 4.0, "low": None, "high": None, "unit": "x"}) == "4 x"


def test_without_a_figure_nothing_holds() -> None:
    assert verdict_of(answer(), None) == "unanswered"
    assert verdict_of(Answer(how="none", why="needs Lassen"), None) == "cannot"


def test_an_input_never_holds() -> None:
    assert verdict_of(Answer(how="topology", input=True, why="site file"), found(4)) == "input"


def test_no_answer_without_a_reason() -> None:
    for wrong in (
        {"how": "none"},
        {"how": "measured", "command": COMMAND},
        {"how": "none", "command": COMMAND},
        {"how": "measured", "why": "later"},
        {"how": "none", "why": "needs Lassen", "first": [COMMAND]},
    ):
        with pytest.raises(ValueError, match=r"reason|needs at_least|excludes|needs a command"):
            Answer.model_validate(wrong)


def test_a_figure_of_another_command_is_no_answer() -> None:
    paper, statement = next((p, s) for p in load_papers() for s in p.statements if s.id == "themis-01")
    mine = found(4).model_copy(update={"command": statement.answer.commands})
    assert row(paper, statement, {"themis-01": mine})["verdict"] == "holds"
    changed = mine.model_copy(update={"command": "tiercel share bench --other"})
    assert row(paper, statement, {"themis-01": changed})["verdict"] == "unanswered"


def test_every_statement_has_an_answer_or_a_reason() -> None:
    for paper in load_papers():
        for statement in paper.statements:
            found = row(paper, statement, read_book())
            assert found["why"], statement.id
            if statement.answer.command:
                assert reading_of(statement.id) is not None, statement.id


def test_the_book_has_answers_of_statements_alone() -> None:
    """What a command no longer answers counts for nothing, and goes when next something is measured."""
    every = {s.id: (p, s) for p in load_papers() for s in p.statements}
    book = read_book()
    assert set(book) <= set(every)
    paper, statement = every["vast-20"]  # of a formula
    assert not statement.answer.command
    told = row(paper, statement, {"vast-20": found(99)})
    assert told["ours"] == pytest.approx(1 / 14.5) and told["date"] is None


def test_readings_by_hand() -> None:
    def contest(name: str, **shares: tuple[float, float]) -> dict[str, object]:
        jobs = [{"job": j, "measured": m, "entitled": e} for j, (m, e) in shares.items()]
        return {"contest": name, "jobs": jobs}

    bench = {"sharing": [
        contest("size-fair 4:1", big=(0.78, 0.8), small=(0.22, 0.2)),
        contest("user-fair, 2 users", a1=(0.2, 0.25), a2=(0.28, 0.25), b1=(0.52, 0.5)),
        contest("user-then-size-fair", a1=(0.16, 0.17), a2=(0.36, 0.33), b1=(0.48, 0.5)),
    ]}  # fmt: skip

    assert read("themis-01", bench) == pytest.approx(0.78 / 0.22)
    assert read("themis-03", bench) == pytest.approx(0.48 / 0.52)
    assert read("themis-04", bench) == pytest.approx(3)


def test_readings_of_simulations() -> None:
    def simulated(scheduler: str, alone: float, deviation: float) -> dict[str, object]:
        """Return three phases: one job alone, 10 more in all beside the second, which deviates, and alone."""
        first = {"name": "first", "standard_deviation": 9}
        both = [first, {"name": "second", "standard_deviation": deviation}]
        phases = [{"throughput": total, "jobs": jobs}
                  for total, jobs in ((alone, [first]), (alone + 10, both), (alone, [first]))]  # fmt: skip
        return {"scheduler": scheduler, "phases": phases}

    three = {"simulations": [
        simulated("token", 100, 3), simulated("gift-published", 90, 4), simulated("tbf-published", 20, 6),
    ]}  # fmt: skip
    assert read("themis-06", three) == pytest.approx(10)  # 110 against GIFT's 100; TBF's cap is an input
    assert read("themis-07", three) == pytest.approx(25)  # 3 of 4; TBF's 6 do not count

    def servers(interval: float, fair_at: float | None) -> dict[str, object]:
        series = [{"time_s": n * interval, "job": job} for job in (1, 2) for n in range(4)]
        return {"simulations": [{"series": series, "phases": [{"time_to_fairness_s": fair_at}]}]}

    fair = [servers(0.01, 0.02), servers(0.05, 0.15), servers(0.2, 0.2), servers(0.5, 0.5)]
    assert read("themis-12", fair) == pytest.approx(1.5)  # 2 of 5, 3 of 2, 1 of 2, 1 of 2 intervals
    with pytest.raises(TypeError):  # no figure, which `measure` says
        read("themis-12", [*fair[:3], servers(0.5, None)])


def read(name: str, printed: object) -> float:
    reading = reading_of(name)
    assert reading is not None
    found = reading(printed)
    assert isinstance(found, float)
    return found


def trained(io: float, hidden: float, compute: float = 9.5, total: float = 10) -> dict[str, object]:
    """Return what `dl run` prints: a first epoch, and later ones in which half as much happens."""
    times = {"io_time": io, "overlapped_io": hidden, "nonoverlapped_io": io - hidden,
             "compute_time": compute, "total_time": total}  # fmt: skip
    later = {name: value / 2 for name, value in times.items()}
    rows = [{"operation": "generate", "total_time": 99}, {"operation": "train", **times},
            {"operation": "train-later", **later}]  # fmt: skip
    return {"measurements": rows}


def test_readings_of_two_storages() -> None:
    slow, fast = trained(10, 8), trained(4, 3.5, 9.9)
    assert read("vast-14", [slow, fast]) == pytest.approx(95)
    assert read("vast-15", [slow, fast]) == pytest.approx(100 * 4.5 / 6)
    assert read("dlio-06", [fast, trained(4, 3.5, total=67)]) == pytest.approx(6.7)
    with pytest.raises(ValueError, match="not slower"):
        read("vast-15", [fast, slow])


def epochs(*shares: float) -> dict[str, object]:
    """Return what `dl run` prints of epochs with 4 s of I/O, of which these shares are not hidden."""
    rows = [{"kind": "train", "io": 4.0, "nonoverlapped_io": 4 * share} for share in shares]
    return {"run": {"rows": [{"kind": "eval"}, *rows]}}


def test_what_is_felt_of_a_difference_is_of_many_epochs() -> None:
    """Of the slower 0.1 is not hidden, of the faster 0.2: the half of the difference is felt."""
    reading = reading_of("vast-16")
    assert reading is not None
    found = reading([epochs(0.1, 0.09, 0.11), epochs(0.18, 0.2, 0.22)])
    assert isinstance(found, Figure)
    assert found.value == pytest.approx(0.5)
    assert found.low == pytest.approx(0.09 / 0.22) and found.high == pytest.approx(0.11 / 0.18)


def test_readings_of_settings_tried() -> None:
    def gain(settings: dict[str, object], ratio: float) -> dict[str, object]:
        return {"settings": settings, "ratio": ratio, "low": 0.9 * ratio, "high": 1.1 * ratio}

    def tried(buffer: float, readers: float, gzip: float) -> dict[str, object]:
        return {"tried": [
            gain({"reader.transfer_size": 65536}, 0.1),
            gain({"reader.transfer_size": 1048576}, buffer),
            gain({"reader.read_threads": 8}, readers),
            gain({"dataset.chunk_size": 4096}, 2 * gzip),
            gain({"dataset.chunk_size": 65536}, 3 * gzip),
            gain({"dataset.compression": "gzip", "dataset.compression_level": 9}, 0.2),
            gain({"dataset.compression": "gzip", "dataset.compression_level": 4}, gzip),
        ]}  # fmt: skip

    both = [tried(1.3, 1.0, 0), tried(1.2, 1.4, 0)]
    assert figure("dlio-02", both) == Figure(1.2, 0.9 * 1.2, 1.1 * 1.2)
    assert figure("dlio-07", tried(0, 0, 0.9)).value == 0.9
    assert figure("dlio-05", tried(0, 0, 2)).value == 6  # the best of two


def figure(name: str, printed: object) -> Figure:
    reading = reading_of(name)
    assert reading is not None
    found = reading(printed)
    assert isinstance(found, Figure)
    return found


def test_readings_of_ceilings() -> None:
    def rows(
        storage: str, workload: str, *ceilings: tuple[int, float], experiment: str = "scaling"
    ) -> list[object]:
        return [
            {"experiment": experiment, "workload": workload, "storage": storage, "nodes": n, "ceiling": c}
            for n, c in ceilings
        ]

    vast = rows("vast", "ml", (1, 1), (16, 16), (32, 25), (64, 25)) + rows("gpfs", "ml", (1, 50))
    vast += rows("vast", "ml", (1, 99), experiment="fsync")
    assert read("vast-04", {"ceilings": [{"before": None, "after": row} for row in vast]}) == 32
    summit = rows("nvme", "scientific", (128, 256)) + rows("gpfs", "scientific", (128, 512))
    assert read("cache-07", {"ceilings": summit}) == 256  # 2 of each node's own, 512 of all


def test_readings_of_placement() -> None:
    def share(operation: str, size: int, fast: float, n: int = 1) -> list[object]:
        return [{"operation": operation, "transfer_size": size, "system": s, "share": v, "n": n}
                for s, v in (("disk", 1 - fast), ("memory", fast))]  # fmt: skip

    rows = (
        share("read", 64, 1.0)
        + share("read", 4096, 0.8)
        + share("write", 64, 0.9)
        + share("write", 4096, 0.6)
    )
    answer = {"systems": ["disk", "memory"], "fastest": rows}
    assert read("prism-04", answer) == pytest.approx(15)  # 0.95 to 0.7 by size; reads 0.9, writes 0.75
    ranks = [
        {"feature": f, "impurity": i}
        for f, i in (("mpiio", 0.1), ("transfer_size", 0.3), ("accesses_per_open", 0.2))
    ]
    assert read("prism-03", {"importances": ranks}) == 2
    tree = {"decision-tree": {"random": {"accuracy": 0.9}}}
    groups = [{"best": best, "differ": differ} for best, differ in (("disk", True), ("memory", True))]
    applications = {"total": {"chosen": {"accuracy_where_differ": 1.0}}, "rows": groups}
    evaluated = {"sweep": {"models": tree}, "applications": applications}
    assert read("prism-01", evaluated) == 90 and read("prism-02", evaluated) == 100
    groups[0]["differ"] = False  # now memory is the faster one wherever they differ
    with pytest.raises(ValueError, match="any guess gets right"):
        read("prism-02", evaluated)


def test_readings_of_caching() -> None:
    def row(ratio: float, cached: float, plain: float, noise: float) -> dict[str, object]:
        of_plain = cached / plain
        return {
            "compute_ratio": ratio, "cached": cached, "of_plain": of_plain, "noise": noise,
            "of_plain_interval": [of_plain - 0.02, of_plain + 0.01],
        }  # fmt: skip

    def stream(order: str, kept: bool, later: float, first: float) -> dict[str, object]:
        return {
            "order": order, "base_page_cache": kept, "later_of_plain": later, "noise": 1.0,
            "first_epoch_of_plain": first, "first_epoch_of_plain_interval": [first - 0.1, first + 0.2],
        }  # fmt: skip

    def bench(*cached: float, without: float = 30.0, noise: float = 1.0) -> dict[str, object]:
        rows = [row(n / 2, rate, 100, noise) for n, rate in enumerate(cached)]
        streams = [
            stream("shuffled", True, 9, 1.0),
            stream("sequential", False, without, 0.7),
            stream("sequential", True, 1.2, 0.8),
        ]
        return {"checkpoint": {"rows": rows[::-1]}, "stream": streams}

    assert read("cache-02", bench(95, 200, 380)) == 0.25
    assert read("cache-02", bench(100, 100, 100)) == 1  # nothing is ever hidden: as without the connector
    assert read("cache-21", bench(95, 200)) == 1.2
    direct, first = figure("cache-20", bench(95, 200, 380)), figure("cache-06", bench(95, 200))
    assert (direct.value, direct.low, direct.high) == pytest.approx((0.95, 0.93, 0.96))
    assert (first.value, first.low, first.high) == pytest.approx((0.8, 0.7, 1.0))  # the middle of three
    for name in ("cache-06", "cache-20"):
        with pytest.raises(ValueError, match="too busy"):
            figure(name, bench(95, 200, noise=0.6))
    with pytest.raises(ValueError, match="served nothing"):
        read("cache-21", bench(95, 200, without=1.0))


def test_nothing_holds_that_would_without_what_it_is_about() -> None:
    """What these figures are where the connector does nothing, all is computation, or nothing is hidden."""
    nothing = {
        **dict.fromkeys(("cache-02", "cache-06", "cache-20"), 1),
        **dict.fromkeys(("dlio-02", "dlio-05", "dlio-06", "dlio-07"), 1),
        **dict.fromkeys(("themis-10", "vast-16"), 1),
        **dict.fromkeys(("themis-06", "themis-07", "themis-20", "vast-15", "prism-04"), 0),
        **dict.fromkeys(("themis-01", "themis-02", "themis-03"), 2),  # twice as many processes
        "cache-01": 0.05,
        "vast-14": 100,
        "themis-04": 100 / 3 - 25,  # a quarter each
        "themis-05": 100 * 4 / 13,  # by processes
        "themis-11": 100,
        "themis-13": 25,
    }
    statements = {s.id: s for p in load_papers() for s in p.statements}
    for name, ours in nothing.items():
        assert verdict_of(statements[name].answer, found(ours)) == "differs", name


def test_readings_of_programs_beside_others() -> None:
    def beside(fifo: float, fair: float, noise: float = 0.01) -> dict[str, object]:
        return {"policies": [{"policy": "fifo", "slowdown": fifo, "noise": noise},
                             {"policy": "size-fair", "slowdown": fair, "noise": noise}]}  # fmt: skip

    assert read("themis-20", beside(1.9, 0.1)) == pytest.approx(190)
    assert read("themis-13", beside(1.9, 0.1)) == pytest.approx(10)
    assert read("themis-10", [beside(1.7, 0.1), beside(1.0, 0.0)]) == pytest.approx(1.35)
    with pytest.raises(ValueError, match="too busy"):
        read("themis-20", beside(0.1, 0.1, noise=0.2))
    totals = {"job-fair": 0.1, "user-then-size-fair": 0.95, "group-user-size-fair": 0.92}
    contests = [{"contest": name, "total_to_alone": total} for name, total in totals.items()]
    assert read("themis-21", {"sharing": contests}) == 0.92


def test_each_command_once_and_in_order(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Two statements of one command, one of them after another and with a second one beside."""
    carried_out: list[str] = []

    def carry_out(command: str, root: Path, json_wanted: bool) -> object:
        carried_out.append(command)
        assert json_wanted == (command != "tiercel before")
        return len(carried_out)

    book: dict[str, Found] = {}
    monkeypatch.setattr(measuring, "_carry_out", carry_out)
    monkeypatch.setattr(measuring, "read_book", lambda: dict(book))
    monkeypatch.setattr(measuring, "write_book", book.update)
    monkeypatch.setattr(measuring, "reading_of", lambda _: lambda p: sum(p) if isinstance(p, list) else p)
    one, other = [s for p in load_papers() for s in p.statements if s.id in ("themis-01", "themis-02")]
    one = one.model_copy(update={"answer": answer(command="tiercel one")})
    other = other.model_copy(
        update={"answer": answer(first=["tiercel before"], command=["tiercel one", "tiercel two"])}
    )
    said: list[str] = []
    assert measuring.measure([one, other], tmp_path, said.append) == []
    assert carried_out == ["tiercel before", "tiercel one", "tiercel two"]  # first what one needs
    assert (book["themis-01"].ours, book["themis-02"].ours) == (2, 2 + 3)
    assert book["themis-02"].command == "tiercel before; tiercel one; tiercel two"
    assert said[0] == "themis-02: tiercel before" and "themis-01, themis-02: tiercel one" in said


@pytest.mark.parametrize(("low", "entered"), [(3.9, True), (3.7, False)])
def test_an_interval_that_decides_nothing_is_no_answer(
    low: float, entered: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(measuring, "reading_of", lambda _: lambda _: Figure(4, low, 4.1))
    _, book, failed = measured(monkeypatch, tmp_path, "print('{}')")
    assert (read_book(book) != {}) is entered and bool(failed) is not entered
    if entered:
        assert (read_book(book)["themis-01"].low, read_book(book)["themis-01"].high) == (3.9, 4.1)
    else:
        assert "between 3.7 and 4.1, of which a part holds" in failed[0]


def measured(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, program: str
) -> tuple[Statement, Path, list[str]]:
    """Measure themis-01 with a program in place of tiercel; return it, its book, and what failed."""
    book = tmp_path / "answers.json"
    fake = tmp_path / "fake"
    fake.write_text(f"#!{sys.executable}\n{program}\n")
    fake.chmod(0o755)
    monkeypatch.setattr(measuring, "sys", type("S", (), {"executable": str(fake)}))
    monkeypatch.setattr(measuring, "read_book", lambda: read_book(book))
    monkeypatch.setattr(measuring, "write_book", lambda answers: write_book(answers, book))
    statement = next(s for p in load_papers() for s in p.statements if s.id == "themis-01")
    statement = statement.model_copy(update={"answer": answer()})
    return statement, book, measuring.measure([statement], tmp_path, lambda _: None)


def test_measuring_enters_what_the_command_gave(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    write_book({name: found(1) for name in ("themis-02", "vast-20", "gone-01")}, tmp_path / "answers.json")
    jobs = [{"job": "big", "measured": 0.8}, {"job": "small", "measured": 0.2}]
    printed = json.dumps({"sharing": [{"contest": "size-fair 4:1", "jobs": jobs}]})
    # 1 is bench's code where a target of its own was missed: the figure is one all the same.
    statement, book, failed = measured(monkeypatch, tmp_path, f"print({printed!r}); raise SystemExit(1)")
    assert failed == []
    assert set(read_book(book)) == {"themis-01", "themis-02"}  # no command answers the others
    mine = read_book(book)["themis-01"]
    assert mine.ours == pytest.approx(4) and mine.command == COMMAND
    assert verdict_of(statement.answer, mine) == "holds"


@pytest.mark.parametrize(
    "program", ["raise SystemExit('tiercel: no server')", "print('{}')", "print('words')"]
)
def test_a_command_that_gives_no_figure(
    program: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _, book, failed = measured(monkeypatch, tmp_path, program)
    assert len(failed) == 1 and failed[0].startswith(COMMAND)
    assert read_book(book) == {}


def test_a_figure_of_a_busy_machine_is_none() -> None:
    def bench(noise: float, ratio: float = 0.97) -> dict[str, object]:
        row = {"compute_ratio": 1.0, "of_node_local": ratio, "noise": noise}
        return {"checkpoint": {"rows": [{"compute_ratio": 0.0, "noise": 9}, row]}}

    reading = reading_of("cache-01")
    assert reading is not None and reading(bench(1.1)) == 0.97
    with pytest.raises(ValueError, match="too busy"):
        reading(bench(1.3))
    with pytest.raises(ValueError, match="too busy"):
        reading(bench(1.0, ratio=1.7))


def test_a_damaged_book_is_named(tmp_path: Path) -> None:
    (tmp_path / "answers.json").write_text("{")
    with pytest.raises(UserError, match=r"answers.json: not valid JSON"):
        read_book(tmp_path / "answers.json")
    assert books.BOOK.name == "answers.json"


def test_the_command() -> None:
    code, out, _ = asked(["claims", "--json"])
    answer = json.loads(out)
    assert code == 0 and len(answer["statements"]) == 69
    counts = answer["counts"]
    assert set(counts) == set(VERDICTS) and sum(counts.values()) == 69
    code, out, _ = asked(["claims"])
    assert code == 0 and sum(line[:3].isdigit() for line in out.splitlines()) == 5  # a line for each paper
    code, out, _ = asked(["claims", "themis-01"])
    assert code == 0 and "at least 3.8 and at most 4.2" in out and COMMAND in out
    for word in ("vast", "VAST", "004"):
        code, out, _ = asked(["claims", word, "vast-01", "--json"])
        names = [r["id"] for r in json.loads(out)["statements"]]
        assert code == 0 and len(names) == 18 and all(name.startswith("vast-") for name in names)
    _, _, err = asked(["claims", "themis-99"])
    assert "did you mean themis-" in err and len(err) < 100  # and not the names of all
    for words in (["claims", "themis-99"], ["claims", "--measure", "vast-01"]):
        code, out, err = asked(words)
        assert code == 2 and out == "" and err.count("\n") == 1
