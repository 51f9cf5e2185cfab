"""The start module and the search for environments."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from tiercel.dl.upstream.start import index_tfrecord
from tiercel.engines.dlio_environment import START, environments
from tiercel.errors import UserError


def test_an_index_has_a_line_for_each_record(tmp_path: Path) -> None:
    records = tmp_path / "r.tfrecord"
    with records.open("wb") as file:
        for size in (10, 0, 300):
            file.write(struct.pack("<Q", size) + b"crc4" + bytes(size) + b"crc4")
    index_tfrecord(records, tmp_path / "r.idx")
    # A record is its data and 8 + 4 + 4 bytes around: 26, 16 and 316 bytes.
    assert (tmp_path / "r.idx").read_text() == "0 26\n26 16\n42 316\n"


def test_versions_of_a_python_without_dlio() -> None:
    answer = subprocess.run([sys.executable, START, "--versions"], capture_output=True, text=True, check=True)
    found = json.loads(answer.stdout)
    assert found["dlio"] == "" and found["renamed_keys"] is False


def test_a_named_python_without_dlio_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TIERCEL_DLIO_PYTHON", sys.executable)
    with pytest.raises(UserError, match=r"TIERCEL_DLIO_PYTHON: .* has no DLIO"):
        environments()
    monkeypatch.setenv("TIERCEL_DLIO_PYTHON", str(tmp_path / "none"))
    with pytest.raises(UserError, match="No such file"):
        environments()
