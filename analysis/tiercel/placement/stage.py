"""Run a program with its files on another storage, and bring back what it changed.

    python3 stage.py run -- PROGRAM ARGUMENTS   copy in, run with the copies mounted over the originals,
    copy out
    python3 stage.py in                         copy in and leave links, for a program that is started
    elsewhere
    python3 stage.py out                        bring back what changed, remove copies and links
    python3 stage.py discard                    remove copies and links; what the program changed is thrown
    away

`run` needs mount namespaces. The originals stay untouched until the program has ended. A killed `out` is
finished by the next command. This file needs Python 3.8 and nothing else; tiercel's trials use the same code.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import hashlib
import json
import os
import shutil
import signal
import stat
import sys
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from types import FrameType
from typing import Any, Dict, List

#: Moves: home, place, folder?, contents in?, results out?
MOVES: list[Any] = []
MOUNTS: list[str] = []

_NEWNS, _NEWUSER = 0x00020000, 0x10000000
_BIND, _REC, _PRIVATE = 4096, 16384, 1 << 18
_SUBREAPER, _PDEATHSIG = 36, 1
_INCOMING, _HOME, _KEPT, _STATE = ".tiercel-incoming", ".tiercel-home", ".tiercel-kept", ".tiercel-stage"
_LIBC = ctypes.CDLL(None, use_errno=True)
#: Paths below a root, each with what tells whether it changed.
Scan = Dict[str, List[Any]]


class Problem(Exception):
    """Why nothing was done, in one line."""


# -- trees ---------------------------------------------------------------------------------------------------


def at(root: str, name: str) -> str:
    return f"{root}/{name}" if name else root


def scan(root: str, digests: bool = False) -> Scan:
    """Return every path below `root` (itself: "") with what tells whether it changed.

    `digests`: hash contents too. tmpfs does not record the time of a write through a mapping.
    """
    found: Scan = {}
    try:
        top = os.lstat(root)
    except FileNotFoundError:
        return found
    waiting = [("", top)]
    while waiting:
        name, seen = waiting.pop()
        if stat.S_ISDIR(seen.st_mode):
            if seen.st_dev != top.st_dev:
                raise Problem(f"{at(root, name)}: is a mount point, which is not copied")
            found[name] = [seen.st_mode, seen.st_uid, seen.st_gid, _attributes(at(root, name))]
            with os.scandir(at(root, name)) as entries:
                for entry in entries:
                    if not (name == "" and entry.name == _INCOMING):
                        below = f"{name}/{entry.name}" if name else entry.name
                        waiting.append((below, entry.stat(follow_symlinks=False)))
            continue
        found[name] = [seen.st_mode, seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns]
        if digests and stat.S_ISREG(seen.st_mode):
            found[name].append(digest(at(root, name)))
    return found


def _attributes(path: str) -> Dict[str, str]:
    """Return the extended attributes of a folder (an ACL is one), as hexadecimal digits."""
    with suppress(OSError):
        return {n: os.getxattr(path, n).hex() for n in sorted(os.listxattr(path))}
    return {}


def digest(path: str) -> str:
    found = hashlib.blake2b(digest_size=16)
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            found.update(block)
    return found.hexdigest()


def in_memory(path: str) -> bool:
    """Return whether a path lies on a memory file system."""
    buffer = (ctypes.c_long * 32)()
    _LIBC.statfs(os.fsencode(path), buffer)
    return int(buffer[0]) & 0xFFFFFFFF in (0x01021994, 0x858458F6)


def size_of(root: str) -> int:
    """Return the bytes that a copy needs."""
    total = 0
    for name, seen in scan(root).items():
        if stat.S_ISREG(seen[0]):
            facts = os.lstat(at(root, name))
            total += min(facts.st_blocks * 512, facts.st_size) + 4096
        else:
            total += 4096
    return total


def changed(before: Mapping[str, Any], now: Mapping[str, Any]) -> set[str]:
    """Return the paths that differ between two scans, with the other names of files that were written.

    FUSE file systems (bindfs) keep attributes for each name: after a write, the others look unchanged.
    """
    found = {name for name in before.keys() | now.keys() if before.get(name) != now.get(name)}
    written = {now[name][1] for name in found & now.keys() if len(now[name]) > 4}
    return found | {name for name, seen in now.items() if len(seen) > 4 and seen[1] in written}


def copy(source: str, target: str, stop_after: float | None = None) -> None:
    """Copy a file or a whole folder, with modes, times, owners, links, holes and attributes.

    `stop_after`: seconds after which TimeoutError is raised. Sockets are left out: nobody can copy them.
    """
    deadline = None if stop_after is None else time.monotonic() + stop_after
    links: dict[tuple[int, int], str] = {}
    folders = []
    for name, seen in sorted(scan(source).items()):
        if deadline is not None and time.monotonic() > deadline:
            raise TimeoutError
        if stat.S_ISDIR(seen[0]):
            os.mkdir(at(target, name), 0o700)
            folders.append(name)
        else:
            _copy_one(at(source, name), at(target, name), links, deadline)
    for name in reversed(folders):
        _copy_facts(at(source, name), at(target, name))


def _copy_one(
    source: str, target: str, links: dict[tuple[int, int], str], deadline: float | None = None
) -> None:
    """Copy one path that is no folder. `links`: names of files that have several, by inode."""
    facts = os.lstat(source)
    if facts.st_nlink > 1 and not stat.S_ISLNK(facts.st_mode):
        first = links.setdefault((facts.st_dev, facts.st_ino), target)
        if first != target:
            os.link(first, target)
            return
    if stat.S_ISLNK(facts.st_mode):
        os.symlink(os.readlink(source), target)
    elif stat.S_ISREG(facts.st_mode):
        _copy_bytes(source, target, facts, deadline)
    elif stat.S_ISFIFO(facts.st_mode):
        os.mkfifo(target)
    else:
        return
    _copy_facts(source, target)


def _copy_bytes(source: str, target: str, facts: os.stat_result, deadline: float | None) -> None:
    with open(source, "rb", 0) as reader, open(target, "xb", 0) as writer:
        size, here = facts.st_size, 0
        holes = facts.st_blocks * 512 < size
        while here < size:
            end = size
            if holes:
                try:
                    here = os.lseek(reader.fileno(), here, os.SEEK_DATA)
                    end = os.lseek(reader.fileno(), here, os.SEEK_HOLE)
                except OSError as error:
                    if error.errno == errno.ENXIO:  # only a hole is left
                        break
                    here, holes = 0, False
                    continue
            reader.seek(here)
            writer.seek(here)
            while here < end:
                block = reader.read(min(1 << 20, end - here))
                if not block:
                    size = end = here
                    break
                here += len(block)
                view = memoryview(block)
                while view:
                    view = view[writer.write(view) :]
                if deadline is not None and time.monotonic() > deadline:
                    raise TimeoutError
        writer.truncate(size)


def _copy_facts(source: str, target: str) -> None:
    facts = os.lstat(source)
    if os.geteuid() == 0 or facts.st_gid != os.lstat(target).st_gid:
        with suppress(OSError):
            os.chown(target, facts.st_uid, facts.st_gid, follow_symlinks=False)
    with suppress(OSError):  # attributes that the storage does not know
        shutil.copystat(source, target, follow_symlinks=False)
    if not stat.S_ISLNK(facts.st_mode):
        os.chmod(target, stat.S_IMODE(facts.st_mode))
        os.utime(target, ns=(facts.st_atime_ns, facts.st_mtime_ns))


def remove(path: str) -> None:
    """Remove a file or a folder with all that is in it, whatever its modes."""
    if os.path.isdir(path) and not os.path.islink(path):
        for place, folders, _ in os.walk(path):
            for folder in folders:
                if not os.path.islink(f"{place}/{folder}") and not os.access(
                    f"{place}/{folder}", os.W_OK | os.X_OK
                ):
                    os.chmod(f"{place}/{folder}", 0o700)
        os.chmod(path, 0o700)
        shutil.rmtree(path)
    else:
        with suppress(FileNotFoundError):
            os.unlink(path)


# -- bringing changes to a tree, in two steps
# ------------------------------------------------------------------


def apply(
    source: str,
    target: str,
    paths: Collection[str],
    known: Mapping[str, Any] | None = None,
    done: str = "",
) -> None:
    """Make `target` equal to `source` at `paths`. Killed, it is as before, or `finish` ends it.

    The new contents are copied next to the old, then a journal says what to do, then that is done. `known`: a
    scan of `target` from before; what somebody else changed since then is kept under another name. `done`: a
    file that is made when all is done.
    """
    incoming = _incoming(target)
    remove(incoming)
    os.mkdir(incoming, 0o700)
    puts: list[str] = []
    folders: list[str] = []
    facts: dict[str, list[object]] = {}
    links: dict[tuple[int, int], str] = {}
    gone = sorted((n for n in paths if not os.path.lexists(at(source, n))), reverse=True)
    for name in sorted(set(paths) - set(gone)):
        seen = os.lstat(at(source, name))
        if stat.S_ISDIR(seen.st_mode):
            folders.append(name)
            facts[name] = _facts(at(source, name))
        elif not stat.S_ISSOCK(seen.st_mode):
            _copy_one(at(source, name), f"{incoming}/{len(puts)}", links)
            puts.append(name)
    for name in [n for n in paths if n]:
        parent = name.rpartition("/")[0]
        if os.path.isdir(at(source, parent)):
            facts[parent] = _facts(at(source, parent))
    times = None if known is None else {n: _content(known[n]) for n in paths if len(known.get(n, ())) > 4}
    journal = {"gone": gone, "folders": folders, "puts": puts, "facts": facts, "known": times, "done": done}
    with open(f"{incoming}/journal.new", "w", encoding="ascii") as file:
        json.dump(journal, file)
    os.rename(f"{incoming}/journal.new", f"{incoming}/journal")
    finish(target)


def _content(seen: Sequence[Any]) -> list[Any]:
    """Return what of a scan tells of a file's content: size, time and, on tmpfs, digest."""
    return [*seen[2:4], *seen[5:]]


