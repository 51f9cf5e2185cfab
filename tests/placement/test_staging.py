"""The staging script on real files: what it brings back and refuses, and what is left after it is killed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from tiercel.advice.isolation import no_isolation
from tiercel.errors import UserError
from tiercel.placement import stage
from tiercel.placement.staging import Move, staging_script

#: Hostile in every way that a file system allows: quotes, a command, a newline at the end, not UTF-8.
NAMES = ["plain", "-rf", "sp ace", "qu'o\"te", "$(touch pwned)`x`", "line\nbreak\n", os.fsdecode(b"\xff\xfe")]
needs_mounts = pytest.mark.skipif(bool(no_isolation()), reason=no_isolation() or "-")


def state(folder: Path) -> dict[str, object]:
    """Return what a program could see of a folder: types, modes, times, contents, links, hard links."""
    found: dict[str, object] = {}
    inodes: dict[int, str] = {}
    for path in sorted([folder, *folder.rglob("*")]):
        name = os.fsencode(path.relative_to(folder)).decode("latin-1")
        facts = path.lstat()
        entry: list[object] = [stat.filemode(facts.st_mode), facts.st_uid]
        if stat.S_ISLNK(facts.st_mode):
            entry.append(os.readlink(path))  # noqa: PTH115 -- as it stands
        elif stat.S_ISREG(facts.st_mode):
            entry += [facts.st_mtime_ns, path.read_bytes(), inodes.setdefault(facts.st_ino, name)]
        found[name] = entry
    return found


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with something of everything."""
    folder = tmp_path / "home" / "data"
    (folder / "deep" / "er").mkdir(parents=True)
    for name in NAMES:
        (folder / name).write_bytes(os.fsencode(name))
    (folder / "deep" / "er" / "x").write_bytes(b"x" * 5000)
    (folder / "deep" / "link").symlink_to("er/x")
    (folder / "nowhere").symlink_to("/does/not/exist")
    (folder / "hard").hardlink_to(folder / "plain")
    os.mkfifo(folder / "fifo")
    with (folder / "sparse").open("wb") as file:
        file.write(b"begin")
        file.truncate(40 << 20)
    return folder


def script(tmp_path: Path, *moves: Move) -> Path:
    path = tmp_path / "stage.py"
    path.write_text(staging_script(moves), encoding="utf-8", errors="surrogateescape")
    return path


def folder(home: Path, tmp_path: Path) -> Move:
    return Move(str(home), str(tmp_path / "there" / "data"), True, True, True)


def staged(path: Path, *words: str, cwd: Path | str = "/") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(path), *words], cwd=cwd, capture_output=True, text=True, check=False, timeout=120
    )


CHANGES = """
import os
from pathlib import Path
data = Path(os.environ.get("DATA", "."))
(data / "new").write_text("new")
(data / "deep/er/x").write_text("changed")
(data / "sp ace").unlink()
(data / "made").mkdir()
(data / "made/in").write_text("in")
os.rename(data / "-rf", data / "made/-rf")
os.replace(data / "deep/link", data / "deep/renamed")
os.chmod(data / "plain", 0o600)
"""


def changed(tmp_path: Path, home: Path) -> dict[str, object]:
    """Return the state that the changes lead to without staging; times of changed files apart."""
    other = tmp_path / "expected"
    stage.copy(str(home), str(other))
    subprocess.run([sys.executable, "-c", CHANGES], cwd=other, check=True)
    return without_times(state(other))


def without_times(found: dict[str, object]) -> dict[str, object]:
    return {n: [e for e in entry if not isinstance(e, int) or e < 1 << 32] for n, entry in found.items()}  # type: ignore[attr-defined]


def test_a_copy_is_the_same_in_all_that_a_program_sees(tmp_path: Path, home: Path) -> None:
    before = state(home)
    stage.copy(str(home), str(tmp_path / "copy"))
    assert state(tmp_path / "copy") == before == state(home)
    # 40 MiB of a hole and five bytes: some pages, not 40 MiB.
    assert (tmp_path / "copy" / "sparse").stat().st_blocks * 512 < 1 << 20


