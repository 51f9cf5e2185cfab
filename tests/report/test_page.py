"""The page: complete, self-contained, inert, and equal to hand-made numbers."""

import base64
import csv
import gzip
import math
import re
import warnings
from xml.etree import ElementTree

import pandas as pd
import pytest
from tests.report import synthetic
from tests.report.conftest import Page
from tests.report.synthetic import MIB, Synthetic, site, study

from tiercel.report import style, svg
from tiercel.report.build import build, write_csv
from tiercel.report.data import Results
from tiercel.report.style import PAPER
from tiercel.results.validity import FLAGS, Flag
from tiercel.study.model import Study

EVIL = '"><script>alert(1)</script><img src=x onerror=alert(2)>'


def test_every_failed_run_is_there_with_its_reason(whole):
    (row,) = whole.page.rows("Run", "Reason")
    assert row["Run"] == "scaling.scientific.nfs-project.iokernel.measured.1x8.r99"
    assert row["Reason"] == "ended with code 1: write failed: No space left on device"


def test_every_flag_in_use_is_there_with_its_advice_and_its_numbers(whole):
    for code in ("memory-storage", "cache-unknown"):
        assert f"flag-{code}" in whole.page.ids
        assert FLAGS[code].title in whole.page.text
        said = re.sub(r"[`\s]", "", FLAGS[code].advice)
        assert said in re.sub(r"\s", "", whole.page.text)


def test_nothing_is_loaded_from_anywhere(whole):
    loading = {"src", "srcset", "data", "poster", "action", "formaction", "background"}
    for tag, name, value in whole.page.attributes:
        assert name not in loading, (tag, name, value)
        assert not name.startswith("on"), (tag, name, value)
        if name in ("href", "xlink:href"):
            assert re.match(r"#|figures/|tables/", value), (tag, value)
        assert "http" not in value, (tag, name, value)
    assert not {"link", "img", "iframe", "object", "embed", "base"} & set(whole.page.tags)
    for code in whole.page.scripts:
        assert not re.search(r"https?:|@import|fetch\(|XMLHttpRequest|url\((?!#)", code)


def test_ids_are_unique_and_every_link_leads_somewhere(whole):
    ids = whole.page.ids
    assert len(ids) == len(set(ids))
    for _tag, name, value in whole.page.attributes:
        if name == "href" and value.startswith("#"):
            assert value[1:] in ids, value
        if name == "href" and not value.startswith("#"):
            assert (whole.path.parent / value).is_file(), value
        for inside in re.findall(r"url\(#([^)]+)\)", value):
            assert inside in ids


def test_figures_are_files_that_parse_and_name_themselves(whole):
    files = sorted((whole.path.parent / "figures").glob("*.svg"))
    # The verdict, three scaling panels, fsync with its latency, metadata, and three pairs of storages.
    assert len(files) == 1 + 3 + 2 + 1 + 3
    for path in files:
        assert ElementTree.parse(path).getroot().tag.endswith("svg")
    labels = [v for tag, name, v in whole.page.attributes if (tag, name) == ("svg", "aria-label")]
    assert len(labels) == len(files)
    assert all(len(label) > 40 for label in labels)


def test_numbers_in_the_page_are_hand_computed_ones(build_page):
    data = Synthetic(repetitions=3, storages=("nvme",), processes=(1,))
    for repetition, value in enumerate((100, 300, 200)):
        data.add(
            "scaling", "scientific", "Write", "nvme", 1, repetition, "a", [], operation="write",
            bandwidth=value * MIB, operation_rate=float(value), latency_p50=0.001, latency_p99=0.02,
        )  # fmt: skip
    built = build_page(data)
    (row,) = built.page.rows("No.", "Median")
    # The median of 100, 200, 300; three values cover it with 75 %; sd 100 over mean 200.
    assert row["Median"] == "200 MiB/s"
    assert row["Interval"] == "100–300 MiB/s (75 %)"
    assert (row["n"], row["CV"], row["p50"], row["p99"]) == ("3", "50 %", "1 ms", "20 ms")
    with (built.path.parent / "tables" / "numbers.csv").open(encoding="utf-8") as file:
        (stored,) = csv.DictReader(file)
    assert float(stored["median"]) == 200 * MIB
    assert len(stored["runs"].split()) == 3