def _facts(folder: str) -> list[object]:
    seen = os.lstat(folder)
    times = [seen.st_atime_ns, seen.st_mtime_ns]
    return [seen.st_mode, seen.st_uid, seen.st_gid, *times, _attributes(folder)]


def _set_facts(folder: str, facts: Sequence[Any]) -> None:
    mode, uid, gid, accessed, modified, attributes = facts
    with suppress(OSError):
        os.chown(folder, uid, gid)
    os.chmod(folder, stat.S_IMODE(mode))
    for name, value in attributes.items():
        with suppress(OSError):  # the storage does not know it
            os.setxattr(folder, name, bytes.fromhex(value))
    os.utime(folder, ns=(accessed, modified))


def _incoming(target: str) -> str:
    if os.path.isdir(target) and not os.path.islink(target):
        return f"{target}/{_INCOMING}"
    folder, _, name = target.rpartition("/")
    return f"{folder}/.{name}{_INCOMING}"


def finish(target: str) -> None:
    """Do what the journal of `apply` says. Everything in it can be done twice."""
    incoming = _incoming(target)
    try:
        with open(f"{incoming}/journal", encoding="ascii") as file:
            journal = json.load(file)
    except FileNotFoundError:  # nothing was begun, or it was killed before anything was changed
        remove(incoming)
        return
    for name in journal["facts"]:
        if os.path.isdir(at(target, name)) and not os.access(at(target, name), os.W_OK | os.X_OK):
            os.chmod(at(target, name), 0o700)
    for name in journal["gone"]:
        with suppress(FileNotFoundError, NotADirectoryError):
            _clear(at(target, name), name, journal["known"])
    for name in journal["folders"]:
        if not os.path.isdir(at(target, name)) or os.path.islink(at(target, name)):
            with suppress(FileNotFoundError):
                _clear(at(target, name), name, journal["known"])
            os.mkdir(at(target, name), 0o700)
    for number, name in enumerate(journal["puts"]):
        if os.path.lexists(f"{incoming}/{number}"):
            with suppress(FileNotFoundError):
                _clear(at(target, name), name, journal["known"], replaced=True)
            os.rename(f"{incoming}/{number}", at(target, name))
    for name in sorted(journal["facts"], reverse=True):
        if os.path.isdir(at(target, name)):
            _set_facts(at(target, name), journal["facts"][name])
    if journal["done"]:
        with suppress(OSError):  # the copies are gone
            open(journal["done"], "w").close()
    top = os.stat(target) if os.path.isdir(target) else None
    remove(incoming)
    if top is not None:
        os.utime(target, ns=(top.st_atime_ns, top.st_mtime_ns))


