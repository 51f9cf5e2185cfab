"""The staging script on real files: what it keeps, what it refuses, and what is left after it is killed."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from tiercel.errors import UserError
from tiercel.placement.staging import Move, staging_script

#: Hostile in every way that a file system allows: quotes, a command, a newline at the end, not UTF-8.
NAMES = ["plain", "-rf", "sp ace", "qu'o\"te", "$(touch pwned)`x`", "line\nbreak\n", os.fsdecode(b"\xff\xfe")]
MARKS = (".tiercel-home", ".tiercel-part", ".tiercel-new", ".tiercel-begun", ".tiercel-linked")


def written(tmp_path: Path, moves: list[Move]) -> Path:
    path = tmp_path / "stage.sh"
    path.write_text(staging_script(moves), encoding="utf-8", errors="surrogateescape")
    return path


def stage(
    tmp_path: Path, moves: list[Move], verb: str, **options: object
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", str(written(tmp_path, moves)), verb], cwd="/", capture_output=True, text=True, check=False,
        **options,  # type: ignore[call-overload]
    )  # fmt: skip


def staged(tmp_path: Path, moves: list[Move], verb: str) -> None:
    done = stage(tmp_path, moves, verb)
    assert done.returncode == 0, done.stderr


def state(folder: Path) -> dict[str, object]:
    """Return all that a program could see of a folder: types, modes, times, contents, links, hard links."""
    found: dict[str, object] = {}
    inodes: dict[int, str] = {}
    for path in sorted([folder, *folder.rglob("*")]):
        name = os.fsencode(path.relative_to(folder)).decode("latin-1")
        facts = path.lstat()
        entry: list[object] = [stat.filemode(facts.st_mode), facts.st_uid]
        if stat.S_ISLNK(facts.st_mode):
            entry.append(os.readlink(path))  # noqa: PTH115 -- as it stands
        elif stat.S_ISREG(facts.st_mode):
            first = inodes.setdefault(facts.st_ino, name)
            entry += [facts.st_mtime_ns, path.read_bytes(), first]
        else:
            entry.append(facts.st_mtime_ns)
        found[name] = entry
    return found


def no_marks(*folders: Path) -> None:
    for folder in folders:
        assert not [p for p in folder.rglob("*") if p.name.endswith(MARKS)]


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
    (folder / "sealed").mkdir()
    (folder / "sealed" / "kept").write_text("kept")
    (folder / "plain").chmod(0o640)
    with (folder / "sparse").open("wb") as file:
        file.truncate(8 << 20)
    for number, path in enumerate(sorted(folder.rglob("*"))):
        os.utime(path, ns=(10**18 + number, 10**18 + number), follow_symlinks=False)
    (folder / "sealed").chmod(0o555)
    os.utime(folder, ns=(10**18, 10**18))
    return folder


def folder_move(tmp_path: Path, home: Path, brings_out: bool = True) -> Move:
    return Move(str(home), str(tmp_path / "fast" / "placed" / "data"), True, True, brings_out)


def test_a_folder_comes_back_as_it_went(tmp_path: Path, home: Path) -> None:
    before = state(home)
    moves = [folder_move(tmp_path, home)]
    staged(tmp_path, moves, "in")
    place = Path(moves[0].place)
    assert home.is_symlink()
    assert home.resolve() == place
    assert state(place) == before
    assert (place / "sparse").stat().st_blocks * 512 < 1 << 20  # 8 MiB of nothing
    staged(tmp_path, moves, "out")
    assert not home.is_symlink()
    assert state(home) == before
    assert not place.exists()
    no_marks(tmp_path)


def test_what_the_program_did_in_a_folder_is_what_comes_back(tmp_path: Path, home: Path) -> None:
    moves = [folder_move(tmp_path, home)]
    staged(tmp_path, moves, "in")
    (home / "plain").unlink()  # a removed file stays removed
    (home / "new.part").write_text("new")
    (home / "new.part").rename(home / "new")  # a temporary that is renamed
    os.close(os.open(home / "only-once", os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    (home / "made").mkdir()
    after = state(Path(moves[0].place))
    staged(tmp_path, moves, "out")
    assert state(home) == after
    assert not (home / "plain").exists()
    no_marks(tmp_path)


def test_a_folder_that_nothing_comes_out_of_is_put_back(tmp_path: Path, home: Path) -> None:
    before, inode = state(home), home.stat().st_ino
    moves = [folder_move(tmp_path, home, brings_out=False)]
    staged(tmp_path, moves, "in")
    sorted(home.rglob("*"))  # reading changes nothing
    staged(tmp_path, moves, "out")
    assert state(home) == before and home.stat().st_ino == inode  # not copied
    no_marks(tmp_path)


@pytest.mark.parametrize("how", ["new file", "old time", "removed"])
def test_a_folder_that_was_changed_all_the_same_comes_out(tmp_path: Path, home: Path, how: str) -> None:
    """The plan follows one run; another run of the program may write."""
    moves = [folder_move(tmp_path, home, brings_out=False)]
    file = home / "late"
    file.write_text("before")
    staged(tmp_path, moves, "in")
    if how == "removed":
        file.unlink()
    else:
        (home / "result" if how == "new file" else file).write_text("after")
    if how == "old time":
        os.utime(file, (1, 1))
    wanted = {k: v for k, v in state(home.resolve()).items() if k != "."}
    staged(tmp_path, moves, "out")
    assert {k: v for k, v in state(home).items() if k != "."} == wanted and not home.is_symlink()
    no_marks(tmp_path)


def test_a_file_with_an_old_time_comes_out_too(tmp_path: Path) -> None:
    file = tmp_path / "home" / "input"
    file.parent.mkdir()
    file.write_text("before")
    moves = [Move(str(file), str(tmp_path / "fast" / "input"), False, True, False)]
    staged(tmp_path, moves, "in")
    file.write_text("after")
    os.utime(file, (1, 1))
    staged(tmp_path, moves, "out")
    assert file.read_text() == "after"
    no_marks(tmp_path)


def test_two_at_once_take_turns(tmp_path: Path, home: Path) -> None:
    """As the tasks of a job array do. Without a lock one of 25 lost everything."""
    before = state(home)
    moves = [folder_move(tmp_path, home)]
    script = written(tmp_path, moves)
    for verbs in (("in", "in", "in"), ("out", "out"), ("in", "out"), ("out",)):
        running = [
            subprocess.Popen(["sh", str(script), verb], cwd="/", stderr=subprocess.PIPE, text=True)
            for verb in verbs
        ]
        said = [process.communicate(timeout=60)[1] for process in running]
        # `in` and `out` at once may refuse, in a sentence.
        assert all(p.returncode == 0 for p in running) or verbs == ("in", "out"), said
        assert state(home.resolve()) == before
    assert not home.is_symlink()
    no_marks(tmp_path)
    assert not list(tmp_path.rglob(".tiercel-staging*"))


def test_a_lock_of_a_killed_script_is_taken(tmp_path: Path, home: Path) -> None:
    dead = subprocess.Popen(["true"])
    dead.wait()
    (home.parent / ".tiercel-staging").symlink_to(f"{dead.pid}@{os.uname().nodename}")
    staged(tmp_path, [folder_move(tmp_path, home)], "in")
    assert home.is_symlink() and not (home.parent / ".tiercel-staging").is_symlink()


def test_a_link_that_the_program_replaces_leaves_what_was_behind_it_whole(tmp_path: Path) -> None:
    store, link = tmp_path / "store", tmp_path / "data"
    store.mkdir()
    (store / "x").write_text("before")
    link.symlink_to(store)
    moves = [Move(str(link), str(tmp_path / "fast" / "data"), True, True, True)]
    staged(tmp_path, moves, "in")
    (link / "x").write_text("after")
    link.unlink()
    link.mkdir()
    (link / "mine").write_text("new")
    staged(tmp_path, moves, "out")
    assert not store.is_symlink() and (store / "x").read_text() == "after"
    assert (link / "mine").read_text() == "new"
    no_marks(tmp_path)


def test_a_file_that_is_open_for_writing_is_not_left_behind(tmp_path: Path, home: Path) -> None:
    code = "import sys; f = open(sys.argv[1], 'a'); print(flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(home / "log")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as writer:
        assert writer.stdout is not None and writer.stdin is not None
        writer.stdout.readline()
        refused(tmp_path, [folder_move(tmp_path, home)], "in", f"process {writer.pid} has files open in it")
        writer.stdin.close()


def test_a_relative_link_out_of_a_folder_is_refused(tmp_path: Path, home: Path) -> None:
    (home / "sub").mkdir(exist_ok=True)
    (home / "sub" / "inside").symlink_to("../plain")  # stays in the folder
    staged(tmp_path, [folder_move(tmp_path, home)], "in")
    staged(tmp_path, [folder_move(tmp_path, home)], "out")
    (home / "sub" / "outside").symlink_to("../../conf")
    refused(tmp_path, [folder_move(tmp_path, home)], "in", "sub/outside: leads out of")


def test_an_unmounted_storage_is_refused(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.path.ismount", lambda _path: True)  # as it was when the plan was made
    script = tmp_path / "stage.sh"
    script.write_text(staging_script([folder_move(tmp_path, home)], ["/", "/proc", str(tmp_path / "gone")]),
                      encoding="utf-8", errors="surrogateescape")  # fmt: skip
    for verb in ("in", "out"):
        done = subprocess.run(["sh", str(script), verb], cwd="/", capture_output=True, text=True, check=False)
        assert done.returncode == 1 and "gone: is not mounted; nothing was touched" in done.stderr
    assert not home.is_symlink()


def test_a_folder_of_temporary_files_starts_empty(tmp_path: Path, home: Path) -> None:
    before = state(home)
    moves = [Move(str(home), str(tmp_path / "fast" / "d"), True, False, False)]
    staged(tmp_path, moves, "in")
    assert list(home.iterdir()) == []
    staged(tmp_path, moves, "out")
    assert state(home) == before


def test_a_folder_that_is_not_there_yet_is_made(tmp_path: Path) -> None:
    moves = [Move(str(tmp_path / "h" / "out"), str(tmp_path / "fast" / "out"), True, False, True)]
    staged(tmp_path, moves, "in")
    (tmp_path / "h" / "out" / "result").write_text("42")
    staged(tmp_path, moves, "out")
    assert (tmp_path / "h" / "out" / "result").read_text() == "42"
    assert not (tmp_path / "h" / "out").is_symlink()
    mask = os.umask(0o022)
    os.umask(mask)
    assert stat.S_IMODE((tmp_path / "h" / "out").stat().st_mode) == 0o777 & ~mask


@pytest.mark.parametrize("name", NAMES)
def test_hostile_names_of_folders_and_files(tmp_path: Path, name: str) -> None:
    folder, file = tmp_path / "home" / name, tmp_path / "home" / (name + "f")
    folder.mkdir(parents=True)
    (folder / name).write_text("in folder")
    file.write_text("file")
    moves = [
        Move(str(folder), str(tmp_path / "fast" / name), True, True, True),
        Move(str(file), str(tmp_path / "fast" / (name + "f")), False, True, True),
    ]
    for _ in range(2):  # again changes nothing
        staged(tmp_path, moves, "in")
    assert str((folder / name).resolve()) == f"{tmp_path}/fast/{name}/{name}"
    assert file.is_symlink()
    file.write_text("changed")
    (folder / name).unlink()
    for _ in range(2):
        staged(tmp_path, moves, "out")
    assert file.read_text() == "changed"
    assert list(folder.iterdir()) == []
    assert not list((tmp_path / "fast").iterdir())
    assert not list(tmp_path.rglob("pwned"))
    assert not Path("/pwned").exists()


# -- what is refused, before anything is touched ----------------------------------------------------------


def refused(tmp_path: Path, moves: list[Move], verb: str, words: str, **options: object) -> None:
    before = state(tmp_path / "home")
    done = stage(tmp_path, moves, verb, **options)
    assert done.returncode == 1
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert state(tmp_path / "home") == before


def test_a_working_folder_is_not_moved(tmp_path: Path, home: Path) -> None:
    with subprocess.Popen(["sleep", "60"], cwd=home / "deep") as sleeper:
        try:
            refused(
                tmp_path, [folder_move(tmp_path, home)], "in", f"the working folder of process {sleeper.pid}"
            )
        finally:
            sleeper.kill()


def test_a_target_that_is_somebody_elses_stays(tmp_path: Path, home: Path) -> None:
    move = folder_move(tmp_path, home)
    Path(move.place).mkdir(parents=True)
    (Path(move.place) / "theirs").write_text("theirs")
    refused(tmp_path, [move], "in", "is there already, and is not of this script")
    staged(tmp_path, [move], "out")  # nothing was staged, so nothing is removed
    assert (Path(move.place) / "theirs").read_text() == "theirs"


def test_a_copy_left_from_another_staging_is_not_overwritten(tmp_path: Path, home: Path) -> None:
    home.with_name("data.tiercel-home").mkdir()
    refused(tmp_path, [folder_move(tmp_path, home)], "in", "is left from another staging")


def test_a_folder_is_not_a_file(tmp_path: Path, home: Path) -> None:
    move = Move(str(home), str(tmp_path / "fast" / "data"), False, True, True)
    refused(tmp_path, [move], "in", "is a folder")
    move = Move(str(home / "plain"), str(tmp_path / "fast" / "plain"), True, True, True)
    refused(tmp_path, [move], "in", "is not a folder")


def test_what_another_plan_has_staged_is_left_to_it(tmp_path: Path, home: Path) -> None:
    one = Move(str(home), str(tmp_path / "one" / "data"), True, True, True)
    staged(tmp_path, [one], "in")
    refused(
        tmp_path,
        [Move(str(home), str(tmp_path / "two" / "data"), True, True, True)],
        "in",
        "another plan has staged it",
    )
    staged(tmp_path, [one], "out")


def in_namespace(words: str) -> list[str]:
    """Return a command that runs `words` in a mount namespace of its own, or skips the test."""
    command = ["unshare", "--mount", "--", "sh", "-c"]
    try:
        able = subprocess.run([*command, "mount -t tmpfs none /mnt"], capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip("unshare is not installed")
    if able.returncode:
        pytest.skip("this user may not mount")
    return [*command, words]


@pytest.mark.parametrize("below", ["", "/deep"])
def test_a_mount_point_is_not_moved_nor_what_holds_one(tmp_path: Path, home: Path, below: str) -> None:
    script = written(tmp_path, [folder_move(tmp_path, home)])
    command = in_namespace(f"mount -t tmpfs none {home}{below} && touch {home}{below}/x && sh {script} in")
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")
    assert done.returncode == 1
    assert "is or holds a mount point" in done.stderr
    assert not home.is_symlink()
    assert not Path(folder_move(tmp_path, home).place).exists()


def test_a_target_without_room_and_a_home_that_is_read_only(tmp_path: Path, home: Path) -> None:
    (home / "large").write_bytes(bytes(2 << 20))
    (tmp_path / "fast").mkdir()
    script = written(tmp_path, [folder_move(tmp_path, home)])
    command = in_namespace(
        f"mount -t tmpfs -o size=1m none {tmp_path}/fast && sh {script} in; "
        f"umount {tmp_path}/fast && mount --bind {tmp_path}/home {tmp_path}/home && "
        f"mount -o remount,bind,ro {tmp_path}/home && sh {script} in"
    )
    before = state(home)
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")
    first, second = done.stderr.splitlines()
    assert "no room for 2" in first
    assert "nothing was touched" in first
    assert second.endswith("home: cannot be written to")
    assert state(home) == before
    assert list((tmp_path / "fast").iterdir()) == []


def cleared(folder: Path) -> None:
    """Remove a folder as a restart does: whatever the modes of what is in it."""
    for below in [folder, *(p for p in folder.rglob("*") if p.is_dir() and not p.is_symlink())]:
        below.chmod(0o700)
    shutil.rmtree(folder)


def test_memory_that_a_restart_cleared(tmp_path: Path, home: Path) -> None:
    before = state(home)
    moves = [folder_move(tmp_path, home)]
    staged(tmp_path, moves, "in")
    cleared(tmp_path / "fast")
    staged(tmp_path, moves, "in")  # copied again
    assert state(home.resolve()) == before
    cleared(tmp_path / "fast")
    done = stage(tmp_path, moves, "out")
    assert done.returncode == 1
    assert "its copy is gone" in done.stderr
    assert state(home) == before


@pytest.mark.parametrize(
    ("moves", "words"),
    [
        ([("/d", "/f/d", True), ("/d/x", "/g/x", False)], "cannot go to /g/x: its folder /d goes to /f/d"),
        ([("/d", "/f/d", True), ("/d/e", "/g/e", True)], "/d/e cannot go to /g/e"),
        ([("/d", "/d/e", True)], "/d/e: lies below a file or folder that is to be moved"),
        ([("/d", "/f", True), ("/f/x", "/g/x", False)], "/f/x: lies where a file or folder is"),
        ([("/d", "/f", True), ("/d", "/g", True)], "/d: is to go to /f and to /g"),
        ([("/d", "/f", True), ("/e", "/f", True)], "are both to go to /f"),
        ([("/d/../e", "/f", True)], "not an absolute path"),
        ([("/", "/f", True)], "not an absolute path"),
        ([("d", "/f", True)], "not an absolute path"),
    ],
)  # fmt: skip
def test_moves_that_could_not_be_undone(moves: list[tuple[str, str, bool]], words: str) -> None:
    with pytest.raises(UserError, match=words):
        staging_script([Move(home, place, folder, True, True) for home, place, folder in moves])


def test_a_file_of_a_moved_folder_needs_no_move_of_its_own(tmp_path: Path, home: Path) -> None:
    folder = folder_move(tmp_path, home, brings_out=False)
    file = Move(f"{home}//plain", f"{folder.place}/plain", False, True, True)
    staged(tmp_path, [file, folder], "in")
    assert not (home / "plain").is_symlink()
    (home / "plain").write_text("result")  # which comes out, so the folder does
    staged(tmp_path, [file, folder], "out")
    assert (home / "plain").read_text() == "result"


# -- links ------------------------------------------------------------------------------------------------


def test_links_in_the_path_and_the_path_itself_a_link(tmp_path: Path, home: Path) -> None:
    before = state(home)
    (tmp_path / "way").symlink_to(home.parent)
    (tmp_path / "name").symlink_to("way/data")
    moves = [Move(str(tmp_path / "name"), str(tmp_path / "fast" / "data"), True, True, True)]
    staged(tmp_path, moves, "in")
    assert home.resolve() == tmp_path / "fast" / "data"
    assert state(home.resolve()) == before
    staged(tmp_path, moves, "out")
    assert state(home) == before
    assert (tmp_path / "name").readlink() == Path("way/data")
    no_marks(tmp_path)


@pytest.mark.parametrize("folder", [False, True])
def test_a_link_that_the_program_renamed_takes_its_content_along(tmp_path: Path, folder: bool) -> None:
    thing = tmp_path / "home" / "log"
    thing.parent.mkdir()
    inside = thing / "x" if folder else thing
    inside.parent.mkdir(exist_ok=True)
    inside.write_text("old")
    moves = [Move(str(thing), str(tmp_path / "fast" / "log"), folder, True, True)]
    staged(tmp_path, moves, "in")
    inside.write_text("more")
    thing.rename(thing.with_name("log.1"))
    staged(tmp_path, moves, "out")
    moved = thing.with_name("log.1")
    assert not moved.is_symlink()
    assert (moved / "x" if folder else moved).read_text() == "more"
    assert not thing.exists()
    no_marks(tmp_path)


def test_a_file_that_the_program_removed_is_not_put_back_but_not_lost_either(tmp_path: Path) -> None:
    file = tmp_path / "home" / "input"
    file.parent.mkdir()
    file.write_text("input")
    moves = [Move(str(file), str(tmp_path / "fast" / "input"), False, True, False)]
    staged(tmp_path, moves, "in")
    file.unlink()
    done = stage(tmp_path, moves, "out")
    assert done.returncode == 0
    # The link may as well have been renamed to a folder where nobody looks.
    assert "what lay behind it is in" in done.stderr
    assert [p.name for p in file.parent.iterdir()] == ["input.tiercel-left"]
    assert file.with_name("input.tiercel-left").read_text() == "input"


@pytest.mark.parametrize("changed", [True, False])
def test_an_input_that_the_program_changed_all_the_same_comes_out(tmp_path: Path, changed: bool) -> None:
    file, place = tmp_path / "home" / "input", tmp_path / "fast" / "input"
    file.parent.mkdir()
    file.write_text("input")
    inode = file.stat().st_ino
    moves = [Move(str(file), str(place), False, True, False)]
    staged(tmp_path, moves, "in")
    if changed:
        file.write_text("other")
    staged(tmp_path, moves, "out")
    assert file.read_text() == ("other" if changed else "input")
    assert (file.stat().st_ino == inode) is not changed  # what did not change is not copied again
    no_marks(tmp_path)


def test_a_temporary_file_that_the_program_removed_is_gone(tmp_path: Path) -> None:
    moves = [Move(str(tmp_path / "home" / "t"), str(tmp_path / "fast" / "t"), False, False, False)]
    staged(tmp_path, moves, "in")
    (tmp_path / "home" / "t").write_text("temporary")
    (tmp_path / "home" / "t").unlink()
    staged(tmp_path, moves, "out")
    assert list((tmp_path / "home").iterdir()) == []
    assert list((tmp_path / "fast").iterdir()) == []


# -- killed at any point ----------------------------------------------------------------------------------

#: Stands in for a command that changes files; the Nth of them all kills the script before, after, or in it.
SHIM = """\
#!/bin/sh
n=$(($(cat "$SHIM/count") + 1)); echo $n >"$SHIM/count"
if [ $n = "$KILL_AT" ]; then
    case $KILL_HOW in
    before) ;;
    after) PATH=$REAL {name} "$@" ;;
    within) for last in "$@"; do :; done
        case {name} in
        cp) if [ -d "$3" ]; then PATH=$REAL mkdir "$last"; last=$last/plain; fi; echo ha >"$last" ;;
        rm) if [ -d "$last" ] && [ ! -L "$last" ]; then PATH=$REAL rm -rf "$last/plain" "$last/x"; fi ;;
        esac ;;
    esac
    kill -9 $PPID
    sleep 0.02
    exit 1