def test_a_comparison_in_the_page_is_the_hand_computed_one(build_page):
    data = Synthetic(processes=(1,))
    for storage, base in (("nvme", 400), ("nfs-project", 100)):
        for repetition in range(5):
            for twin in "ab":
                data.add("scaling", "scientific", "Write", storage, 1, repetition, twin, [],
                         operation="write", bandwidth=float(base + repetition) * MIB)  # fmt: skip
    built = build_page(data)
    (row,) = built.page.rows("A", "B", "Verdict")
    # 102 over 402; the study itself may spend 0.95 of the 5 %.
    assert (row["A"], row["B"]) == ("Node-local NVMe", "Project space (NFS)")
    assert (row["Ratio A to B"], row["Verdict"]) == ("3.9×", "A is faster")
    assert float(row["p"]) < 1e-6
    assert "Write: Node-local NVMe has 3.9×" in built.page.text


def test_names_and_reasons_are_inert(build_page):
    data = Synthetic(repetitions=2, processes=(1, 2), storages=("nvme", "shm"))
    data.whole()
    for row in (*data.observations, *data.runs):
        row["storage_label"] = f"{row['storage']} {EVIL}"
        row["title"] = f"{row['workload']} --> $x$ {EVIL}"
        row["mount_options"] = row["host"] = EVIL
    data.fail("nvme", EVIL)
    flags = {**FLAGS, "memory-storage": Flag("memory-storage", EVIL, EVIL, "info")}
    evil_study = Study.model_validate({**study().model_dump(), "title": EVIL, "description": EVIL})
    page = build_page(data, flags, evil_study).page
    assert page.tags.count("script") == 1
    assert "img" not in page.tags
    assert "alert(1)" in page.text
    assert not any("alert" in code for code in page.scripts)


def test_one_observation_is_enough(build_page):
    data = Synthetic(storages=("nvme",))
    data.add("scaling", "scientific", "Write", "nvme", 4, 0, "a", [], operation="write", bandwidth=5.0 * MIB)
    page = build_page(data).page
    assert page.rows("No.", "Median")[0]["Median"] == "5 MiB/s"
    for absent in ("comparisons", "agreement", "checks", "failed", "experiment-fsync"):
        assert absent not in page.ids


def test_no_run_at_all_and_no_good_run_say_so(build_page):
    assert "No run of this study has a result yet" in build_page(Synthetic()).page.text
    data = Synthetic()
    data.fail("nvme", "engine not found")
    page = build_page(data).page
    assert "No run has a result: 1 run failed." in page.text
    assert "engine not found" in page.text
    assert not {"numbers", "glance", "comparisons"} & set(page.ids)


def test_invalid_numbers_are_shown_but_enter_no_comparison(build_page):
    data = Synthetic(processes=(1, 2)).whole()
    for row in data.observations:
        row["flags"] = ["cache-not-cold"]
    page = build_page(data).page
    assert len(page.rows("No.", "Median")) > 10
    assert "comparisons" not in page.ids
    assert "claimed" not in [t.strip() for t in page.texts]
    assert "not compared" in page.text


def test_origins_are_marked_and_not_mixed(build_page):
    data = Synthetic(repetitions=3, processes=(1, 2), storages=("nvme", "shm")).whole()
    for origin in ("imported", "simulated"):
        other = Synthetic(repetitions=3, processes=(1, 2), storages=("nvme", "shm"), origin=origin).whole()
        data.observations += other.observations
    built = build_page(data)
    rows = built.page.rows("No.", "Origin")
    origins = [row["Origin"] for row in rows]
    assert origins.count("measured") == origins.count("imported") == origins.count("simulated")
    assert {row["n"] for row in rows} == {"3"}
    assert "Squares: imported." in built.page.text
    assert "Diamonds: simulated." in built.page.text
    assert "(imported)" in (built.path.parent / "figures" / "scaling.ml.read.iokernel.svg").read_text()