def _clear(path: str, name: str, known: Mapping[str, Any] | None, replaced: bool = False) -> None:
    """Make room at `path`; what others changed or put there since is kept. `replaced`: a rename replaces a
    file."""
    seen = os.lstat(path)
    if stat.S_ISDIR(seen.st_mode):
        try:
            os.rmdir(path)
            return
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
    elif known is None or known.get(name) == _content(scan(path, in_memory(path))[""]):
        if not replaced:
            os.unlink(path)
        return
    number = 1
    while os.path.lexists(f"{path}{_KEPT}{number}"):
        number += 1
    os.rename(path, f"{path}{_KEPT}{number}")
    say(f"{path} was changed by something else meanwhile: that state is kept as {path}{_KEPT}{number}")


# -- a program with other folders in place of its own
# ----------------------------------------------------------


def enter(binds: Sequence[Sequence[str]]) -> None:
    """Give this process mounts of its own: each (source, target) of `binds` mounted over its target."""
    uid, gid = os.geteuid(), os.getegid()
    if _LIBC.unshare(_NEWNS if uid == 0 else _NEWNS | _NEWUSER):
        raise OSError(ctypes.get_errno(), "unshare")
    if uid != 0:
        for name, text in (
            ("setgroups", "deny"),
            ("uid_map", f"{uid} {uid} 1"),
            ("gid_map", f"{gid} {gid} 1"),
        ):
            with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
                file.write(text)
    _mount(b"none", "/", _REC | _PRIVATE)
    for source, target in binds:
        _mount(os.fsencode(source), target, _BIND | _REC)


