"""Finds the storage systems of this machine that a user could put data on."""

from __future__ import annotations

import hashlib
import os
import re
import stat
import threading
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tiercel.errors import one_line
from tiercel.privacy import private
from tiercel.site.model import Storage
from tiercel.site.mounts import Mount, mount_of, read_mounts
from tiercel.units import format_size

#: Smaller file systems (a container's 64 MiB /dev/shm, say) cannot hold a meaningful data set.
SMALLEST = 256 * 1024**2

#: A network file system whose server is gone blocks every call on it.
STAT_TIMEOUT_S = 5.0

#: Whoever mounts something below one of these, mounts it for a while.
_TEMPORARY = (Path("/tmp"), Path("/var/tmp"))

#: Names of storages, with commas between: no others are found while it is set (`holding`).
_HELD = "TIERCEL_HELD_STORAGES"


@dataclass
class Discovery:
    """The storage systems found, and why every other mount worth a thought was left out."""

    storages: dict[str, Storage] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)


def discover(exclude: Iterable[str] = (), mounts: list[Mount] | None = None) -> Discovery:
    """Return the storages among `mounts` (default: this machine's) in which this user can write.

    One storage per file system, however often it is mounted; one in memory (they are all the
    same memory). Names are made from type and mount point, so that they stay the same
    when another file system is mounted (`storage_names`).
    """
    table = read_mounts() if mounts is None else mounts
    names = storage_names(table)
    found = Discovery()
    excluded, held = set(exclude), os.environ.get(_HELD)
    devices: dict[int, str] = {}
    for mount in _in_order_of_interest(table):
        point = str(mount.point)
        if point in excluded:
            found.skipped[point] = "excluded by the site file"
            continue
        if held is not None and names[mount.point] not in held.split(","):
            found.skipped[point] = "mounted since the evaluation began"
            continue
        reason, storage, device = _consider(mount, table)
        if storage is None:
            found.skipped[point] = reason
        elif device in devices:
            found.skipped[point] = f"the same file system as {devices[device]}"
        elif mount.medium == "memory" and any(s.medium == "memory" for s in found.storages.values()):
            found.skipped[point] = "memory, as the tmpfs already chosen"
        else:
            devices[device] = point
            found.storages[names[mount.point]] = storage
    return found


def hold(names: Iterable[str]) -> None:
    """Have this process and those that it starts find no storages but these; what was held before stays so.

    Another user's mount that appears while a study is measured would change its plan, and end its jobs.
    """
    os.environ.setdefault(_HELD, ",".join(names))


@contextmanager
def holding(names: Iterable[str]) -> Iterator[None]:
    """Do as `hold` until the block ends."""
    before = os.environ.get(_HELD)
    hold(names)
    try:
        yield
    finally:
        if before is None:
            del os.environ[_HELD]


def storage_names(mounts: Iterable[Mount]) -> dict[Path, str]:
    """Return the name of each storage by its mount point, such as ``ext4-root`` or ``tmpfs-dev-shm``.

    Of several mount points that give one name, the first in the mount table has it; the others get four
    digits of a hash of their mount point behind it. A later mount renames none.
    """
    names: dict[Path, str] = {}
    for mount in mounts:
        if not mount.medium or mount.system:
            continue
        # A home that is mounted for its user alone is called home: names are seen by everybody.
        point = private().text(str(mount.point))
        name = f"{_plain(mount.type)}-{_plain(point) or 'root'}"[:60].strip("-")
        if name in names.values():
            digits = hashlib.sha256(os.fsencode(mount.point)).hexdigest()[:4]
            name = f"{name[:55].strip('-')}-{digits}"
        names[mount.point] = name
    return names


def _plain(text: str) -> str:
    """Return `text` in lower-case ASCII letters, digits and dashes, for a name.

    Accents are dropped. A letter of another alphabet is spelt by the last word of its Unicode name: ``Ω``
    (GREEK CAPITAL LETTER OMEGA) is ``omega``, ``タ`` (KATAKANA LETTER TA) is ``ta``.
    """
    spelt = "".join(_spelt(letter) for letter in unicodedata.normalize("NFKC", text).lower())
    return re.sub(r"[^a-z0-9]+", "-", spelt).strip("-")


