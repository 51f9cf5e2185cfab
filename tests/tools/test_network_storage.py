"""The network file system of tools/network-storage: GlusterFS on a link of limited speed, in namespaces."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from ..conftest import CHECKOUT

SCRIPT = CHECKOUT / "tools" / "network-storage" / "storage"

#: All of it in namespaces of its own, whose processes end with the first one: neither tests beside this one
#: see the mount, nor does anything stay behind.
ALONE = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[dict[str, str]]:
    why = subprocess.run([SCRIPT, "missing"], capture_output=True, text=True, check=True).stdout.strip()
    if why:
        pytest.skip(f"no network storage here: {why}")
    files, mount = tmp_path / "files", tmp_path / "mount"
    yield {**os.environ, "TIERCEL_NETWORK_STORAGE": str(files), "MOUNT": str(mount), "STRIPE": "4MB"}
    # Its files have attributes that only root may remove, and no test's folder should keep them.
    subprocess.run(["rm", "-rf", "--one-file-system", files], check=True)


def _run(script: str, environment: dict[str, str]) -> str:
    done = subprocess.run(
        [*ALONE, "bash", "-ec", f'S="{SCRIPT}" PYTHON="{sys.executable}"\n' + dedent(script)],
        env=environment, capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    logs = Path(environment["TIERCEL_NETWORK_STORAGE"], "log")
    assert done.returncode == 0, done.stderr + "".join(p.read_text()[-2000:] for p in logs.glob("*"))
    return done.stdout


def test_files_are_striped_and_stay_when_it_stops(environment: dict[str, str]) -> None:
    out = _run(
        """
        "$S" start >&2
        head -c 10485760 /dev/urandom >"$MOUNT/../data"
        cp "$MOUNT/../data" "$MOUNT/file"
        sync "$MOUNT/file"
        "$PYTHON" -c 'import json; from tiercel.site.mounts import read_mounts
        print(json.dumps([[m.type, m.medium] for m in read_mounts() if str(m.point) == "'"$MOUNT"'"]))'
        "$S" stop
        ls -A "$MOUNT"
        SERVERS=2 "$S" start >&2
        cmp "$MOUNT/../data" "$MOUNT/file" && echo same
        "$S" stop
        """,
        environment,
    ).splitlines()
    assert json.loads(out[0]) == [["glusterfs", "network"]]  # so that site `local` measures it
    assert out[1:] == ["same"]  # the mount is empty between, and the file is there after
    files = Path(environment["TIERCEL_NETWORK_STORAGE"])
    # 10 MiB in stripes of 4 MiB are three pieces, on the two servers by the hash of their names.
    pieces = [
        p
        for brick in files.glob("brick?")
        for p in [brick / "file", *(brick / ".shard").iterdir()]
        if p.is_file()
    ]
    assert sorted(p.stat().st_size for p in pieces) == [2 * 1024**2, 4 * 1024**2, 4 * 1024**2]


def test_a_nearly_full_disk_moves_no_file_to_another_server(environment: dict[str, str]) -> None:
    # GlusterFS leaves an empty link on the server that a name belongs to where less than a tenth is free.
    out = _run(
        """
        mkdir -p "$TIERCEL_NETWORK_STORAGE"
        mount -t tmpfs -o size=300M tiercel "$TIERCEL_NETWORK_STORAGE"
        SERVERS=2 "$S" start >&2
        fallocate -l 280M "$TIERCEL_NETWORK_STORAGE/log/fill"
        for name in $(seq 40); do echo "$name" >"$MOUNT/$name"; done
        "$S" stop
        find "$TIERCEL_NETWORK_STORAGE"/brick? -maxdepth 1 -type f | wc -l
        """,
        environment,
    )
    assert int(out) == 40


def test_a_folder_of_somebody_else_is_refused(environment: dict[str, str]) -> None:
    folder = Path(environment["TIERCEL_NETWORK_STORAGE"])
    folder.mkdir()
    (folder / "thesis").write_text("mine")
    for verb, status in (("start", 2), ("remove", 0)):
        done = subprocess.run(
            [*ALONE, SCRIPT, verb], env=environment, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == status
        assert (folder / "thesis").read_text() == "mine"
        if verb == "start":
            assert "name another folder in TIERCEL_NETWORK_STORAGE" in done.stderr
