"""The command line of DLIO: the same workload file, DLIO's own names."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tiercel.dl.running import deep_learning
from tiercel.dl.upstream.engine import DLIO
from tiercel.dl.upstream.overrides import overrides, unsupported
from tiercel.dl.workload import known_workloads, load_workload

from .runs import environment, resnet


def _rendered(workload: str, settings: dict[str, Any] | None = None, **more: Any) -> dict[str, str]:
    words = overrides(load_workload(workload, settings), Path("/d"), Path("/c"), Path("/o"), **more)
    assert words[0] == "~workload"  # nothing of DLIO's own default workload stays
    return dict(w.removeprefix("++workload.").split("=", 1) for w in words[1:])


def test_values_of_the_file() -> None:
    found = _rendered("cosmoflow-vast")
    assert found["framework"] == "tensorflow"
    assert found["dataset.format"] == "tfrecord"
    assert found["dataset.num_files_train"] == "1024"
    assert found["reader.transfer_size"] == "262144"
    assert found["reader.read_threads"] == "4"
    assert found["train.epochs"] == "4"
    assert found["train.computation_time"] == "0.00936"
    assert (found["dataset.data_folder"], found["output.folder"]) == ("/d", "/o")
    # 2,828,486 bytes are no square: DLIO's sample is the largest square below, 1681 x 1681.
    assert found["dataset.record_length"] == str(1681**2)
    assert found["workflow.generate_data"] == "false"


def test_renamed_keys_for_a_later_dlio() -> None:
    found = _rendered("cosmoflow-vast", renamed_keys=True)
    assert found["dataset.record_length_bytes"] == "2828486"
    assert "dataset.record_length" not in found
    assert found["model.name"] == "cosmoflow"


def test_no_checkpoint_means_no_state_to_keep_in_memory() -> None:
    found = _rendered("resnet50-vast", {"model.model_size_bytes": 10**9})
    assert found["checkpoint.model_size"] == "0"
    assert found["checkpoint.layer_parameters"] == "[]"


def test_a_buffer_is_no_larger_than_a_file() -> None:
    found = _rendered("resnet50-vast", {"dataset.format": "hdf5", "dataset.num_samples_per_file": 2})
    assert int(found["dataset.generation_buffer_size"]) == 2 * 391**2  # 153,600 bytes: 391 x 391


def test_every_workload_file_can_be_rendered_or_says_why_not() -> None:
    for name in known_workloads():
        reason = unsupported(load_workload(name), renamed_keys=False)
        assert reason is None or "." in reason.split(":")[0], name  # names a key
        _rendered(name)


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"storage.storage_type": "s3"}, "storage.storage_type"),
        ({"dataset.format": "csv", "dataset.compression": "gzip"}, "dataset.compression"),
        ({"train.computation_time": {"type": "exponential", "scale": 0.1}}, "train.computation_time"),
        ({"dataset.format": "npy", "reader.odirect": True}, "reader.odirect"),
        ({"workflow.train": False, "workflow.generate_data": True}, "workflow.train"),
        ({"reader.data_loader": "dali"}, "reader.data_loader"),
    ],
)
def test_what_dlio_cannot_do_is_named(settings: dict[str, Any], key: str) -> None:
    reason = unsupported(load_workload("resnet50-vast", settings), renamed_keys=False)
    assert reason is not None and reason.startswith(key)


def test_without_an_environment_the_command_that_makes_one_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("TIERCEL_DLIO_PYTHON", raising=False)
    monkeypatch.setattr("tiercel.dl.upstream.environment.project_root", lambda: tmp_path)
    monkeypatch.setattr("tiercel.dl.upstream.environment.program", lambda _name: None)
    assert DLIO().find() is None
    assert "make dlio-torch" in (DLIO().unsupported(resnet(), 1) or "")
    assert "make dlio`" in (DLIO().unsupported(deep_learning("cosmoflow-vast"), 1) or "")


def test_hydra_reads_what_was_meant() -> None:
    """Hydra's own grammar on texts that could be read as more than a text."""
    python = environment("pytorch").python
    nasty = [
        "a b",
        "it's",
        "x=1,y=[2]",
        "true",
        "1e5",
        "back\\",
        "q\\'q",
        "ünïcode",
        "{a:b}",
        "null",
        "",
        "a#b",
    ]
    words = [
        w
        for text in nasty
        for w in overrides(load_workload("resnet50-vast"), Path(f"/{text}/d"), Path("/c"), Path("/o"))
        if "data_folder" in w
    ]  # fmt: skip
    code = (
        "import json,sys\nfrom hydra.core.override_parser.overrides_parser import OverridesParser\n"
        "parse = OverridesParser.create().parse_overrides\n"
        "print(json.dumps([o.value() for o in parse(json.load(sys.stdin))]))"
    )
    answer = subprocess.run(
        [python, "-c", code], input=json.dumps(words), capture_output=True, text=True, check=True
    )
    assert json.loads(answer.stdout) == [str(Path(f"/{text}/d")) for text in nasty]


def test_dlio_makes_the_files_that_it_wants_for_samples_in_memory() -> None:
    # Without files in its folders DLIO ends with "Not enough training dataset is found".
    assert _rendered("l2hmc")["workflow.generate_data"] == "true"
