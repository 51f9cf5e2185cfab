"""tools/uv: packages are installed where the home folder takes no cache, by the real uv, without network."""

from __future__ import annotations

import os
import subprocess
import zipfile
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

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


def install(
    wheel: Path, home: Path, what: tuple[str, ...] = (), **more: str
) -> subprocess.CompletedProcess[str]:
    """Install the wheel, or `what`, into its folder, as a user of that home folder."""
    environment = {
        k: v for k, v in os.environ.items() if k != "XDG_CACHE_HOME" and not k.startswith(("UV_", "PIP_"))
    }
    environment |= {"HOME": str(home), "UV_FALLBACK_CACHE": str(wheel.parent / "fallback"), **more}
    words = ["pip", "install", "--quiet", "--target", str(wheel.parent / "target")]
    words += what or ("--no-index", str(wheel))
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


class _Mirror(SimpleHTTPRequestHandler):
    def log_message(self, *_words: object) -> None:
        pass


@pytest.fixture
def mirror(wheel: Path) -> Iterator[str]:
    """An index that has `small` and nothing else."""
    folder = wheel.parent / "simple" / "small"
    folder.mkdir(parents=True)
    wheel.rename(folder / wheel.name)
    (folder / "index.html").write_text(f'<a href="{wheel.name}">{wheel.name}</a>')
    served = partial(_Mirror, directory=str(wheel.parent))
    with ThreadingHTTPServer(("127.0.0.1", 0), served) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/simple"
        server.shutdown()


@pytest.mark.parametrize("where", ["environment", "pip.conf", "two", "uv's own"])
def test_the_index_that_pip_is_set_up_for_is_asked(wheel: Path, mirror: str, where: str) -> None:
    """A site's mirror: no other index has the package."""
    home = wheel.parent / "home"
    dead = "[global]\nindex-url = http://127.0.0.1:9/simple\n"
    written, more = {
        "environment": (dead, {"PIP_INDEX_URL": mirror}),
        "pip.conf": (f"{dead}[install]\nindex-url = {mirror}\n", {}),
        "two": (f"[global]\nindex-url = {mirror}/none\nextra-index-url =\n  {mirror}\n  {mirror}/none\n", {}),
        "uv's own": (dead, {"UV_DEFAULT_INDEX": mirror}),
    }[where]
    (home / ".config" / "pip").mkdir(parents=True)
    (home / ".config" / "pip" / "pip.conf").write_text(written)
    done = install(wheel, home, ("small",), **more)
    assert done.returncode == 0, done.stderr
    assert (wheel.parent / "target" / "small.py").is_file()
