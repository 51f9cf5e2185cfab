"""What memory and the way to a server carry and keep."""

from __future__ import annotations

from pathlib import Path

import pytest

from tiercel.checklist import memory, wire


def proc(folder: Path, **thresholds: int) -> Path:
    vm = folder / "sys" / "vm"
    vm.mkdir(parents=True)
    (folder / "meminfo").write_text("MemTotal: 9000 kB\nMemAvailable: 1000 kB\n")
    given = {"dirty_background_ratio": 10, "dirty_ratio": 20, "dirty_background_bytes": 0, "dirty_bytes": 0}
    for name, value in {**given, **thresholds}.items():
        (vm / name).write_text(f"{value}\n")
    return folder


def test_the_page_cache_holds_what_is_free_and_of_written_files_up_to_its_thresholds(tmp_path: Path) -> None:
    # Halfway between 10 % and 20 % of 1,024,000 bytes.
    assert memory.page_cache(proc(tmp_path / "a")) == {"read_cache": 1_024_000, "write_cache": 153_600}
    some = proc(tmp_path / "b", dirty_background_bytes=1000, dirty_bytes=3000)
    assert memory.page_cache(some)["write_cache"] == 2000
    assert memory.page_cache(tmp_path / "nowhere") == {}


@pytest.mark.parametrize("processes", [1, 3])
def test_copies_of_all_processes_count(processes: int) -> None:
    assert memory.memory_copy(processes, size=2**20) > 0


def test_a_server_on_this_node_is_reached_by_loopback() -> None:
    found = wire.wire("127.0.0.1:/export", 0.05)
    assert found is not None and found["label"] == "loopback of the node" and found["bandwidth"] > 0


def test_a_link_says_megabits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ib0").mkdir()
    (tmp_path / "ib0" / "speed").write_text("100000\n")
    monkeypatch.setattr(wire, "_own_address", {"server": "192.0.2.7"}.get)
    monkeypatch.setattr(wire, "_address_of", {"lo": "127.0.0.1", "ib0": "192.0.2.7"}.get)
    monkeypatch.setattr(wire.socket, "if_nameindex", lambda: [(1, "lo"), (2, "ib0")])
    assert wire.wire("server:/export", 1, tmp_path) == {"label": "link ib0 of the node", "bandwidth": 12.5e9}
    assert wire.wire("elsewhere:/export", 1, tmp_path) is None
    (tmp_path / "ib0" / "speed").write_text("-1\n")  # a virtual one
    assert wire.wire("server:/export", 1, tmp_path) is None
    assert wire.wire("none", 1, tmp_path) is None


def test_an_interface_has_an_address() -> None:
    assert wire._address_of("lo") == "127.0.0.1"
    assert wire._address_of("no such one") is None