@needs_mounts
def test_attributes_of_a_folder_are_brought_back(tmp_path: Path, home: Path) -> None:
    """An access control list is such an attribute, too. A folder's time does not tell that one changed."""
    try:
        os.setxattr(tmp_path, "user.probe", b"1")
    except OSError as error:
        pytest.skip(f"no attributes here: {error.strerror}")
    code = (
        "import os; os.setxattr('deep', 'user.x', b'1'); os.mkdir('new'); os.setxattr('new', 'user.x', b'2')"
    )
    done = staged(script(tmp_path, folder(home, tmp_path)), "run", "--", sys.executable, "-c", code, cwd=home)
    assert (done.returncode, done.stderr) == (0, "")
    assert os.getxattr(home / "deep", "user.x") == b"1" and os.getxattr(home / "new", "user.x") == b"2"


@needs_mounts
def test_a_program_runs_with_its_folder_elsewhere_and_brings_back_what_it_changed(
    tmp_path: Path, home: Path
) -> None:
    expected, inode = changed(tmp_path, home), (home / "qu'o\"te").stat().st_ino
    done = staged(
        script(tmp_path, folder(home, tmp_path)), "run", "--", sys.executable, "-c", CHANGES, cwd=home
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert without_times(state(home)) == expected
    assert (home / "qu'o\"te").stat().st_ino == inode  # what did not change was not touched
    assert list((tmp_path / "there").iterdir()) == []


@needs_mounts
def test_the_exit_code_is_the_programs_and_its_output_is_kept(tmp_path: Path, home: Path) -> None:
    done = staged(
        script(tmp_path, folder(home, tmp_path)), "run", "--", "sh", "-c", f"echo x > {home}/y; exit 7"
    )
    assert done.returncode == 7 and (home / "y").read_text() == "x\n"


@needs_mounts
def test_a_program_that_does_not_start_changes_nothing(tmp_path: Path, home: Path) -> None:
    before = state(home)
    done = staged(script(tmp_path, folder(home, tmp_path)), "run", "--", "/no/such/program")
    assert done.returncode == 1 and "does not start" in done.stderr
    assert state(home) == before and list((tmp_path / "there").iterdir()) == []


def test_in_two_steps_by_a_link(tmp_path: Path, home: Path) -> None:
    expected = changed(tmp_path, home)
    path = script(tmp_path, folder(home, tmp_path))
    assert staged(path, "in").returncode == 0
    assert home.is_symlink()
    subprocess.run([sys.executable, "-c", CHANGES], cwd=home, check=True)
    assert staged(path, "out").returncode == 0
    assert without_times(state(home)) == expected and list((tmp_path / "there").iterdir()) == []


def test_a_single_file_goes_and_comes_back(tmp_path: Path, home: Path) -> None:
    path = script(tmp_path, Move(str(home / "plain"), str(tmp_path / "there/plain"), False, True, True))
    assert staged(path, "in").returncode == 0
    (home / "plain").write_text("changed")
    assert staged(path, "out").returncode == 0
    assert not (home / "plain").is_symlink() and (home / "plain").read_text() == "changed"


def test_discard_puts_everything_back_as_it_was(tmp_path: Path, home: Path) -> None:
    before = state(home)
    path = script(tmp_path, folder(home, tmp_path))
    assert staged(path, "in").returncode == 0
    (home / "new").write_text("thrown away")
    assert staged(path, "discard").returncode == 0
    assert state(home) == before and list((tmp_path / "there").iterdir()) == []


def test_memory_that_a_restart_cleared(tmp_path: Path, home: Path) -> None:
    before = state(home)
    path = script(tmp_path, folder(home, tmp_path))
    assert staged(path, "in").returncode == 0
    shutil.rmtree(tmp_path / "there")
    done = staged(path, "out")
    assert done.returncode == 1 and "is gone" in done.stderr
    assert state(home) == before


def test_what_is_in_the_place_already_stays(tmp_path: Path, home: Path) -> None:
    (tmp_path / "there" / "data").mkdir(parents=True)
    (tmp_path / "there" / "data" / "mine").write_text("mine")
    done = staged(script(tmp_path, folder(home, tmp_path)), "in")
    assert done.returncode == 1 and "not of this plan" in done.stderr
    assert (tmp_path / "there" / "data" / "mine").read_text() == "mine" and not home.is_symlink()


def test_what_others_changed_meanwhile_is_kept(tmp_path: Path, home: Path) -> None:
    source, known = tmp_path / "copy", stage.scan(str(home), stage.in_memory(str(home)))
    stage.copy(str(home), str(source))
    before = stage.scan(str(source))
    (source / "plain").write_text("by the program")
    (home / "plain").write_text("by another")
    stage.apply(str(source), str(home), stage.changed(before, stage.scan(str(source))), known)
    assert (home / "plain").read_text() == "by the program"
    assert (home / "plain.tiercel-kept1").read_text() == "by another"


def test_what_others_changed_in_memory_is_kept_though_its_time_stays() -> None:
    """tmpfs does not record the time of a write through a mapping: here the time is put back."""
    if not stage.in_memory("/dev/shm"):
        pytest.skip("/dev/shm is not in memory")
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="tiercel-test-") as name:
        home, place = Path(name, "home"), Path(name, "place")
        home.mkdir()
        (home / "data").write_text("before")
        known, before = stage.copy_in(str(home), str(place), True, True)
        (place / "data").write_text("by the program")
        facts = (home / "data").stat()
        (home / "data").write_text("others")  # of the same size
        os.utime(home / "data", ns=(facts.st_atime_ns, facts.st_mtime_ns))
        stage.apply(str(place), str(home), stage.changed(before, stage.scan(str(place), True)), known)
        assert (home / "data").read_text() == "by the program"
        assert (home / "data.tiercel-kept1").read_text() == "others"


