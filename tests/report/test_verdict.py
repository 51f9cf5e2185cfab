"""The first screen: what it advises from hand-made numbers, for any number of storage systems."""

import csv
import io
import json
import math

import pytest
from tests.report import synthetic
from tests.report.synthetic import MIB, Synthetic, site, study

from tiercel.report.classes import classes
from tiercel.report.data import Results
from tiercel.report.terminal import print_summary
from tiercel.report.verdict import verdict
from tiercel.report.verdict_figure import _labels
from tiercel.results.validity import FLAGS
from tiercel.study.model import Study

FAST, SLOW, MEMORY = [340, 341, 342, 343, 344], [100, 101, 102, 103, 104], [1000, 1001, 1002, 1003, 1004]


def samples(values, origin="measured", **words):
    """Return data of storages with these values (MiB/s) of each repetition, and twins of them."""
    data = Synthetic(processes=(1,), storages=tuple(values), origin=origin)
    words = {"operation": "write", "pattern": "sequential", "fsync": "phase", "transfer_size": MIB} | words
    title = words.pop("title", "Sequential write")
    workload = words.pop("workload", "scientific")
    for storage, numbers in values.items():
        for twin in "ab":
            for repetition, number in enumerate(numbers):
                data.add(
                    "scaling", workload, title, storage, 1, repetition, twin, [], **words,
                    bandwidth=float(number) * MIB,
                )  # fmt: skip
    return data


def joined(*parts):
    first = parts[0]
    for other in parts[1:]:
        first.observations += other.observations
        first.runs += other.runs
    return first


def first_screen(data, of_site=None, margin=0.1):
    results = Results(study().model_copy(update={"margin": margin}), *data.frames(), FLAGS).named()
    return verdict(results, of_site or site(), classes(results))


def cells(made, row=0):
    return {name: place for (name, _), place in zip(made.columns, made.rows[row][1], strict=True)}


def test_where_only_memory_was_measured_nothing_is_said_of_places_that_keep_files():
    data = samples({"shm": MEMORY})
    assert not first_screen(data).lasting
    assert first_screen(samples({"nvme": FAST, "shm": MEMORY})).lasting


def test_three_systems_the_best_that_keeps_files_the_slower_one_and_memory():
    made = first_screen(samples({"nvme": FAST, "nfs-project": SLOW, "shm": MEMORY}))
    assert made.rows[0][0].name == "Simulations writing checkpoints"
    found = cells(made)
    # 342 over 102, 1002 over 342.
    assert (found["Node-local NVMe"].word, found["Node-local NVMe"].factor) == ("use", "3.4×")
    slow = found["Project space (NFS)"]
    assert (slow.word, slow.factor) == ("avoid", "3.4× slower")
    memory = found["/dev/shm"]
    assert (memory.word, memory.factor, memory.interval) == ("fastest", "2.9×", "2.8–3.0")
    assert made.where == "Put your files on Node-local NVMe."
    assert "3.4 times as fast for simulations writing checkpoints (3.1–3.6)" in made.gain
    assert "Copies in /dev/shm (memory): 2.9 times" in made.gain
    assert "gone after a restart" in made.mind and made.undecided == ""


def test_load_of_others_that_lasted_all_the_time_is_minded_of_what_others_share():
    data = samples({"nvme": FAST, "nfs-project": SLOW})
    # Five rounds, one each 3,000 seconds; the last of 20 runs began 19 s after its round, and took 9 s.
    first, second = first_screen(data).mind.split(". ")[-2:]
    assert first.endswith("within 3 h 20 min") and "Project space (NFS)" in second and "nvme" not in second
    assert "busy" not in first_screen(samples({"nvme": FAST, "shm": SLOW})).mind
    assert "busy" not in first_screen(samples({"nfs-project": SLOW})).mind
    assert "busy" not in first_screen(samples({"nvme": FAST, "nfs-project": SLOW}, origin="simulated")).mind
    data.runs[-1]["started"] += 86400  # a further look, on the next day
    assert "busy" not in first_screen(data).mind


def test_memory_is_never_where_files_live():
    made = first_screen(samples({"nvme": SLOW, "shm": MEMORY}))
    assert made.where == "Keep your files on Node-local NVMe: it is the only storage here that keeps them."
    assert cells(made)["Node-local NVMe"].word == "use"
    made = first_screen(samples({"shm": MEMORY}))
    assert made.where == "Only /dev/shm has numbers here: nothing to choose between."
    assert "gone after a restart" in made.mind