fi
PATH=$REAL exec {name} "$@"
"""


@pytest.fixture
def killing(tmp_path: Path) -> Callable[[list[Move], str, int, str], bool]:
    """Run the script and kill it at its Nth change; False when it had fewer."""
    shims = tmp_path / "shims"
    shims.mkdir()
    for name in ("cp", "mv", "rm", "ln", "mkdir"):
        (shims / name).write_text(SHIM.replace("{name}", name))
        (shims / name).chmod(0o755)

    def run(moves: list[Move], verb: str, at: int, how: str) -> bool:
        (shims / "count").write_text("0\n")
        done = stage(
            tmp_path,
            moves,
            verb,
            env={
                **os.environ,
                "PATH": f"{shims}:{os.environ['PATH']}",
                "REAL": os.environ["PATH"],
                "SHIM": str(shims),
                "KILL_AT": str(at),
                "KILL_HOW": how,
            },
        )
        assert done.returncode in (0, -signal.SIGKILL), done.stderr
        return done.returncode != 0

    return run


#: How it is killed, and whether results come out.
KILLS = [(how, out) for how in ("before", "within", "after") for out in (True, False)]


@pytest.mark.nightly
@pytest.mark.parametrize(("how", "brings_out"), KILLS)
def test_killed_at_every_point_nothing_is_lost_and_again_completes_it(
    tmp_path: Path, killing: Callable[[list[Move], str, int, str], bool], how: str, brings_out: bool
) -> None:
    killed_at(tmp_path, killing, how, brings_out, first=1, step=1)


@pytest.mark.parametrize(("how", "brings_out"), KILLS)
def test_killed_at_some_points_nothing_is_lost_and_again_completes_it(
    tmp_path: Path, killing: Callable[[list[Move], str, int, str], bool], how: str, brings_out: bool
) -> None:
    """Each way begins at another point, so that all together come by half of them."""
    first = 1 + 2 * KILLS.index((how, brings_out))
    killed_at(tmp_path, killing, how, brings_out, first, step=2 * len(KILLS))


def killed_at(
    tmp_path: Path,
    killing: Callable[[list[Move], str, int, str], bool],
    how: str,
    brings_out: bool,
    first: int,
    step: int,
) -> None:
    folder, file, late = (tmp_path / "home" / n for n in ("folder", "file", "late"))
    moves = [
        Move(str(folder), str(tmp_path / "fast" / "folder"), True, True, brings_out),
        Move(str(file), str(tmp_path / "fast" / "file"), False, True, brings_out),
        Move(str(late), str(tmp_path / "fast" / "late"), False, False, brings_out),
    ]
    for verb, other in (("in", "in"), ("in", "out"), ("out", "out"), ("out", "in")):
        kills = 0
        for at in count(first, step):
            shutil.rmtree(tmp_path / "home", ignore_errors=True)
            folder.mkdir(parents=True)
            (folder / "plain").write_text("before")
            (folder / "sub").mkdir()
            file.write_text("before")
            expected = {"plain": "before", "file": "before"}
            if verb == "out":
                staged(tmp_path, moves, "in")
                (folder / "plain").write_text("after")
                file.write_text("after")
                late.write_text("after")
                # What changed comes out whatever was expected of it.
                expected = {"plain": "after", "file": "after", "late": "after"}
            killed = killing(moves, verb, at, how)
            # Whatever was the state, each content is still there in full somewhere.
            everything = [
                p.read_text() for p in [*(tmp_path / "home").rglob("*"), *(tmp_path / "fast").rglob("*")]
                if p.is_file()
            ]  # fmt: skip
            assert expected["plain"] in everything
            assert expected["file"] in everything
            staged(tmp_path, moves, other)
            if other == "in":
                assert folder.is_symlink()
                assert file.is_symlink()
                assert (folder / "plain").read_text() == expected["plain"]
                assert file.read_text() == expected["file"]
                staged(tmp_path, moves, "out")
            assert not folder.is_symlink()
            assert (folder / "plain").read_text() == expected["plain"]
            assert (folder / "sub").is_dir()
            assert file.read_text() == expected["file"]
            assert late.exists() == ("late" in expected)
            no_marks(tmp_path)
            assert list((tmp_path / "fast").iterdir()) == []
            if not killed:
                break
            kills += 1
        assert kills > 0


def test_killed_at_random_times(tmp_path: Path) -> None:
    """Without a hand on the commands: kills that hit real copies in their middle."""
    folder = tmp_path / "home" / "many"
    folder.mkdir(parents=True)
    for number in range(200):
        (folder / str(number)).write_bytes(os.urandom(20_000))
    before = state(folder)
    moves = [Move(str(folder), str(tmp_path / "fast" / "many"), True, True, True)]
    script = written(tmp_path, moves)
    interrupted = 0
    for turn in range(24):
        verb = "in" if turn % 2 == 0 else "out"
        for delay in (0.01 + 0.004 * (turn % 12), None):
            with subprocess.Popen(["sh", str(script), verb], cwd="/", start_new_session=True) as process:
                try:
                    assert process.wait(delay) == 0
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL)
                    interrupted += 1
        assert state(folder.resolve()) == before
        assert folder.is_symlink() == (verb == "in")
    assert interrupted > 0
    no_marks(tmp_path)


# -- real programs ----------------------------------------------------------------------------------------


def git_program(folder: Path) -> None:
    environment = {
        **os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null",
        "GIT_AUTHOR_DATE": "1700000000 +0000", "GIT_COMMITTER_DATE": "1700000000 +0000", "TZ": "UTC",
        "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b",
        "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b",
    }  # fmt: skip
    for words in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "all"], ["gc", "-q"]):
        subprocess.run(["git", "-C", str(folder), *words], check=True, env=environment)
    # It notes when and on which inode it saw each file.
    (folder / ".git" / "index").unlink()


def sqlite_program(folder: Path) -> None:
    with sqlite3.connect(folder / "table.db") as base:  # a journal beside it, made and removed each time
        for number in range(5):
            base.execute("CREATE TABLE IF NOT EXISTS t (n)")
            base.execute("INSERT INTO t VALUES (?)", (number,))
            base.commit()
    base.close()


def tar_program(folder: Path) -> None:
    subprocess.run(
        ["tar", "-cf", str(folder / "all.tar"), "-C", str(folder), "--mtime=@0", "input.txt", "sub"],
        check=True,
    )
    (folder / "out").mkdir()
    subprocess.run(["tar", "-xf", str(folder / "all.tar"), "-C", str(folder / "out")], check=True)
    shutil.rmtree(folder / "sub")
    (folder / "all.tar").rename(folder / "done.tar")


@pytest.mark.parametrize("program", [git_program, sqlite_program, tar_program])
def test_a_program_in_a_staged_folder_leaves_what_it_leaves_without(
    tmp_path: Path, program: Callable[[Path], None]
) -> None:
    if program is not sqlite_program and shutil.which(program.__name__.partition("_")[0]) is None:
        pytest.skip("not installed")
    plain, moved = tmp_path / "plain" / "work", tmp_path / "home" / "work"
    for folder in (plain, moved):
        (folder / "sub").mkdir(parents=True)
        (folder / "input.txt").write_text("input")
        (folder / "sub" / "more.txt").write_text("more")
    moves = [Move(str(moved), str(tmp_path / "fast" / "work"), True, True, True)]
    program(plain)
    staged(tmp_path, moves, "in")
    program(moved)
    staged(tmp_path, moves, "out")
    contents = [
        {str(p.relative_to(f)): p.read_bytes() if p.is_file() else None for p in f.rglob("*")}
        for f in (plain, moved)
    ]
    assert contents[0] == contents[1]
    no_marks(tmp_path)


def test_the_usage() -> None:
    done = subprocess.run(["sh", "-s"], input=staging_script([]), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "usage: sh stage.sh in|out\n")
    assert sys.platform == "linux"
