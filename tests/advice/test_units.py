"""What can be moved as one, and ways to move it."""

from __future__ import annotations

from pathlib import Path

from tiercel.advice.prepare import data_of
from tiercel.advice.units import Unit, data_files, units_of
from tiercel.advice.ways import all_on, home, mixed
from tiercel.placement.compile import compile_trace
from tiercel.site.model import Site, Storage
from tiercel.site.mounts import Mount
from tiercel.traces import open_trace


def site(**mounts: str) -> Site:
    return Site(
        site="test",
        storages={n: Storage(type="ext4", mount=m, scratch=f"{m}/scratch") for n, m in mounts.items()},
    )


def mounts(*points: str) -> list[Mount]:
    return [Mount(Path(p), "ext4", "dev", "rw", "/") for p in ("/", *points)]


def units(tmp_path: Path, text: str, where: Site, points: list[Mount]) -> dict[str, Unit]:
    path = tmp_path / "t.strace"
    path.write_text(
        "".join(f"7 17000000{10 + i}.000000 {line} <0.000100>\n" for i, line in enumerate(text.splitlines()))
    )
    recipe = compile_trace(open_trace(path, cache=tmp_path / "cache"))
    return {u.name: u for u in units_of(recipe, where, mounts=points)}


WORK = """\
openat(AT_FDCWD, "/d/in/a.bin", O_RDONLY) = 3</d/in/a.bin>
read(3</d/in/a.bin>, ""..., 1000) = 1000
close(3</d/in/a.bin>) = 0
openat(AT_FDCWD, "/d/out/x.tmp", O_WRONLY|O_CREAT, 0666) = 3</d/out/x.tmp>
write(3</d/out/x.tmp>, ""..., 500) = 500
close(3</d/out/x.tmp>) = 0
rename("/d/out/x.tmp", "/d/out/x") = 0
mkdir("/d/out/sub", 0777) = 0
openat(AT_FDCWD, "/d/out/sub/y", O_WRONLY|O_CREAT, 0666) = 3</d/out/sub/y>
write(3</d/out/sub/y>, ""..., 300) = 300
close(3</d/out/sub/y>) = 0"""


def test_inputs_move_one_by_one_and_folders_it_works_in_as_a_whole(tmp_path: Path) -> None:
    found = units(tmp_path, WORK, site(disk="/"), mounts())
    assert set(found) == {"/d/in/*", "/d/out"}
    assert found["/d/in/*"].inputs == ("/d/in/a.bin",)
    assert not found["/d/in/*"].whole and found["/d/in/*"].results == ()
    out = found["/d/out"]
    assert out.whole
    # The folder that the program made itself goes with the one that was there; x.tmp became x.
    assert set(out.results) == {"/d/out/x", "/d/out/sub", "/d/out/sub/y"} - {"/d/out/sub"}
    assert out.size == 500 + 500 + 300  # x.tmp and x never lie there together, but nobody counts on that
    assert out.inputs == ()


def read_all(folder: Path) -> str:
    return "\n".join(
        f'openat(AT_FDCWD, "{p}", O_RDONLY) = 3<{p}>\nread(3<{p}>, ""..., 100) = 100\nclose(3<{p}>) = 0'
        for p in sorted(folder.glob("*.npy"))
    )


def test_a_folder_of_many_inputs_moves_in_one_step(tmp_path: Path) -> None:
    samples = tmp_path / "samples"
    samples.mkdir()
    for number in range(9):
        (samples / f"{number}.npy").write_bytes(b"x" * 100)
    [found] = units(tmp_path, read_all(samples), site(disk="/"), mounts()).values()
    assert (found.name, found.whole, found.changed) == (str(samples), True, False)
    assert (len(found.inputs), found.results, found.bytes_before) == (9, (), 900)
    (samples / "other").write_bytes(b"x" * 2000)  # with it, more than twice what is read would be copied
    [found] = units(tmp_path, read_all(samples), site(disk="/"), mounts()).values()
    assert (found.name, found.whole) == (f"{samples}/*", False)


def test_each_unit_lies_on_the_storage_of_its_mount(tmp_path: Path) -> None:
    found = units(tmp_path, WORK, site(disk="/", fast="/d/out"), mounts("/d/out"))
    assert (found["/d/in/*"].storage, found["/d/out"].storage) == ("disk", "fast")
    assert "mount point" in found["/d/out"].stays