def test_one_storage_says_what_it_gives():
    made = first_screen(samples({"nvme": FAST}))
    assert made.where == "Only Node-local NVMe has numbers here: nothing to choose between."
    assert made.gain == "It delivers 342 MiB/s for simulations writing checkpoints."
    assert cells(made)["Node-local NVMe"].word == "only choice"
    assert not made.intervals


def test_nothing_decided_names_no_place():
    made = first_screen(samples({"nvme": [100, 150, 90, 130, 95], "nfs-project": [99, 160, 91, 120, 96]}))
    assert made.where.startswith("No storage here is proven better")
    assert {place.word for place in cells(made).values()} == {"undecided"}
    assert made.undecided.startswith("1 of 1 row has an undecided cell; ")
    assert "95 % CI" in made.where  # the largest difference seen is said
    assert "times as fast" not in made.gain


def test_equal_systems_are_both_to_be_used():
    made = first_screen(samples({"nvme": FAST, "nfs-project": FAST}))
    assert {place.word for place in cells(made).values()} == {"use"}
    assert made.where == "Put your files anywhere for simulations writing checkpoints."


def test_files_go_to_as_few_places_as_will_do():
    data = joined(
        samples({"nvme": FAST, "nfs-project": SLOW}),
        samples({"nvme": SLOW, "nfs-project": FAST}, workload="ml", title="Random read", operation="read",
                pattern="random"),
        samples({"nvme": FAST, "nfs-project": FAST}, workload="same", title="Read", operation="read"),
    )  # fmt: skip
    made = first_screen(data)
    assert made.where == (
        "Put your files on Node-local NVMe for simulations writing checkpoints; on Project space (NFS) for "
        "random reads from large files; anywhere for analyses reading large files."
    )


def test_origins_are_words_and_sentences_are_of_what_was_measured():
    data = joined(
        samples({"nvme": FAST, "nfs-project": SLOW}),
        samples({"nvme": SLOW, "nfs-project": FAST}, origin="imported", workload="other"),
    )
    made = first_screen(data)
    names = [row[0].name for row in made.rows]
    assert names == ["Simulations writing checkpoints", "Simulations writing checkpoints (imported)"]
    assert "NFS" not in made.where
    alone = first_screen(samples({"nvme": FAST, "nfs-project": SLOW}, origin="imported"))
    assert alone.where == "By imported numbers: put your files on Node-local NVMe."


def test_small_files_are_one_row_by_the_time_of_a_whole_life():
    made = first_screen(Synthetic(storages=("nvme", "nfs-project")).whole())
    (row,) = [(c, places) for c, places in made.rows if c.name == "Many small files"]
    assert {p.word for p in row[1]} == {"use", "avoid"}
    assert row[1][0].value.endswith("files/s")


def test_a_layer_is_named_where_it_is_ahead():
    made = first_screen(joined(samples({"nvme": SLOW, "shm": MEMORY}), through({"nvme": FAST})))
    assert made.where == (
        "Keep your files on Node-local NVMe: it is the only storage here that keeps them. Use it as "
        "Node-local NVMe with cache for simulations writing checkpoints."
    )
    assert [name for name, _ in made.columns] == ["Node-local NVMe", "/dev/shm"]
    best = cells(made)["Node-local NVMe"]
    # 342 over 102: what the layer gains.
    assert (best.word, best.factor) == ("use", "3.4×")
    assert best.note == "with cache"
    # Memory without the layer is compared with the storage without the layer: 1002 over 102.
    assert (cells(made)["/dev/shm"].word, cells(made)["/dev/shm"].factor) == ("", "9.8×")


def through(values, layer="cache"):
    """Return samples through a layer."""
    data = samples(values)
    for row in (*data.observations, *data.runs):
        row["layer"] = layer
        row["run"], row["configuration"] = f"{row['run']}c", f"{row['configuration']}c"
    return data


NOISY, ALIKE = [100, 150, 90, 130, 95], [99, 160, 91, 120, 96]


@pytest.mark.parametrize("storage", ["nvme", "shm"])
def test_layers_of_one_storage_have_a_column_each(storage):
    """Such a study asks what layers are worth: a factor of the plain storage alone, against a layer that
    nobody sees, said nothing."""
    made = first_screen(joined(samples({storage: NOISY}), through({storage: ALIKE}, "cache size=2")))
    names = {"nvme": "Node-local NVMe", "shm": "/dev/shm"}
    assert made.heading == f"What layers in front of {names[storage]} are worth"
    assert sorted(made.labels) == sorted([names[storage], "with cache size=2"])
    assert {name for name, _ in made.columns} == {names[storage], f"{names[storage]} with cache size=2"}
    assert {place.note for place in cells(made).values()} <= {"", "round drift"}
    assert made.where.endswith(
        "Whether cache in front of it makes simulations writing checkpoints faster or slower cannot be told "
        "from chance."
    )
    decided = first_screen(joined(samples({storage: FAST}), through({storage: SLOW})))
    assert decided.where.endswith("Use it without a layer for simulations writing checkpoints.")