def test_unknown_flags_and_engines_side_by_side(build_page):
    data = Synthetic(repetitions=3, processes=(1, 2), storages=("nvme",)).whole()
    data.observations[0]["flags"] = ["from-the-future"]
    ior = Synthetic(repetitions=3, processes=(1, 2), storages=("nvme",), engine="ior", seed=2).whole()
    data.observations += ior.observations
    data.runs += ior.runs
    page = build_page(data).page
    assert "from-the-future" in page.text
    engines = {row["Engines"] for row in page.rows("Engines", "Within noise")}
    assert engines == {"iokernel over ior"}
    assert "iokernel agrees with ior within 10" in page.text and "have no power" in page.text


def test_an_edited_study_leaves_its_old_runs_out():
    data = Synthetic(repetitions=2, processes=(1,), storages=("nvme",))
    data.data("scaling", "scientific", "Write", "write", "sequential", 3)
    for row in (*data.observations, *data.runs):
        row["configuration"] = "old"
        row["run"] += "-old"
        row["started"] = 1.0
    later = Synthetic(repetitions=2, processes=(1,), storages=("nvme",))
    later.data("scaling", "scientific", "Write", "write", "sequential", 3)
    data.observations += later.observations
    data.runs += later.runs
    results = Results(study(), *data.frames(), FLAGS)
    assert results.superseded == 4  # two repetitions, each with a twin
    assert len(results.numbers) == 1


def test_the_points_of_a_sample_are_counted_not_listed(build_page):
    definition = study().model_dump()
    definition["experiments"]["scaling"]["sweep"] = {"size": 60}
    sampled = Study.model_validate(definition)
    points = sampled.experiments["scaling"].sweep.workloads
    data = Synthetic(repetitions=2, processes=(1,), storages=("nvme", "shm"))
    data.data("scaling", "scientific", "Write", "write", "sequential", 3)
    for name in points:
        data.data("scaling", name, name, "write", "sequential", 3)
    made = build_page(data, of_study=sampled)
    with (made.path.parent / "tables" / "numbers.csv").open(newline="") as file:
        rows = {row["number"]: row for row in csv.DictReader(file)}
    assert len(rows) == 2 + 2 * len(points)
    shown = made.page.rows("No.", "Workload", "Storage")
    # The two of the named workload, under their numbers in the file.
    assert [row["Workload"] for row in shown] == ["Write", "Write"]
    assert all(rows[row["No."]]["workload"] == "scientific" for row in shown)
    assert f"{2 * len(points)} results of designed samples" in made.page.text
    # The verdict, the workload, and the pair of storages.
    assert len(list((made.path.parent / "figures").glob("*.svg"))) == 3
    ids = made.page.ids
    assert [v for t, n, v in made.page.attributes if n == "href" and v[0] == "#" and v[1:] not in ids] == []
    # A check counts them too, and links to the one that the page has.
    assert f"{1 + len(points)} of {len(rows)} results Flag memory-storage" in re.sub(
        r"\s+", " ", made.page.text
    )
    assert f"{len(points)} of samples" in made.page.text


def test_a_study_of_samples_alone_has_results(build_page):
    definition = study().model_dump()
    definition["experiments"] = {"scaling": {"sweep": {"size": 60}}}
    sampled = Study.model_validate(definition)
    data = Synthetic(repetitions=2, processes=(1,), storages=("nvme",))
    for name in sampled.experiments["scaling"].sweep.workloads:
        data.data("scaling", name, name, "write", "sequential", 3)
    text = build_page(data, of_study=sampled).page.text
    assert "No run of this study has a result yet" not in text
    assert "results of designed samples (Scaling)" in text
    assert "A simulation has no noise" not in text  # all of no numbers by themselves are simulated