def test_what_lies_on_no_storage_of_the_site_stays(tmp_path: Path) -> None:
    found = units(tmp_path, WORK, site(fast="/fast"), mounts("/fast"))
    assert {u.storage for u in found.values()} == {None}
    assert all("no storage" in u.stays for u in found.values())


def test_a_folder_that_everybody_uses_stays(tmp_path: Path) -> None:
    text = 'openat(AT_FDCWD, "/tmp/x", O_WRONLY|O_CREAT, 0666) = 3</tmp/x>\nwrite(3</tmp/x>, ""..., 9) = 9'
    found = units(tmp_path, text, site(disk="/"), mounts())
    assert "not this program's alone" in found["/tmp"].stays


def test_a_folder_with_much_else_in_it_stays(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    with (work / "other").open("wb") as file:
        file.truncate(3 << 30)  # sparse: no room is used
    text = (
        f'openat(AT_FDCWD, "{work}/x", O_WRONLY|O_CREAT, 0666) = 3<{work}/x>\n'
        f'write(3<{work}/x>, ""..., 9) = 9'
    )
    found = units(tmp_path, text, site(disk="/"), mounts())
    assert "much more than this program uses" in found[str(work)].stays


def test_files_of_the_system_and_of_programs_are_no_data() -> None:
    names = [
        "/usr/lib/x", "/proc/1/io", "/d/a", "rel", "/home/u/v/lib/python3.11/os.py", "/o/site-packages/a/b",
        "/opt/x/libfoo.so.3", "/d/so.bin",
    ]  # fmt: skip
    assert data_files(names) == ["/d/a", "/d/so.bin"]


def test_what_an_installer_makes_is_its_data(tmp_path: Path) -> None:
    path = tmp_path / "t.strace"
    path.write_text(
        '7 1700000010.000000 openat(AT_FDCWD, "/e/site-packages/old.py", O_RDONLY) = 3 <0.0001>\n'
        '7 1700000011.000000 mkdir("/e/site-packages/new", 0777) = 0 <0.0001>\n'
        '7 1700000012.000000 mkdir("/e/site-packages/there", 0777) = -1 EEXIST (File exists) <0.0001>\n'
        '7 1700000013.000000 openat(AT_FDCWD, "/e/site-packages/new/a.tmp", O_CREAT|O_RDWR) = 4 <0.0001>\n'
        '7 1700000014.000000 rename("/e/site-packages/new/a.tmp", "/e/site-packages/new/a.py") = 0 <0.0001>\n'
    )  # fmt: skip
    found = data_of(open_trace(path, cache=tmp_path / "cache"))
    names = ["new", "new/a.tmp", "new/a.py"]
    assert sorted(found) == sorted(f"/e/site-packages/{name}" for name in names)


def unit(name: str, takes: tuple[str, ...] = (), stays: str = "") -> Unit:
    return Unit(name, Path(name), True, (name + "/f",), "disk", stays, takes=takes)


def test_what_goes_together_goes_together() -> None:
    some = [unit("/a", takes=("/a/b",)), unit("/a/b"), unit("/c")]
    way = mixed(some, {"/a": "fast", "/a/b": "disk", "/c": "disk"})
    assert dict(way.systems) == {"/a": "fast", "/a/b": "fast", "/c": "disk"}
    # Both wish the same, and the inner one, which is larger, comes first.
    way = mixed([some[1], some[0]], {"/a": "fast", "/a/b": "fast"})
    assert dict(way.systems) == {"/a": "fast", "/a/b": "fast"}
    # The inner folder may go alone.
    way = mixed(some, {"/a": "disk", "/a/b": "fast", "/c": "disk"})
    assert dict(way.systems) == {"/a": "disk", "/a/b": "fast", "/c": "disk"}


def test_what_holds_something_that_stays_stays() -> None:
    some = [unit("/a", takes=("/b",)), unit("/b", takes=("/a",), stays="why")]
    assert dict(mixed(some, {"/a": "fast", "/b": "disk"}).systems) == {"/a": "disk", "/b": "disk"}
    # Files are renamed from one to the other, so neither can go without the other.
    assert dict(all_on("fast", some).systems) == {"/a": "disk", "/b": "disk"}
    apart = [unit("/a"), unit("/b", stays="why")]
    assert dict(all_on("fast", apart).systems) == {"/a": "fast", "/b": "disk"}
    assert all_on("fast", apart).moved(apart) == apart[:1]
    assert home(some).moved(some) == []