def test_all_names_of_a_written_file_are_changed() -> None:
    """As bindfs shows a file (inode 7) that was written as `a`: its other name keeps its attributes."""
    other = [0o100644, 8, 3, 100, 100]
    before = {"": [0o40755, 0, 0, {}], "a": [0o100644, 7, 3, 100, 100], "b": [0o100644, 7, 3, 100, 100]}
    now = {**before, "a": [0o100644, 7, 5, 200, 200], "c": other}
    assert stage.changed({**before, "c": other}, now) == {"a", "b"}


def test_a_file_that_another_process_writes_is_refused(tmp_path: Path, home: Path) -> None:
    before = state(home)
    path = script(tmp_path, folder(home, tmp_path))
    with (home / "plain").open("r+b") as opened:
        holds = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=opened)
        try:
            for verb in ("in", "run -- true"):
                done = staged(path, *verb.split())
                assert done.returncode == 1 and f"process {holds.pid}" in done.stderr
                assert "open for writing" in done.stderr
        finally:
            holds.communicate()
    assert state(home) == before and not list((tmp_path / "there").glob("data"))
    assert staged(path, "in").returncode == 0


def test_reading_a_file_forbids_nothing(tmp_path: Path, home: Path) -> None:
    path = script(tmp_path, folder(home, tmp_path))
    with (home / "plain").open("rb") as opened:
        reads = subprocess.Popen(["cat"], stdin=subprocess.PIPE, pass_fds=[opened.fileno()])
        assert staged(path, "in").returncode == 0
        reads.communicate()


def test_a_folder_in_which_another_process_stands_is_refused(tmp_path: Path, home: Path) -> None:
    before = state(home)
    path = script(tmp_path, folder(home, tmp_path))
    stands = subprocess.Popen(["cat"], stdin=subprocess.PIPE, cwd=home / "deep")
    try:
        for verb in ("in", "run -- true"):
            done = staged(path, *verb.split())
            assert done.returncode == 1 and f"working folder of process {stands.pid}" in done.stderr
    finally:
        stands.communicate()
    assert state(home) == before
    # A link is not put in place of the folder in which the script itself stands.
    done = staged(path, "in", cwd=home)
    assert done.returncode == 1 and "working folder" in done.stderr
    assert state(home) == before