def test_a_factor_says_against_what_where_that_has_no_column():
    above = [105, 170, 95, 126, 100]
    made = first_screen(joined(samples({"nvme": ALIKE, "nfs-project": SLOW}), through({"nvme": above})))
    of_nvme = cells(made)["Node-local NVMe"]
    assert (of_nvme.word, of_nvme.note) == (
        "undecided", "of Node-local NVMe with cache, round drift"
    )  # fmt: skip


def failing(values, *storages, times=3):
    """Return samples with storages whose runs all failed."""
    data = samples(values)
    for storage in storages:
        for repetition in range(times):
            data.fail(storage, "ended with code 1: no space")
            data.runs[-1]["run"] += f"-{repetition}"
    return data


def test_a_storage_that_failed_does_not_vanish_and_memory_is_not_advised_in_its_place(build_page, tmp_path):
    data = failing({"shm": MEMORY}, "nvme")
    made = first_screen(data)
    assert made.silent == "Node-local NVMe gave no number: all 3 runs failed."
    assert made.where.startswith("Where to keep files is not known: of the places that keep them (Node-local")
    found = cells(made)
    assert found["Node-local NVMe"].note == "no number: all 3 runs failed"
    assert (found["/dev/shm"].word, found["/dev/shm"].value) == ("", "1002 MiB/s")
    built = build_page(data)
    assert "only place that keeps files" not in built.page.text
    assert "nothing to choose between" not in built.page.text
    (row,) = built.page.rows("Workload", "Keep files on")
    assert row["Keep files on"] == "unknown: no result on Node-local NVMe"
    written = json.loads((built.path.parent / "recommendations.json").read_text())["workloads"][0]
    assert (written["storage"], written["keeps_files"]) == (None, False)
    out = io.StringIO()
    print_summary(data.write(tmp_path), site(), study(), out)
    (line,) = [x for x in out.getvalue().splitlines() if x.startswith("Simulations writing")]
    assert "unknown" in line and "/dev/shm" not in line


def test_one_place_that_keeps_files_beside_one_that_failed_or_beside_memory_that_failed():
    made = first_screen(failing({"nvme": FAST, "shm": MEMORY}, "nfs-project"))
    assert made.where == (
        "Keep your files on Node-local NVMe: of the storages that keep them, it alone gave numbers."
    )
    made = first_screen(failing({"nvme": FAST}, "nfs-project"))
    assert made.where == "Only Node-local NVMe gave numbers, so nothing could be compared."
    assert cells(made)["Node-local NVMe"].word == ""
    made = first_screen(failing({"nvme": FAST}, "shm"))
    assert made.where == "Keep your files on Node-local NVMe: it is the only storage here that keeps them."
    assert made.silent == "/dev/shm gave no number: all 3 runs failed."


def test_what_to_avoid_is_named_where_nothing_is_the_best(monkeypatch):
    monkeypatch.setitem(synthetic._STORAGES, "slow", ("Slow", "nfs4", "network", 1, 1, 1, 1))
    near = {"nvme": [100, 150, 90, 130, 95], "nfs-project": [99, 160, 91, 120, 96]}
    made = first_screen(samples(near | {"slow": [10.0, 10.1, 10.2, 10.3, 10.4]}))
    # The medians: 99 and 95 (or 96) are the reference's; Slow has 10.2.
    assert made.where.startswith(
        "No storage here is proven to be the best for any of these workloads. Avoid Slow"
    )
    assert made.where.endswith("times slower). Among the others, put files where there is room.")
    assert "what the table says to avoid is" in made.gain
    assert "no larger than" not in made.gain


def test_equal_factors_are_said_once():
    data = joined(
        *(samples({"nvme": FAST, "nfs-project": SLOW}, workload=name, title=name) for name in ("a", "b", "c"))
    )
    gain = first_screen(data).gain
    assert gain.count("3.4 times") == 1 and "up to" not in gain


def test_what_earlier_runs_slowed_down_is_no_gain_of_another_storage():
    """Three workloads, 3.4 times each; of the third the slower side carries the flag, so it is left out."""
    parts = [samples({"nvme": FAST, "nfs-project": SLOW}, workload=name, title=name) for name in ("a", "b")]
    held = samples({"nvme": [50 * v for v in FAST], "nfs-project": SLOW}, workload="c", title="c")
    for row in held.observations:
        row["flags"] = ["inodes-remembered"] if row["storage"] == "nfs-project" else []
    made = first_screen(joined(*parts, held))
    assert "3.4 times" in made.gain and "up to" not in made.gain
    assert made.held_back and [any(p.held_back for p in places) for _, places in made.rows].count(True) == 1
    assert first_screen(held).gain  # where there is nothing else, it is told, with the mark