def test_another_study_is_not_in_it(build_page):
    data = Synthetic(repetitions=2, processes=(1,), storages=("nvme",)).whole()
    for row in (*data.observations, *data.runs):
        row["study"] = "another"
    assert "No run of this study has a result yet" in build_page(data).page.text


def test_the_same_data_give_the_same_page(build_page):
    def make():
        return build_page(Synthetic(repetitions=2, processes=(1, 2), storages=("nvme", "shm")).whole()).html

    assert make() == make()


def test_tables_are_accessible(whole):
    assert whole.page.tags.count("caption") == whole.page.tags.count("table")
    scopes = [v for tag, name, v in whole.page.attributes if (tag, name) == ("th", "scope")]
    assert len(scopes) == whole.page.tags.count("th")
    assert ("html", "lang", "en") in whole.page.attributes


def test_the_name_of_a_run_is_packed_once(build_page):
    """A hash cannot be packed: of ten thousand runs a second one would fill a tenth of a megabyte."""
    data = Synthetic(repetitions=2, processes=(1,), storages=("nvme",))
    data.data("scaling", "scientific", "Write", "write", "sequential", 3)
    held = re.search(r'<template id="packed">(.*?)</template>', build_page(data).html, re.DOTALL)[1]
    text = gzip.decompress(base64.b64decode(held)).decode("utf-8")
    # The second placement's runs tell the noise, and are behind no number.
    assert [text.count(f'"{row["run"]}"') for row in data.runs if row["twin"] == "a"] == [1, 1]


def test_csv_cells_do_not_start_formulas(build_page):
    data = Synthetic(storages=("nvme",))
    data.fail("nvme", "=HYPERLINK(1)")
    path = build_page(data).path.parent / "tables" / "failed-runs.csv"
    assert pd.read_csv(path)["reason"][0] == "'=HYPERLINK(1)"


def test_csv_cells_are_empty_where_nothing_is_known_and_no_blank_hides_a_formula(tmp_path):
    path = tmp_path / "some.csv"
    write_csv(path, [{"a": math.nan, "b": "\t=1+1", "c": "\r-1", "d": "", "e": -2.5, "f": None}])
    with path.open(newline="", encoding="utf-8") as file:
        assert list(csv.DictReader(file)) == [
            {"a": "", "b": "'\t=1+1", "c": "'\r-1", "d": "", "e": "-2.5", "f": ""}
        ]


def test_a_table_that_cannot_be_written_leaves_the_earlier_one(tmp_path):
    path = tmp_path / "some.csv"
    write_csv(path, [{"a": 1}])

    class Full:
        def __str__(self):
            raise OSError("No space left on device")

    with pytest.raises(OSError, match="No space"):
        write_csv(path, [{"a": 2}, {"a": Full()}])
    assert path.read_text(encoding="utf-8").split() == ["a", "1"]
    assert [each.name for each in tmp_path.iterdir()] == ["some.csv"]


def test_a_figure_of_many_storages_has_room_for_its_axes(build_page, monkeypatch):
    """The legend's lines make the figure taller: they do not take the room of the axes, nor cover them."""
    many = {f"s{i}": (f"Storage number {i}", "lustre", "network", 100 + i, 200, 50, 300) for i in range(24)}
    monkeypatch.setattr(synthetic, "_STORAGES", many)
    monkeypatch.setattr(synthetic, "_LIMITS", dict.fromkeys(many, 2.0))
    data = Synthetic(repetitions=1, processes=(1, 2), storages=tuple(many))
    data.data("scaling", "scientific", "Write", "write", "sequential", 3, fsync="write")
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # matplotlib's, where axes have no room
        built = build_page(data, of_site=site())
    root = ElementTree.parse(
        built.path.parent / "figures" / "scaling.scientific.write.iokernel.svg"
    ).getroot()
    # 24 lines, twenty more than there is room for: 0.19 inches of 72 points each.
    assert float(root.get("height").removesuffix("pt")) == pytest.approx((3.3 + 20 * 0.19) * 72, abs=0.5)


