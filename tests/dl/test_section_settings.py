"""Time over loader settings: what is drawn is what was tried, each against the workload file's own."""

import math
from types import SimpleNamespace

import pandas as pd

from tiercel.dl.section import deep_learning
from tiercel.dl.section_settings import label, words
from tiercel.report.sections.base import Context

BASE = "reader.preprocess_time=0.002, train.epochs=1"


def trained(workload, settings, seconds, storage="disk"):
    """Return the rows of one workload's repetitions, as the engine's rows become observations."""
    return [
        {
            "operation": "train", "twin": "a", "traced": False, "storage": storage, "layer": "none",
            "engine": "dlkernel", "origin": "measured",
            "experiment": "hdf5", "workload": workload, "nodes": 1,
            "processes": 1,
            "run": f"{workload}{i}",
            "dl_settings": settings, "total_time": second, "bandwidth": 600.0 / second,
            "computation_time": 0.0,
            "au": math.nan, "au_goal": math.nan, "samples_per_second": 1.0, "data_scale": 1.0,
        }
        for i, second in enumerate(seconds)
    ]  # fmt: skip


def section(rows, folder):
    stacks = {"disk": "a disk", "ram": "memory"}
    results = SimpleNamespace(
        observations=pd.DataFrame(rows), stacks=stacks, name=stacks.__getitem__,
        title=lambda experiment, workload: workload, place=lambda experiment, workload: (0, 0),
        experiment_title=lambda experiment: "Cosmic Tagger",
        study=SimpleNamespace(engines=[], engines_where_found=[], experiments={}),
    )  # fmt: skip
    return deep_learning(Context(folder, folder / "figures", SimpleNamespace(), results))


def test_each_setting_that_was_changed_alone_is_a_point_of_its_panel(tmp_path):
    rows = [
        *trained("default", BASE, [10.0, 12.0]),
        *trained("chunks-64k", f"dataset.chunk_size=65536, dataset.enable_chunking=True, {BASE}", [4.0, 6.0]),
        *trained("chunks-4k", f"dataset.chunk_size=4096, dataset.enable_chunking=True, {BASE}", [20.0, 22.0]),
        *trained("gzip", f"dataset.compression=gzip, dataset.compression_level=4, {BASE}", [30.0, 30.0]),
        *trained("lzf", f"dataset.compression=lzf, {BASE}", [15.0, 15.0]),
        # As figure 11 c of the paper: chunks with shuffled samples are a panel of their own.
        *trained("shuffled", f"dataset.chunk_size=65536, reader.sample_shuffle=seed, {BASE}", [5.0, 5.0]),
        # Two changed at once say nothing of either; one repetition has no interval; another engine, or fewer
        # processes, are another figure's.
        *trained("both", f"dataset.chunk_size=65536, reader.read_threads=8, {BASE}", [5.0, 5.0]),
        *trained("once", f"reader.read_threads=8, {BASE}", [5.0]),
        *({**row, "engine": "dlio"} for row in trained("default", BASE, [99.0, 99.0])),
        *(
            {**row, "engine": "dlio"}
            for row in trained("once", f"reader.read_threads=8, {BASE}", [99.0, 99.0])
        ),
        *trained("default", BASE, [1.0, 1.0], "ram"),
        *trained("chunks-64k", f"dataset.chunk_size=65536, {BASE}", [2.0, 2.0], "ram"),
    ]
    made = section(rows, tmp_path)
    (figure,) = [p for p in made.pictures if p.name == "dl-settings-hdf5"]
    assert "Cosmic Tagger" in figure.title and (tmp_path / "figures" / "dl-settings-hdf5.svg").exists()
    found = {(r["setting"], r["value"], r["stack"]): (r["n"], r["seconds"]) for r in figure.data}
    assert found == {
        ("the workload file's", "", "disk"): (2, 11.0), ("the workload file's", "", "ram"): (2, 1.0),
        ("dataset.chunk_size", 65536, "disk"): (2, 5.0), ("dataset.chunk_size", 4096, "disk"): (2, 21.0),
        ("dataset.compression_level", 4, "disk"): (2, 30.0),
        ("dataset.compression", "lzf", "disk"): (2, 15.0),
        ("dataset.chunk_size", 65536, "ram"): (2, 2.0),
        ("dataset.chunk_size, shuffled", 65536, "disk"): (2, 5.0),
    }  # fmt: skip
    # 600 bytes in 4 and in 6 seconds: the median of 150 and 100.
    (row,) = [r for r in figure.data if (r["setting"], r["seconds"]) == ("dataset.chunk_size", 5.0)]
    assert row["bandwidth"] == 125.0
    # Sizes in order, in units; panels are told by name.
    assert figure.svg.index(">4 KiB<") < figure.svg.index(">64 KiB<")
    assert all(
        f">{name}<" in figure.svg
        for name in ("chunk size", "chunk size, shuffled", "compression level", "a disk", "memory", "B/s")
    )


def test_a_study_without_variants_has_no_such_figure(tmp_path):
    made = section(trained("default", BASE, [10.0, 12.0]), tmp_path)
    assert not [p for p in made.pictures if p.name.startswith("dl-settings")]


def test_settings_are_named_as_readers_say_them():
    assert words("dataset.chunk_size") == "chunk size"
    shuffled = "dataset.chunk_size, shuffled"
    assert (words(shuffled), label(shuffled, 4096)) == ("chunk size, shuffled", "4 KiB")
    assert (label("dataset.chunk_size", 65536), label("reader.read_threads", 8)) == ("64 KiB", "8")
    assert label("reader.sample_shuffle", "seed") == "seed"
