"""A dataset that is there: generated once, trained on often, checked before, found where it should lie."""

from __future__ import annotations

import fcntl
import gzip
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tiercel.dl.files.load import load_workload
from tiercel.dl.places import places_of
from tiercel.locked import FileLock

from .kernel import result, run
from .test_cli import tiercel

FILE = """
model: {name: small}
framework: pytorch
workflow: {generate_data: false, train: true}
dataset: {format: npz, num_files_train: 12, record_length_bytes: 10000, data_folder: %s}
reader: {batch_size: 2, read_threads: 2}
train: {epochs: 2, computation_time: 0.001}
"""


def written(folder: Path, data: str = "data/small", text: str = FILE) -> str:
    path = folder / "small.yaml"
    path.write_text(text % data if "%s" in text else text)
    return str(path)


def content(folder: Path) -> dict[str, tuple[int, int]]:
    """Return inode and time of each file of a dataset: they change where one is made anew."""
    return {p.name: (p.stat().st_ino, p.stat().st_mtime_ns) for p in (folder / "train").iterdir()}


def ran(*arguments: str) -> dict[str, Any]:
    answer = tiercel("run", *arguments, "--json")
    assert answer.returncode == 0, answer.stderr
    found: dict[str, Any] = json.loads(answer.stdout)
    return found


def test_what_was_generated_is_trained_on(tmp_path: Path) -> None:
    file, place = written(tmp_path), tmp_path / "d"
    made = tiercel("generate", file, "--folder", str(place))
    assert made.returncode == 0, made.stderr
    before = content(place)
    found = [ran(file, "--folder", str(place)) for _ in range(2)]
    assert [f["dataset"] for f in found] == [str(place)] * 2
    assert [f["found_dataset"] for f in found] == [True, True]
    assert all(m["operation"] != "generate" for f in found for m in f["measurements"])
    assert content(place) == before
    assert not list(place.glob("**/dataset"))


def test_two_at_once_make_one_dataset(tmp_path: Path) -> None:
    file, place = written(tmp_path), tmp_path / "d"
    place.mkdir()
    argv = [sys.executable, "-m", "tiercel", "dl", "generate", file, "--folder", str(place), "-n", "2"]
    with (place / ".generating").open("w") as held:  # as if another run were making it
        fcntl.flock(held, fcntl.LOCK_EX)
        both = [
            subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in "ab"
        ]
        time.sleep(4)
        assert [one.poll() for one in both] == [None, None]
        assert [p.name for p in place.iterdir()] == [".generating"]
    said = [one.communicate(timeout=60) for one in both]
    assert [one.returncode for one in both] == [0, 0], said
    # One has made all of it, the other found it; neither wrote what the other was writing.
    assert sorted(words.split(" files made")[0] for words, _ in said) == ["0", "12"]
    assert sorted(p.name for p in place.iterdir()) == ["dataset.json", "train", "valid"]
    assert not list(place.rglob("*.part"))


def test_a_dataset_of_others_is_used_where_its_files_are_right(tmp_path: Path) -> None:
    file, place = written(tmp_path), tmp_path / "d"
    tiercel("generate", file, "--folder", str(place))
    (place / "dataset.json").unlink()  # as DLIO leaves one
    before = content(place)
    assert ran(file, "--folder", str(place))["found_dataset"]
    assert content(place) == before
    again = tiercel("generate", file, "--folder", str(place))
    assert "0 files made (0 B), 12 were there before" in again.stdout, again.stderr