def _mount(source: bytes, target: str, flags: int) -> None:
    if _LIBC.mount(source, os.fsencode(target), None, ctypes.c_ulong(flags), None):
        code = ctypes.get_errno()
        raise OSError(code, f"mount on {target}: {os.strerror(code)}")


def supervise(
    argv: Sequence[str],
    binds: Sequence[Sequence[str]] | None,
    cwd: str,
    end_left: bool = True,
    timeout: float | None = None,
    traced: bool = False,
) -> dict[str, Any]:
    """Run a program with `binds`; return its seconds, exit code, and the processes that it left.

    The seconds are from its first instruction to its end. `end_left`: kill what it leaves; else wait for it.
    """
    _LIBC.prctl(_SUBREAPER, 1)
    child, failed = _start(argv, binds, cwd, end_left)
    answer = {"failed": failed, "left": [], **_followed(child, timeout)}
    time.sleep(0.01)  # helpers that are just ending are not left behind
    if end_left:
        names = {name for name in map(_name, descendants()) if name and not (traced and name == "strace")}
        answer["left"] = sorted(names)
        end_all(spare="strace" if traced else "")
    else:
        with suppress(ChildProcessError):
            while True:
                os.wait()
    return answer


def _start(
    argv: Sequence[str], binds: Sequence[Sequence[str]] | None, cwd: str, dies: bool
) -> tuple[int, str]:
    """Start a program; return its number, and why it could not be started. `dies`: with this process."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.close(reader)
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
                signal.signal(number, signal.SIG_DFL)
            if dies:
                _LIBC.prctl(_PDEATHSIG, signal.SIGKILL)
            if binds is not None:
                enter(binds)
            os.chdir(cwd)
            os.set_inheritable(writer, False)
            os.execvp(argv[0], list(argv))
        except OSError as error:
            os.write(writer, (error.strerror or "it cannot be started").encode())
        finally:
            os._exit(127)
    os.close(writer)
    with open(reader, encoding="utf-8") as pipe:
        return child, pipe.read()


def _followed(child: int, timeout: float | None) -> dict[str, Any]:
    """Wait for a process, and collect others that end meanwhile; after `timeout` seconds kill all."""
    began = time.monotonic()
    while True:
        ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT | (os.WNOHANG if timeout else 0))
        elapsed = time.monotonic() - began
        if ended is None:
            waited = queued(child)
            if timeout and elapsed - waited > timeout:
                end_all()
                return {"seconds": elapsed, "queued": waited, "timed_out": True, "code": None}
            time.sleep(0.001)
        elif ended.si_pid != child:
            os.waitpid(ended.si_pid, 0)
        else:
            waited = queued(child)  # of a process that is not collected yet
            status = os.waitpid(child, 0)[1]
            code = os.waitstatus_to_exitcode(status)
            return {"seconds": elapsed, "queued": min(waited, elapsed), "timed_out": False, "code": code}


def queued(process: int | str = "self") -> float:
    """Return the seconds that a process waited for a processor (its main thread; schedstat), 0 where
    unknown."""
    with (
        suppress(OSError, ValueError, IndexError),
        open(f"/proc/{process}/schedstat", encoding="ascii") as file,
    ):
        return int(file.read().split()[1]) / 1e9
    return 0.0


def descendants(of: int | None = None) -> list[int]:
    """Return the processes below one (this one), by /proc."""
    of = os.getpid() if of is None else of
    parents: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with suppress(OSError, IndexError), open(f"/proc/{name}/stat", "rb") as file:
                words = file.read().rpartition(b")")[2].split()
                if words[0] != b"Z":
                    parents.setdefault(int(words[1]), []).append(int(name))
    found: list[int] = []
    waiting = [of]
    while waiting:
        below = parents.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def end_all(spare: str = "") -> None:
    """Kill every process below this one; `spare`: one of that name may end by itself first."""
    deadline = time.monotonic() + 3
    while True:
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        left = descendants()
        if not left:
            return
        for process in left:
            if not spare or _name(process) != spare or time.monotonic() > deadline:
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
        time.sleep(0.005)


def _name(process: int) -> str:
    try:
        with open(f"/proc/{process}/comm", encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""


# -- the commands
# ----------------------------------------------------------------------------------------------


def say(sentence: str) -> None:
    print(f"stage: {sentence}", file=sys.stderr)


def ours(home: str, place: str) -> bool:
    return os.path.islink(home) and os.readlink(home) == place


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """Hold the places; the program inherits the locks, so they outlive a killed script."""
    held = []
    try:
        for _, place, *_ in MOVES:
            os.makedirs(place + _STATE, 0o700, exist_ok=True)
            lock = os.open(f"{place}{_STATE}/lock", os.O_RDWR | os.O_CREAT, 0o600)
            held.append(lock)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                alone = os.fstat(lock).st_nlink == 1  # else another run has just ended and removed it
            except OSError as error:  # some storages have no locks
                alone = error.errno not in (errno.EWOULDBLOCK, errno.EACCES)
            if not alone:
                raise Problem(f"{place}: another run of this plan is under way; wait until it has ended")
            os.set_inheritable(lock, True)
        try:
            yield
        finally:
            for _, place, *_ in MOVES:
                if not os.path.lexists(state(place, "begun")):
                    with suppress(OSError):
                        os.unlink(state(place, "lock"))
                        os.rmdir(place + _STATE)
    finally:
        for lock in held:
            os.close(lock)


def check_mounts() -> None:
    for point in MOUNTS:
        if not os.path.ismount(point):
            raise Problem(f"{point}: is not mounted; nothing was touched")


def state(place: str, name: str) -> str:
    return f"{place}{_STATE}/{name}"


def recover() -> None:
    """End what a killed command began."""
    for home, place, *_ in MOVES:
        if not os.path.lexists(home) and os.path.lexists(home + _HOME):
            os.rename(home + _HOME, home)
        if not os.path.islink(home):
            finish(home)
        if os.path.lexists(place) and not os.path.exists(state(place, "begun")):
            raise Problem(f"{place}: is there already, and is not of this plan: move it away")
        if not os.path.exists(state(place, "started")) and not ours(home, place):
            clean(place)  # nothing ran there


def copy_in(
    home: str, place: str, folder: bool, brings_in: bool, stop_after: float | None = None
) -> tuple[Scan, Scan]:
    """Copy one home to its place; return the scans of both. Nothing is left of a copy that fails."""
    os.makedirs(os.path.dirname(place), exist_ok=True)
    known = scan(home, in_memory(home))
    needed = size_of(home) if brings_in and known else 0
    space = os.statvfs(os.path.dirname(place))
    if needed > space.f_bavail * space.f_frsize:
        raise Problem(
            f"{place}: {needed} bytes do not fit into the {space.f_bavail * space.f_frsize} that are free"
        )
    try:
        if brings_in and known:
            copy(home, place, stop_after)
        elif folder:
            os.mkdir(place)
            if known:
                _copy_facts(home, place)
    except BaseException:
        remove(place)
        raise
    return known, scan(place, in_memory(os.path.dirname(place)))


def users_of(root: str, linked: bool) -> str:
    """Return which other process uses a file or folder so that its changes could be lost; empty if none does.

    `linked`: programs will find a link there, so also this script's parents must not stand in it.
    """
    root = os.path.realpath(root)
    parents = set(map(str, ancestors()))
    for process in filter(str.isdigit, os.listdir("/proc")):
        who = f"process {process} ({_name(int(process))})"
        if (linked or process not in parents) and _inside(f"/proc/{process}/cwd", root):
            return f"is the working folder of {who}: leave it first"
        numbers: list[str] = []
        if process not in parents:
            with suppress(OSError):
                numbers = os.listdir(f"/proc/{process}/fd")
        for number in numbers:
            file = _inside(f"/proc/{process}/fd/{number}", root)
            if file and _writes(process, number):
                return f"{who} has {file} open for writing: let it end first"
    return ""


def ancestors() -> list[int]:
    """Return this process and those above it."""
    found = [os.getpid()]
    with suppress(OSError, IndexError, ValueError):
        while found[-1] > 1:
            with open(f"/proc/{found[-1]}/stat", "rb") as file:
                found.append(int(file.read().rpartition(b")")[2].split()[1]))
    return found


def _inside(link: str, root: str) -> str:
    """Return the path that a link of /proc leads to, if at or below `root`; empty for another mount."""
    with suppress(OSError):
        path = os.readlink(link)
        below = path == root or path.startswith(f"{root}/")
        if below and os.path.samestat(os.stat(link), os.stat(path)):
            return path
    return ""


def _writes(process: str, number: str) -> bool:
    with suppress(OSError), open(f"/proc/{process}/fdinfo/{number}", encoding="ascii") as file:
        for line in file:
            if line.startswith("flags:"):
                return int(line.split()[1], 8) & os.O_ACCMODE != os.O_RDONLY
    return False


def check_links(home: str) -> None:
    """Refuse a relative link that leads out of a folder: from the folder's new place it leads elsewhere."""
    for name, seen in scan(home).items():
        if name and stat.S_ISLNK(seen[0]):
            target = os.readlink(at(home, name))
            path = os.path.normpath(os.path.join(os.path.dirname(name), target))
            if not os.path.isabs(target) and path.split("/")[0] == "..":
                raise Problem(
                    f"{at(home, name)}: leads out of {home} by a relative path: make it absolute, "
                    "or use `run`"
                )