def test_storages_are_told_apart_by_shape_where_latencies_are_drawn(whole):
    """Each storage has its own shape there, filled for the median and hollow for the slowest."""
    text = (whole.path.parent / "figures" / "fsync.synced-write.write.iokernel.latency.svg").read_text()
    paths = dict(re.findall(r'<path id="(m\w+)" d="([^"]*)"', text))
    marks = re.findall(r'<use [^>]*#(m\w+)"[^>]*style="fill: (#\w+); stroke: (#\w+)', text)
    hollow = {stroke: paths[mark] for mark, fill, stroke in marks if fill == PAPER.lower()}
    filled = {(stroke, paths[mark]) for mark, fill, stroke in marks if fill == stroke}
    assert len(hollow) == len(set(hollow.values())) == 3
    assert set(hollow.items()) <= filled
    assert "Grey: noise" in whole.page.text and "p99 (dashed)" in whole.page.text


@pytest.mark.parametrize("folder", ["figures", "tables"])
def test_files_of_an_earlier_report_go(folder, tmp_path):

    data = Synthetic(repetitions=1, processes=(1,), storages=("nvme", "shm")).whole()
    build(data.write(tmp_path), site(), study(), FLAGS)
    before = set((tmp_path / "report" / folder).iterdir())
    alone = Synthetic(repetitions=1, processes=(1,), storages=("nvme",))
    alone.data("scaling", "scientific", "Write", "write", "sequential", 3)
    build(alone.write(tmp_path), site(), study(), FLAGS)
    assert set((tmp_path / "report" / folder).iterdir()) < before


def test_the_parser_of_these_tests_sees_scripts():
    assert Page("<p>a</p><script>x</script>").tags == ["p", "script"]


def test_storages_are_told_apart_by_shape_as_well_as_colour():
    stacks = [f"s{i}" for i in range(56)]
    shapes, colours = style.shapes(stacks), style.colours(stacks)
    assert len({(shapes[s], colours[s]) for s in stacks}) == 56
    assert len({shapes[s] for s in stacks[:7]}) == 7
    # Squares, diamonds and crosses say other things.
    assert not {"s", "D", "X"} & set(shapes.values())


def test_a_figure_keeps_a_hundredth_of_a_point_and_its_labels(whole):
    drawn = whole.html.partition('id="scaling.scientific.write.iokernel"')[2].partition("</svg>")[0]
    places = re.findall(r'\s(?:d|x|y|transform)="([^"]*)"', drawn)
    assert len(places) > 20
    assert not [p for p in places if re.search(r"\.\d{3}", p)]
    # What it is drawn on would hide the shadow of what goes on beyond a phone's edge.
    backs = re.findall(r'-patch_[12]">\s*<path d="[^"]*" style="fill: ([^"]+)"', drawn)
    assert backs == ["none", "none"]
    assert svg.inline('<svg viewBox="0 0 1 1"><text x="1.23456">1.23456</text></svg>', "f", "l").endswith(
        '<text x="1.23">1.23456</text></svg>'
    )


def test_what_others_measured_is_no_run_of_ours(build_page):
    """The page began with "0 runs with numbers", and said how to measure again what was not measured here."""
    data = Synthetic(repetitions=2, processes=(1,), storages=("nvme", "shm"), origin="imported")
    data.data("scaling", "scientific", "Write", "write", "sequential", 3)
    data.runs = []
    text = build_page(data).page.text
    assert "imported, not measured here" in text
    assert "0 runs" not in text and "Measure again" not in text