@pytest.mark.parametrize("own", [True, False])
def test_a_wrong_dataset_is_named_before_training(tmp_path: Path, own: bool) -> None:
    file, place = written(tmp_path), tmp_path / "d"
    tiercel("generate", file, "--folder", str(place))
    first = sorted((place / "train").iterdir())[0]
    if not own:
        (place / "dataset.json").unlink()
    whole = first.read_bytes()
    for damage, telling in ((whole[:5000] + b"\x00" + whole[5001:], "the checksum of x.npy is wrong"),
                            (whole[:-2000], "not an NPZ file")):  # fmt: skip
        first.write_bytes(damage)
        answer = tiercel("run", file, "--folder", str(place))
        assert answer.returncode == 2
        assert str(first) in answer.stderr
        assert len(answer.stderr.strip().splitlines()) == 1
        assert telling in answer.stderr
    first.write_bytes(whole)
    wrong = tiercel("run", file, "--folder", str(place), "--set", "dataset.num_files_train=13")
    assert wrong.returncode == 2
    assert "another dataset" in wrong.stderr if own else "12 files where" in wrong.stderr
    wrong = tiercel("run", file, "--folder", str(place), "--set", "dataset.record_length_bytes=20000")
    assert wrong.returncode == 2
    assert "another dataset" in wrong.stderr if own else "where the workload" in wrong.stderr


@pytest.mark.parametrize(
    ("own", "folders"),
    [
        (True, 0),
        (False, 3),
        *(pytest.param(*both, marks=pytest.mark.nightly) for both in ((True, 3), (False, 0))),
    ],
)
def test_of_a_larger_dataset_the_first_files_are_used(tmp_path: Path, own: bool, folders: int) -> None:
    file, place = written(tmp_path), tmp_path / "d"
    more = ("--set", f"dataset.num_subfolders_train={folders}")
    assert tiercel("generate", file, "--folder", str(place), *more).returncode == 0
    if not own:
        (place / "dataset.json").unlink()
    names = sorted(p.name for p in (place / "train").rglob("*.npz"))
    assert len(names) == 12
    output, fewer = tmp_path / "out", (*more, "--set", "dataset.num_files_train=6")
    answer = tiercel("run", file, "--folder", str(place), "--output", str(output), "--trace", *fewer)
    assert answer.returncode == 0, answer.stderr
    assert "train: the first 6 of the 12 files that are there" in answer.stdout
    # Numbers 0 to 5, by their names alone (as DLIO), whatever the subfolders; once in each of two epochs.
    opened = b"".join(gzip.decompress(log.read_bytes()) for log in (output / "trace").iterdir()).decode()
    assert {name for name in names if f"/{name}" in opened} == set(names[:6])
    assert [row["opens"] for row in result(tmp_path)["rows"]] == [6, 6]
    # One of the others is damaged: nobody looks. One that is used is: it is named.
    for number, code in ((9, 0), (2, 2)):
        (damaged,) = (place / "train").rglob(names[number])
        damaged.write_bytes(damaged.read_bytes()[:-9])
        answer = tiercel("run", file, "--folder", str(place), *fewer)
        assert answer.returncode == code, (number, answer.stderr)
        assert (names[number] in answer.stderr) == (code == 2)


def test_of_a_larger_dataset_of_ours_all_files_must_be_there(tmp_path: Path) -> None:
    file, place = written(tmp_path), tmp_path / "d"
    tiercel("generate", file, "--folder", str(place))
    sorted((place / "train").iterdir())[0].unlink()  # the first six would be others
    answer = tiercel("run", file, "--folder", str(place), "--set", "dataset.num_files_train=6")
    assert answer.returncode == 2
    assert "11 files where 12 were generated (dataset.json)" in answer.stderr


def test_the_data_folder_of_the_file(tmp_path: Path) -> None:
    data = tmp_path / "elsewhere"
    file = written(tmp_path, str(data))
    assert tiercel("generate", file, "--folder", str(data)).returncode == 0
    before = content(data)
    found = ran(file)  # no --folder: the file names one
    assert (found["dataset"], found["found_dataset"]) == (str(data), True)
    assert content(data) == before
    relative = written(tmp_path)
    found = ran(relative, "--folder", str(tmp_path / "d"))
    assert (found["dataset"], found["found_dataset"]) == (str(tmp_path / "d" / "data" / "small"), False)
    found = ran(relative, "--folder", str(tmp_path / "d"))
    assert found["found_dataset"]