def started() -> bool:
    """Return whether all copies are made, so that a program may have changed them."""
    return all(os.path.exists(state(place, "started")) for _, place, *_ in MOVES)


def stage_in(linked: bool) -> None:
    """Copy in. `linked`: a link will stand in for each home, not a mount."""
    if started():
        where = MOVES[0][1] if MOVES else ""
        raise Problem(
            f"{where}: holds what an interrupted run left: `out` brings it back, `discard` removes it"
        )
    for home, *_ in MOVES:
        if problem := users_of(home, linked):
            raise Problem(f"{home}: {problem}")
        if linked:
            check_links(home)
    for home, place, *_ in MOVES:
        if not ours(home, place):
            clean(place)
    for home, place, folder, brings_in, brings_out in MOVES:
        remove(state(place, "brought"))
        open(state(place, "begun"), "w").close()
        known, copied = copy_in(home, place, folder, brings_in or brings_out or not folder)
        with open(state(place, "manifest"), "w", encoding="ascii") as file:
            json.dump({"home": known, "place": copied}, file)
    for _, place, *_ in MOVES:
        open(state(place, "started"), "w").close()


def stage_out() -> int:
    """Bring back what changed; return 1 where a copy is gone."""
    code = 0
    for home, place, *_ in MOVES:
        if ours(home, place) and (problem := users_of(place, linked=True)):
            raise Problem(f"{home}: {problem}")
    for home, place, folder, _, brings_out in MOVES:
        if ours(home, place):
            lost = not os.path.exists(state(place, "started"))
            os.unlink(home)
            if os.path.lexists(home + _HOME):
                os.rename(home + _HOME, home)
            if lost:
                say(f"{place} is gone (a restart?): {home} is as it was before the program")
                code = 1
                continue
        elif os.path.lexists(home + _HOME):
            raise Problem(f"{home}: the program replaced its link; compare it with {place} and {home}{_HOME}")
        if not os.path.exists(state(place, "started")):
            continue
        with open(state(place, "manifest"), encoding="ascii") as file:
            manifest = json.load(file)
        now = scan(place, in_memory(os.path.dirname(place)))
        if folder and "" not in now:
            raise Problem(f"{place}: the copy is gone; {home} is as it was. `discard` forgets the run")
        paths = changed(manifest["place"], now)
        if brings_out or (paths and not (folder and not manifest["place"].keys() - {""})):
            if folder and not os.path.isdir(home):
                os.makedirs(home)
            if paths and not os.path.exists(state(place, "brought")):
                apply(place, home, paths, manifest["home"], state(place, "brought"))
        clean(place)
    return code