def test_invalid_numbers_are_not_called_equal():
    data = samples({"nvme": FAST, "shm": MEMORY})
    for row in data.observations:
        row["flags"] = ["short-data"]
    assert first_screen(data).gain == "Nothing could be compared: no number passed the validity checks."


def test_a_single_repetition_has_no_interval(build_page):
    data = samples({"nvme": [100], "shm": [620]})
    made = first_screen(data)
    memory = cells(made)["/dev/shm"]
    assert (memory.factor, memory.interval, memory.note) == ("6.2×", "", "a single repetition")
    assert not made.intervals
    assert "single repetition" in made.gain and "itself" not in made.gain
    text = build_page(data).html
    assert "95 % certainty" not in text[: text.index("<nav")]
    assert "a single repetition" in text


def test_a_factor_says_its_scales_and_the_one_at_the_largest():
    data = samples({"nvme": FAST, "nfs-project": SLOW})
    large = samples({"nvme": [n * 4 for n in FAST], "nfs-project": SLOW})
    for row in (*large.observations, *large.runs):
        row |= {"processes": 2, "processes_per_node": 2}
        row["run"], row["configuration"] = f"{row['run']}x2", f"{row['configuration']}x2"
    made = first_screen(joined(data, large))
    assert made.over == "over 1 and 2 processes"
    place = cells(made)["Node-local NVMe"]
    # 342 over 102 and 1368 over 102: the geometric mean of 3.353 and 13.41 is 6.706.
    assert (place.factor, place.largest) == ("6.7×", "13.4× at 2 processes")
    assert cells(made)["Project space (NFS)"].largest == "13.4× slower at 2 processes"
    alone = first_screen(samples({"nvme": FAST, "nfs-project": SLOW}))
    assert alone.over == "" and cells(alone)["Node-local NVMe"].largest == ""


def test_the_same_is_said_in_the_same_words(build_page):
    data = samples({"nvme": FAST, "nfs-project": FAST})
    assert {p.note for p in cells(first_screen(data)).values()} == {
        "equal to Project space (NFS) within 10\u00a0%", "equal to Node-local NVMe within 10\u00a0%"
    }  # fmt: skip
    text = build_page(data).page.text
    assert "cannot be told apart" not in text.partition("Comparisons")[0]
    notes = {p.note for p in cells(first_screen(data, margin=0.04)).values()}
    assert "equal to Node-local NVMe within 4\u00a0%" in notes
    assert not any("the same" in p.note for p in cells(first_screen(data, margin=0.001)).values())


def test_of_many_storages_the_best_and_those_to_avoid_are_shown(monkeypatch):
    names = [f"st{i}" for i in range(10)]
    for name in names:
        monkeypatch.setitem(synthetic._STORAGES, name, (name * 100, "nfs4", "network", 1, 1, 1, 1))
    made = first_screen(samples({n: [100 * 2**i + k for k in range(5)] for i, n in enumerate(names)}))
    assert made.stacks == ["st9", "st8", "st7", "st2", "st1", "st0"]
    assert made.more == "4 more storage systems of this study are in"
    assert max(map(len, made.labels)) <= 40 and len(set(made.labels)) == 6
    assert made.columns[0][0] == "st9" * 100


def test_memory_is_no_place_to_keep_what_only_memory_measured():
    data = samples({"nvme": FAST, "shm": FAST})
    for repetition in range(5):
        data.add("scaling", "ml", "Random read", "shm", 1, repetition, "a", [],
                 operation="read", pattern="random", bandwidth=1e9)  # fmt: skip
    (places,) = [places for of, places in first_screen(data).rows if of.workload == "ml"]
    assert "only" not in {place.advice for place in places}


def test_no_number_no_verdict(build_page):
    assert first_screen(Synthetic()) is None
    data = Synthetic()
    data.fail("nvme", "engine not found")
    page = build_page(data).page
    assert "verdict" not in page.ids


def test_first_screen_has_plain_words_and_comes_first(whole):
    text = whole.html
    start, end = text.index('id="verdict"'), text.index("<nav")
    screen = text[start:end]
    for word in ("claimed", "noise", "p =", "median"):
        assert word not in screen, word
    assert text.index("<main>") < start
    assert text.index('id="recommendations"') < text.index('id="answers"')
    rows = whole.page.rows("Workload")
    assert len(rows) == 5