def test_bringing_back_waits_for_the_program_that_still_writes(tmp_path: Path, home: Path) -> None:
    path = script(tmp_path, folder(home, tmp_path))
    assert staged(path, "in").returncode == 0
    with (home / "new").open("wb") as opened:
        writes = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=opened)
    done = staged(path, "out")
    writes.communicate(b"late")
    assert done.returncode == 1 and "open for writing" in done.stderr
    assert staged(path, "out").returncode == 0
    assert (home / "new").read_bytes() == b"late"


@pytest.mark.parametrize(
    ("target", "leaves"),
    [("../beside", True), ("er/../../../beside", True), ("../plain", False), ("/beside", False)],
)
def test_a_relative_link_that_leads_out(tmp_path: Path, home: Path, target: str, leaves: bool) -> None:
    """A link in the folder `deep`, or in the moved folder itself for `../beside`."""
    link = home / ("out" if target == "../beside" else "deep/out")
    link.symlink_to(target)
    done = staged(script(tmp_path, folder(home, tmp_path)), "in")
    assert (done.returncode == 1 and "leads out of" in done.stderr) if leaves else done.returncode == 0
    assert home.is_symlink() != leaves


@needs_mounts
def test_with_mounts_a_relative_link_leads_to_where_it_did(tmp_path: Path, home: Path) -> None:
    (home.parent / "beside").write_text("beside")
    (home / "out").symlink_to("../beside")
    done = staged(script(tmp_path, folder(home, tmp_path)), "run", "--", "cat", str(home / "out"))
    assert (done.returncode, done.stdout) == (0, "beside")