def clean(place: str) -> None:
    remove(state(place, "started"))  # from here on the copies are not needed
    remove(place)
    for name in ("brought", "manifest", "begun"):
        remove(state(place, name))


def link() -> None:
    for home, place, *_ in MOVES:
        if ours(home, place):
            continue
        if os.path.lexists(home):
            os.rename(home, home + _HOME)
        os.makedirs(os.path.dirname(home), exist_ok=True)
        os.symlink(place, home)


def _pass_on(number: int, _frame: FrameType | None) -> None:
    for process in descendants():
        with suppress(ProcessLookupError):
            os.kill(process, number)


def run(argv: Sequence[str]) -> int:
    binds = []
    for home, place, folder, *_ in MOVES:
        if folder:
            os.makedirs(home, exist_ok=True)
        if os.path.lexists(home):
            binds.append((place, os.path.realpath(home)))
    stage_in(linked=False)
    binds = [(place, home) for place, home in binds if os.path.lexists(place)]
    signal.signal(signal.SIGINT, lambda *_: None)  # the terminal sends it to the program; we bring back
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _pass_on)
    done = supervise(argv, binds, os.getcwd(), end_left=False)
    if done["failed"]:
        for _, place, *_ in MOVES:
            clean(place)
        raise Problem(
            f"{argv[0]}: does not start ({done['failed']}); nothing was changed. Where mounts are "
            "forbidden, use `in` and `out`"
        )
    code = int(done["code"])
    return stage_out() or (code if code >= 0 else 128 - code)