@pytest.mark.parametrize(
    ("storage", "below"),
    [("{}", "dataset"), ("{storage_root: scratch}", "scratch/data"), ("{storage_root: ./}", "dataset")],
)
def test_a_root_without_a_data_folder_is_minded(tmp_path: Path, storage: str, below: str) -> None:
    """As in DLIO, whose own data_folder is ./data/; the root was passed over without a word."""
    found = load_workload(written(tmp_path, text=f"storage: {storage}"))
    assert places_of(found, tmp_path / "d").dataset == tmp_path / "d" / below


def test_a_dataset_below_the_folder_of_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, data = written(tmp_path), tmp_path / "data" / "small"
    assert tiercel("generate", file, "--folder", str(data)).returncode == 0
    monkeypatch.chdir(tmp_path)
    assert ran(file)["dataset"] == str(data)


CHECKPOINTS = """
model: {name: small, model_size_bytes: 100000}
framework: pytorch
workflow: {train: false, checkpoint: true}
checkpoint: {num_checkpoints_write: 2, num_checkpoints_read: 1, checkpoint_folder: kept/small}
"""


def test_a_second_run_does_not_write_checkpoints_where_one_does(tmp_path: Path) -> None:
    """Both would use the same names, and read what the other wrote."""
    file, folder = written(tmp_path, text=CHECKPOINTS), tmp_path / "d"
    (folder / "kept").mkdir(parents=True)
    with FileLock(folder / "kept" / ".small.lock", "held by the test"):
        second = tiercel("run", file, "--folder", str(folder))
        assert second.returncode == 2
        assert f"another run writes its checkpoints in {folder}/kept/small" in second.stderr
        assert not (folder / "kept" / "small").exists()
    ran(file, "--folder", str(folder))


def test_a_run_that_only_checkpoints_makes_no_dataset(tmp_path: Path) -> None:
    found = ran(written(tmp_path, text=CHECKPOINTS), "--folder", str(tmp_path / "d"))
    assert [m["operation"] for m in found["measurements"]] == ["checkpoint-write", "checkpoint-read"]
    assert (found["dataset"], found["run"]["generated"]) == (None, None)
    assert [p.name for p in (tmp_path / "d").iterdir()] == ["kept"]
    assert len(list((tmp_path / "d" / "kept" / "small").iterdir())) == 2


def test_a_file_that_only_generates_succeeds(tmp_path: Path) -> None:
    text = FILE.replace("generate_data: false, train: true", "generate_data: true, train: false")
    for files in (12, 0):
        (row,) = ran(written(tmp_path, text=text), "--folder", str(tmp_path / "d"))["measurements"]
        assert (row["operation"], row["operations"]) == ("generate", files)


def test_files_are_kept_unless_the_workload_says_otherwise(tmp_path: Path) -> None:
    answer = run(tmp_path, 2, dataset={"keep_files": False})
    assert answer.returncode == 0, answer.stderr
    assert list((tmp_path / "data").iterdir()) == []
    run(tmp_path, 2)
    answer = run(tmp_path, 2, dataset={"keep_files": False})
    assert answer.returncode == 0, answer.stderr
    assert result(tmp_path)["generated"]["kept"] == 12
    assert len(list((tmp_path / "data" / "train").iterdir())) == 12  # was there before


@pytest.mark.parametrize(
    ("key", "way"),
    [
        ("dataset.data_folder", "run"),
        ("checkpoint.checkpoint_folder", "run"),
        ("output.folder", "run"),
    ],
)
def test_no_key_leads_out_of_the_folder(tmp_path: Path, key: str, way: str) -> None:
    file, place = written(tmp_path), tmp_path / "a" / "d"
    answer = tiercel(way, file, "--folder", str(place), "--set", f"{key}=../outside")
    assert answer.returncode == 2
    assert answer.stderr.startswith(f"tiercel: {key}: ../outside leads out of {place}")
    assert not (tmp_path / "a" / "outside").exists()
    inside = tiercel(way, file, "--folder", str(place), "--set", f"{key}=b/../inside")
    assert inside.returncode == 0, inside.stderr


