"""tools/uv: packages are installed where the home folder takes no cache, by the real uv, without network."""

from __future__ import annotations

import os
import subprocess
import zipfile
from pathlib import Path

import pytest

from tiercel.programs import program

from ..conftest import CHECKOUT

UV = program("uv")
pytestmark = pytest.mark.skipif(UV is None, reason="no uv beside Python (make setup)")


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    path = tmp_path / "small-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("small.py", "")
        file.writestr("small-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: small\nVersion: 1.0\n")
        file.writestr(
            "small-1.0.dist-info/WHEEL",
            "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        file.writestr(
            "small-1.0.dist-info/RECORD",
            "small.py,,\nsmall-1.0.dist-info/METADATA,,\nsmall-1.0.dist-info/WHEEL,,\n"
            "small-1.0.dist-info/RECORD,,\n",
        )
    return path


def install(wheel: Path, home: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Install the wheel into its folder, as a user of that home folder."""
    removed = ("UV_CACHE_DIR", "XDG_CACHE_HOME")
    environment = {k: v for k, v in os.environ.items() if k not in removed}
    environment |= {"HOME": str(home), "UV_FALLBACK_CACHE": str(wheel.parent / "fallback"), **more}
    words = ["pip", "install", "--quiet", "--no-index", "--target", str(wheel.parent / "target"), str(wheel)]
    return subprocess.run(
        [CHECKOUT / "tools" / "uv", str(UV), *words],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_without_a_home_folder(wheel: Path) -> None:
    """/proc takes no folders, not from root either."""
    done = install(wheel, Path("/proc/home"))
    assert done.returncode == 0, done.stderr
    assert (wheel.parent / "target" / "small.py").is_file()
    assert done.stderr == ("tiercel: the home folder takes no cache of packages: downloading without one\n")
    assert not (wheel.parent / "fallback").exists()


def test_with_a_home_folder_its_cache_is_used(wheel: Path) -> None:
    home = wheel.parent / "home"
    done = install(wheel, home)
    assert (done.returncode, done.stderr) == (0, "")
    assert (home / ".cache" / "uv").is_dir()


def test_a_cache_that_the_user_names_is_the_users(wheel: Path) -> None:
    done = install(wheel, wheel.parent, UV_CACHE_DIR="/proc/cache")
    assert done.returncode != 0
    assert "/proc/cache" in done.stderr and "tiercel" not in done.stderr


def test_another_mistake_is_told_once(wheel: Path) -> None:
    wheel.write_text("no wheel")
    done = install(wheel, wheel.parent / "home")
    assert done.returncode != 0
    assert done.stderr.count("Failed to read from zip file") == 1