def discard() -> None:
    for home, place, *_ in MOVES:
        if ours(home, place):
            os.unlink(home)
            if os.path.lexists(home + _HOME):
                os.rename(home + _HOME, home)
        clean(place)


def main(words: Sequence[str]) -> int:
    verb = words[0] if words else ""
    if verb not in ("run", "in", "out", "discard") or (verb == "run" and len(words) < 3):
        print(__doc__, file=sys.stderr)
        return 2
    try:
        check_mounts()
        with ExitStack() as stack:
            stack.enter_context(one_at_a_time())
            recover()
            if verb == "run":
                return run(words[2:] if words[1] == "--" else words[1:])
            if verb == "in":
                if not started():
                    stage_in(linked=True)
                link()
                return 0
            if verb == "out":
                return stage_out()
            discard()
            return 0
    except Problem as problem:
        say(str(problem))
    except OSError as error:
        say(f"{error.filename or ''}: {error.strerror or error}; nothing is lost: run it again")
    return 1


def supervised(orders: int, answers: int) -> None:
    """Run one trial for tiercel: what to do comes as JSON through one descriptor, the answer goes to
    another."""
    os.set_inheritable(answers, False)
    with open(orders, encoding="utf-8", errors="surrogateescape") as file:
        order = json.load(file)
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def stop(*_: object) -> None:
        end_all()
        os._exit(1)

    signal.signal(signal.SIGTERM, stop)
    _LIBC.prctl(_PDEATHSIG, signal.SIGTERM)
    answer = supervise(order["argv"], order["binds"], order["cwd"], True, order["timeout"], order["traced"])
    with open(answers, "w", encoding="utf-8") as file:
        json.dump(answer, file)


def guard() -> None:
    """Remove the folders that tiercel names on standard input, once it has ended or was killed."""
    folders = sys.stdin.buffer.read().split(b"\0")[:-1]
    deadline = time.monotonic() + 10
    for folder in map(os.fsdecode, folders):
        while os.path.lexists(folder) and time.monotonic() < deadline:  # a program may still be dying there
            with suppress(OSError):
                remove(folder)
            time.sleep(0.05)


if __name__ == "__main__":
    if sys.argv[1:2] == ["supervised"]:
        supervised(int(sys.argv[2]), int(sys.argv[3]))
    elif sys.argv[1:2] == ["guard"]:
        guard()
    elif sys.argv[1:2] == ["enter"]:  # of one rank of a parallel program: binds as JSON, then the program
        enter(json.loads(sys.argv[2]))
        os.chdir(sys.argv[3])
        os.execvp(sys.argv[4], sys.argv[4:])
    else:
        sys.exit(main(sys.argv[1:]))