@needs_mounts
def test_two_at_once(tmp_path: Path, home: Path) -> None:
    path = script(tmp_path, folder(home, tmp_path))
    words = ["run", "--", "sh", "-c", "echo; read x; echo $x >one"]
    first = subprocess.Popen([sys.executable, str(path), *words],
                             cwd=home, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # fmt: skip
    assert first.stdout is not None and first.stdin is not None
    first.stdout.readline()  # it runs
    second = staged(path, "run", "--", "true")
    assert second.returncode == 1 and "another run" in second.stderr
    first.stdin.write(b"done\n")
    first.stdin.close()
    assert first.wait(60) == 0 and (home / "one").read_text() == "done\n"


@needs_mounts
def test_a_killed_run_is_brought_back_or_thrown_away(tmp_path: Path, home: Path) -> None:
    before = state(home)
    path = script(tmp_path, folder(home, tmp_path))
    words = ["run", "--", "sh", "-c", "echo half >new; echo; read x"]
    ran = subprocess.Popen([sys.executable, str(path), *words],
                           cwd=home, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # fmt: skip
    assert ran.stdout is not None and ran.stdin is not None
    ran.stdout.readline()
    ran.kill()
    ran.wait()
    assert state(home) == before  # nothing is lost, and nothing half done
    assert "another run" in staged(path, "out").stderr  # the program still runs, and holds the lock
    ran.stdin.close()  # now it ends
    for _ in range(200):
        done = staged(path, "run", "--", "true")
        if "another run" not in done.stderr:
            break
        time.sleep(0.05)
    assert done.returncode == 1 and "interrupted run" in done.stderr
    assert staged(path, "out").returncode == 0
    assert (home / "new").read_text() == "half\n"


#: Ends this process at the n-th call that changes something.
KILLER = """
import os, sys, signal
sys.path.insert(0, sys.argv[2])
import stage
left = int(sys.argv[1])
def dying(call):
    def made(*words, **options):
        global left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return call(*words, **options)
    return made
for name in ("rename", "unlink", "mkdir", "rmdir", "link", "symlink", "chmod", "utime", "mkfifo"):
    setattr(os, name, dying(getattr(os, name)))
stage.MOVES = __import__("json").loads(sys.argv[3])
sys.exit(stage.main(["out"]))
"""


def test_killed_at_every_step_of_bringing_back_the_next_command_ends_it(tmp_path: Path, home: Path) -> None:
    expected = changed(tmp_path, home)
    original, moves = tmp_path / "original", [[str(home), str(tmp_path / "there/data"), True, True, True]]
    stage.copy(str(home), str(original))
    path = script(tmp_path, folder(home, tmp_path))
    for number in range(1, 200):
        stage.remove(str(home))
        stage.copy(str(original), str(home))
        stage.remove(str(tmp_path / "there"))
        assert staged(path, "in").returncode == 0
        subprocess.run([sys.executable, "-c", CHANGES], cwd=home, check=True)
        words = [
            sys.executable,
            "-c",
            KILLER,
            str(number),
            str(Path(stage.__file__).parent),
            json.dumps(moves),
        ]
        killed = subprocess.run(words, capture_output=True, check=False).returncode
        if killed == -signal.SIGKILL:
            assert staged(path, "out").returncode == 0
        assert without_times(state(home)) == expected, number
        if killed == 0:
            assert number > 20  # it was killed at so many steps
            return
    pytest.fail("it never came to its end")


@needs_mounts
@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small file system, which needs root")
def test_a_full_home_keeps_the_copies_until_there_is_room(tmp_path: Path) -> None:
    """A home of 1 MiB with 600 KiB of data, whose new content of 600 KiB does not fit beside the old one."""
    home = tmp_path / "small"
    home.mkdir()
    path = script(tmp_path, Move(str(home / "data"), str(tmp_path / "there/data"), True, True, True))
    words = f"""set -e
        mount -t tmpfs -o size=1M none {home}
        mkdir {home}/data; head -c 600000 /dev/zero >{home}/data/old
        {sys.executable} {path} run -- sh -c 'head -c 600000 /dev/urandom >{home}/data/old' && exit 9
        test $(tr -d '\\0' <{home}/data/old | wc -c) = 0
        mount -o remount,size=4M {home}
        {sys.executable} {path} out
        test $(tr -d '\\0' <{home}/data/old | wc -c) -gt 500000
        """
    done = subprocess.run(["unshare", "-m", "sh", "-c", words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "nothing is lost" in done.stderr


def test_a_place_without_room_is_refused(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = os.statvfs(tmp_path)
    monkeypatch.setattr(os, "statvfs", lambda _path: os.statvfs_result([*full[:4], 0, *full[5:]]))
    with pytest.raises(stage.Problem, match="do not fit"):
        stage.copy_in(str(home), str(tmp_path / "there"), True, True)
    assert not (tmp_path / "there").exists()


def test_a_write_through_a_mapping_is_seen_in_memory() -> None:
    """tmpfs does not record the time of such a write; contents tell."""
    if not stage.in_memory("/dev/shm"):
        pytest.skip("/dev/shm is no memory file system")
    import mmap  # noqa: PLC0415
    import tempfile  # noqa: PLC0415

    with tempfile.TemporaryDirectory(dir="/dev/shm") as place:
        file = Path(place) / "mapped"
        file.write_bytes(bytes(8192))
        before = stage.scan(place, digests=True)
        with file.open("r+b") as opened, mmap.mmap(opened.fileno(), 0) as mapped:
            mapped[100] = 1
        assert stage.changed(before, stage.scan(place, digests=True)) == {"mapped"}


@pytest.mark.parametrize(
    ("moves", "words"),
    [
        ([("/a", "/s/a", True), ("/a/b", "/s/elsewhere", False)], "its folder"),
        ([("/a", "/a/b", True)], "lies below a file or folder that is to be moved"),
        ([("/a", "/s/x", False), ("/b", "/s/x", False)], "are both to go"),
        ([("a", "/s/x", False)], "not an absolute path"),
    ],
)
def test_moves_that_could_not_be_undone(moves: list[tuple[str, str, bool]], words: str) -> None:
    with pytest.raises(UserError, match=words):
        staging_script([Move(home, place, folder, True, True) for home, place, folder in moves])


def test_a_file_of_a_moved_folder_needs_no_move_of_its_own() -> None:
    text = staging_script(
        [Move("/a", "/s/a", True, False, False), Move("/a/b", "/s/a/b", False, True, False)]
    )
    assert "MOVES: list[Any] = [['/a', '/s/a', True, True, False]]" in text


def test_the_usage() -> None:
    done = subprocess.run([sys.executable, stage.__file__], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "stage.py run" in done.stderr
