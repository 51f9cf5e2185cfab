"""tools/link-duplicates: equal files share their blocks, and nothing else changes."""

from __future__ import annotations

import subprocess
from pathlib import Path

from ..conftest import CHECKOUT

LARGE = b"x" * 100_000


def test_equal_files_are_linked_and_others_are_not(tmp_path: Path) -> None:
    for name, content, mode in (
        ("a.so", LARGE, 0o644), ("b/a.so.1", LARGE, 0o644), ("tool", LARGE, 0o755),
        ("other.so", LARGE[:-1] + b"y", 0o644), ("small", b"s", 0o644), ("small2", b"s", 0o644),
    ):  # fmt: skip
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
        path.chmod(mode)
    (tmp_path / "link").symlink_to("a.so")
    for _ in range(2):  # the second time there is nothing to do
        subprocess.run([CHECKOUT / "tools" / "link-duplicates", tmp_path], check=True)
        links = {p.name: p.stat().st_nlink for p in tmp_path.rglob("*") if p.is_file() and not p.is_symlink()}
        # A program has another mode than a library with its content.
        assert links == {"a.so": 2, "a.so.1": 2, "tool": 1, "other.so": 1, "small": 1, "small2": 1}
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "b" / "a.so.1").read_bytes() == LARGE


def test_a_wrong_call_says_how(tmp_path: Path) -> None:
    answer = subprocess.run(
        [CHECKOUT / "tools" / "link-duplicates", tmp_path / "none"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 1 and "usage" in answer.stderr