def test_recommendations_are_a_file_too(whole):
    found = json.loads((whole.path.parent / "recommendations.json").read_text())
    by_class = {w["class"]: w for w in found["workloads"]}
    made = by_class["Analyses reading large files"]
    assert (made["storage"], made["faster_but_volatile"]) == ("nvme", "shm")
    assert made["storages"]["nfs-project"]["advice"] == "avoid"
    staged = made["staging"]
    assert (staged["from"], staged["to"], staged["seconds_out"]) == ("nvme", "shm", 0.0)
    # 1 GiB in one file, since nothing was traced: read on NVMe and written to memory, by one process; the
    # file opened and made. What is saved is that of 8 processes.
    with (whole.path.parent / "tables" / "numbers.csv").open(newline="") as file:
        numbers = list(csv.DictReader(file))
    medians, alone = (
        {
            (n["workload"], n["operation"], n["storage"]): float(n["median"])
            for n in numbers if n["processes"] == processes
        }
        for processes in ("8", "1")
    )  # fmt: skip
    assert staged["saved_at"] == {"nodes": 1, "processes": 8} and staged["saved_per"] == "use"
    assert made["storages"]["shm"]["measured"]["over"] == "all scales"
    best = {}
    for n in numbers:
        key = (n["workload"], n["operation"], n["storage"])
        best[key] = max(best.get(key, 0.0), float(n["median"]))
    # Files that were just written say of opening cold ones only what it takes at the least.
    read = 2**30 / alone["analytics", "read", "nvme"] + 1 / best["shared-directory", "file-read", "nvme"]
    write = 2**30 / alone["scientific", "write", "shm"] + 1 / alone["shared-directory", "file-create", "shm"]
    assert math.isclose(staged["seconds_in"], read + write, rel_tol=1e-9)
    # At the least one process is as fast as the best scale, and the longer step hides the other.
    read = 2**30 / best["analytics", "read", "nvme"] + 1 / best["shared-directory", "file-read", "nvme"]
    write = 2**30 / best["scientific", "write", "shm"] + 1 / best["shared-directory", "file-create", "shm"]
    assert math.isclose(staged["seconds_in_least"], max(read, write), rel_tol=1e-9)
    saved = 2**30 / medians["analytics", "read", "nvme"] - 2**30 / medians["analytics", "read", "shm"]
    assert math.isclose(staged["saved_seconds"], saved, rel_tol=1e-9)
    assert staged["pays_from_use"] == math.floor(staged["seconds_in"] / saved) + 1
    rows = whole.page.rows("Workload", "Keep files on")
    assert {r["Keep files on"] for r in rows} == {"Node-local NVMe"}


def test_a_study_of_samples_says_how_often_each_was_fastest(build_page):
    definition = study().model_dump()
    definition["experiments"] = {"scaling": {"sweep": {"size": 60}}}
    sampled = Study.model_validate(definition)
    points = sorted(sampled.experiments["scaling"].sweep.workloads)
    parts = [samples({"nvme": FAST, "nfs-project": SLOW}, workload=name) for name in points[:-1]]
    parts.append(samples({"nvme": SLOW, "nfs-project": SLOW}, workload=points[-1]))
    page = build_page(joined(*parts), of_study=sampled).page
    n = len(points)
    assert (
        f"Of {n} kinds of I/O, fastest in all repetitions were Node-local NVMe in {n - 1} and Project space "
        "(NFS) in 0; in 1 no storage was."
    ) in page.text
    assert "tiercel place train --study quick" in page.text


@pytest.mark.parametrize("count", [1, 2, 3])
def test_the_page_is_whole_with_any_number_of_storages(build_page, count):
    storages = ("nfs-project", "nvme", "shm")[:count]
    page = build_page(Synthetic(storages=storages, processes=(1, 4), repetitions=5).whole()).page
    assert len(page.rows("Workload")[0]) == 1 + count
    assert ("verdict-factors" in page.ids) == (count > 1)


def test_long_names_of_the_figure_still_differ():
    """They began alike for more letters than one line holds, and were cut there."""
    first = "Training: cosmoflow-vast, from HDF5 files with chunks and compressed by gzip"
    names = [f"{first} at level {level} and read by {level} threads at once on each node" for level in (1, 9)]
    labels = _labels([*names, "Many small files"])
    assert len({tuple(lines) for lines in labels}) == 3
    assert all(len(lines) <= 2 and max(map(len, lines)) <= 66 for lines in labels)
    assert labels[2] == ["Many small files"]