def test_room_is_looked_for_where_the_dataset_goes(tmp_path: Path) -> None:
    # 10^9 files of 10 kB are more than any machine of the tests has; data_folder is on another file system.
    elsewhere = Path("/dev/shm")
    if elsewhere.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("no second file system")
    data = elsewhere / "tiercel-test-room"
    answer = tiercel("run", written(tmp_path, str(data)), "--folder", str(tmp_path / "d"), "--set",
                     "dataset.num_files_train=1000000000")  # fmt: skip
    assert answer.returncode == 2
    assert answer.stderr.startswith(f"tiercel: {data}: ")
    assert not data.exists()


def test_what_is_only_generated_stays_whatever_a_training_would_remove(tmp_path: Path) -> None:
    file = written(tmp_path, text=FILE.replace("record_length", "keep_files: false, record_length") % "x")
    made = tiercel("generate", file, "--folder", str(tmp_path / "d"))
    assert made.returncode == 0, made.stderr
    assert len(content(tmp_path / "d")) == 12


def turned(path: Path, place: int) -> None:
    """Change one byte of a file; its size and its form stay."""
    data = bytearray(path.read_bytes())
    data[place] ^= 0x55
    path.write_bytes(data)


@pytest.mark.parametrize(
    "form",
    [
        "npy",
        "indexed_binary",
        *(pytest.param(form, marks=pytest.mark.nightly) for form in ("hdf5", "jpeg", "mmap_indexed_binary")),
    ],
)
def test_one_byte_that_changed_is_named_before_training(tmp_path: Path, form: str) -> None:
    # 100 files: every second is recorded (100 / 64, rounded up), so 46 is and 47 is not.
    text = FILE.replace("npz", form).replace("files_train: 12", "files_train: 100")
    file, place = written(tmp_path, text=text % "data"), tmp_path / "d"
    assert tiercel("generate", file, "--folder", str(place)).returncode == 0
    recorded = json.loads((place / "dataset.json").read_text())["contents"]
    assert len(recorded) == 50 * (3 if "indexed" in form else 1)  # with its offsets and sizes
    other, one = (
        next(p for p in (place / "train").iterdir() if f"_{n}_of" in p.name and not p.name.endswith("idx"))
        for n in ("047", "046")
    )
    turned(one, one.stat().st_size // 2)
    answer = tiercel("run", file, "--folder", str(place), "-n", "2")
    assert answer.returncode == 2
    assert f"{one}: its content has changed since it was generated" in answer.stderr
    one.unlink()
    for _ in range(2):  # made anew, then recorded anew
        ran(file, "--folder", str(place), "-n", "2")
    assert json.loads((place / "dataset.json").read_text())["contents"] == recorded
    if form == "npy":  # as the docs say: what nobody recorded, and holds no checksum, is not noticed
        turned(other, other.stat().st_size // 2)
        ran(file, "--folder", str(place))


def test_a_large_file_is_recorded_in_pieces_with_its_ends(tmp_path: Path) -> None:
    # 2 files of 4.2 MiB x 5 samples are above the 16 MiB of which all is digested.
    text = FILE.replace("npz", "npy").replace("files_train: 12", "files_train: 2, num_samples_per_file: 5")
    file, place = written(tmp_path, text=text.replace("10000", "4410000") % "data"), tmp_path / "d"
    assert tiercel("generate", file, "--folder", str(place)).returncode == 0
    first = sorted((place / "train").iterdir())[0]
    for end in (200, -1):
        turned(first, end)
        answer = tiercel("run", file, "--folder", str(place))
        assert answer.returncode == 2
        assert f"{first}: its content has changed" in answer.stderr
        turned(first, end)
    ran(file, "--folder", str(place))