def _spelt(letter: str) -> str:
    base = unicodedata.normalize("NFKD", letter)[:1]
    if base.isascii() or unicodedata.category(letter)[0] not in "LN":
        return base if base.isascii() else "-"
    if unicodedata.category(letter) == "Lm":  # a mark that changes the letter before it
        return ""
    return re.split(r"[ -]", unicodedata.name(letter, "").lower())[-1]


def _in_order_of_interest(mounts: list[Mount]) -> list[Mount]:
    """Network before disk before memory; of bind mounts the one that shows the whole file system."""
    order = {"network": 0, "disk": 1, "memory": 2}
    worth = [m for m in mounts if m.medium and not m.system]
    return sorted(
        worth,
        key=lambda m: (
            order[m.medium or "disk"],
            m.root != "/" and m.type != "btrfs",
            str(m.point) != "/dev/shm",
            len(m.point.parts),
            str(m.point),
        ),
    )


def _consider(mount: Mount, table: list[Mount]) -> tuple[str, Storage | None, int]:
    """Return (why not, storage or None, device number)."""
    if mount.read_only:
        return "mounted read-only", None, 0
    if not _is_text(mount.point):
        return "its path is not UTF-8, so no file of a site or a study can name it", None, 0
    answer: dict[str, tuple[str, Storage | None, int]] = {}

    def look() -> None:
        try:
            answer["it"] = _look(mount, table)
        except Exception as error:  # one odd mount must not hide the others
            answer["it"] = (f"cannot be examined: {type(error).__name__}: {one_line(str(error))}", None, 0)

    # A thread, not a signal: a call on a dead server cannot be interrupted, only left behind.
    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    thread.join(STAT_TIMEOUT_S)
    return answer.get("it", (f"does not answer within {STAT_TIMEOUT_S:g} s", None, 0))


def _owners(mount: Mount) -> set[int]:
    """Return the owners of a loop device's file, and of folders below a temporary one: who mounted it."""
    places = [mount.point, *mount.point.parents]
    temporary = next((each for each in _TEMPORARY if each in places), None)
    looked_at = [each for each in places if temporary in each.parents] if temporary else []
    if loop := re.fullmatch(r"/dev/(loop\d+)", mount.source):
        with suppress(OSError):
            looked_at.append(Path(Path(f"/sys/block/{loop[1]}/loop/backing_file").read_text().strip()))
    found = set()
    for place in looked_at:
        with suppress(OSError):
            found.add(place.stat().st_uid)
    return found


def _look(mount: Mount, table: list[Mount]) -> tuple[str, Storage | None, int]:
    if _owners(mount) - {0, os.getuid()}:
        return "a temporary mount of another user", None, 0
    try:
        status = mount.point.stat()
        if not stat.S_ISDIR(status.st_mode):
            return "mounts a single file", None, 0
        space = os.statvfs(mount.point)
    except OSError as error:
        return f"cannot be looked at: {error.strerror}", None, 0
    capacity = space.f_frsize * space.f_blocks
    if capacity < SMALLEST:
        return f"only {format_size(capacity)}", None, 0
    folder = _writable_folder(mount, table)
    if folder is None:
        return "no folder that this user can write", None, 0
    return (
        "",
        Storage(
            type=mount.type,
            mount=str(mount.point),
            scratch=str(folder / f"tiercel-{os.getuid()}").replace("$", "$$"),
            medium=mount.medium or "disk",
            label=one_line(private().text(f"{mount.type} {mount.point}")),
            source=one_line(mount.source),
            options=one_line(mount.options),
            capacity=capacity,
            shared=mount.medium == "network",
        ),
        status.st_dev,
    )


def _is_text(path: Path) -> bool:
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return True


def _writable_folder(mount: Mount, table: list[Mount]) -> Path | None:
    """Return the first usual place for scratch data on `mount` that this user can write."""
    named = [os.environ.get(v) for v in ("SCRATCH", "TMPDIR")]
    user = os.environ.get("USER") or str(os.getuid())
    candidates = [
        *(Path(n) for n in named if n and Path(n).is_absolute()),
        mount.point / user,
        mount.point / "scratch" / user,
        Path("/dev/shm"),
        Path("/var/tmp"),
        mount.point / "tmp",
        Path.home(),
        Path.cwd(),
        mount.point,
    ]
    for folder in candidates:
        if mount_of(folder, table) == mount and folder.is_dir() and os.access(folder, os.W_OK | os.X_OK):
            return folder.resolve()
    return None
