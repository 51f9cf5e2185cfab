"""Files that are striped over several servers behave as files of one do."""

from __future__ import annotations

import errno
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tiercel.layers.fairshare.programs import Programs

from .conftest import PREFIX
from .posix_checks import CHECKS
from .stripe_servers import STRIPE, Servers, striping
from .test_posix import SCRIPT


@pytest.fixture
def three(programs: Programs) -> Iterator[Servers]:
    with striping(programs) as servers:
        yield servers


RANDOM = """
# The same calls on a served file and on an ordinary one: results and bytes are the same at every step.
seed, mirror = int(sys.argv[1]), sys.argv[2]
rng = random.Random(seed)
os.makedirs(ROOT + f"/d{seed}")
names = [ROOT + f"/d{seed}/f", mirror]
flags = os.O_RDWR | os.O_CREAT
pair = [os.open(name, flags) for name in names]
def both(call, *rest):
    results = [call(fd, *rest) for fd in pair]
    assert results[0] == results[1], (seed, step, call.__name__, *(str(r)[:20] for r in results))
for step in range(250):
    size = rng.choice([1, 100, STRIPE - 1, STRIPE, STRIPE * 3, STRIPE * 20, 200000])
    at = rng.randrange(12 * STRIPE)
    at = rng.choice([at, at // STRIPE * STRIPE])
    match rng.randrange(10):
        case 0 | 1 | 2: both(os.pwrite, rng.randbytes(rng.randrange(1, size + 1)), at)
        case 3 | 4: both(os.pread, size, at)
        case 5: both(os.write, rng.randbytes(rng.randrange(1, size + 1)))
        case 6: both(os.read, size)
        case 7: both(os.lseek, rng.randrange(10 * STRIPE), rng.choice([os.SEEK_SET, os.SEEK_END]))
        case 8: both(os.ftruncate, rng.choice([0, at, at * 2]))
        case 9 if rng.random() < 0.3:
            for fd in pair: os.close(fd)
            again = os.O_RDWR | rng.choice([0, 0, 0, os.O_TRUNC])
            pair = [os.open(name, again) for name in names]
        case _: both(os.fsync)
    assert os.fstat(pair[0]).st_size == os.fstat(pair[1]).st_size
both(os.lseek, 0, os.SEEK_SET)
both(os.read, 1 << 22)
assert open(names[0], "rb").read() == open(names[1], "rb").read()
"""


@pytest.mark.parametrize("seed", range(4))
def test_random_calls_have_the_same_results_as_on_a_plain_file(three: Servers, seed: int) -> None:
    three.python(RANDOM, str(seed), str(three.data[0].parent / "mirror"))


@pytest.fixture(scope="module")
def shared_three(programs: Programs) -> Iterator[Servers]:
    with striping(programs) as servers:
        yield servers


@pytest.mark.parametrize("name", CHECKS)
def test_posix(shared_three: Servers, name: str) -> None:
    own = f"{PREFIX}/{name}"
    shared_three.python(f"os.mkdir({own!r})")
    done = subprocess.run(
        [sys.executable, str(SCRIPT), name, own], env=shared_three.environment(),
        capture_output=True, text=True, check=False, timeout=240,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_over_tcp_it_is_the_same(programs: Programs) -> None:
    with ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(2)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        ports = [int(probe.getsockname()[1]) for probe in probes]
    with striping(programs, 2, ports) as servers:
        servers.python(RANDOM, "9", str(servers.data[0].parent / "mirror"))
        servers.python("""
fd = os.open(ROOT + "/f", os.O_RDWR | os.O_CREAT)
os.write(fd, b"a" * 3 * STRIPE)
if os.fork() == 0:
    os.write(fd, b"b" * 3 * STRIPE)
    os._exit(0)
assert os.wait()[1] == 0
assert os.pread(fd, 1 << 20, 0) == b"a" * 3 * STRIPE + b"b" * 3 * STRIPE
os.unlink(ROOT + "/f")
os.unlink(ROOT + "/d9/f")
""")
        assert [servers.objects(n) for n in range(2)] == [[], []]


def test_stripes_lie_on_all_servers_and_evenly(three: Servers) -> None:
    """30 stripes over 3 servers are 10 on each: every run of three stripes is one on each."""
    three.python("open(ROOT + '/f', 'wb').write(os.urandom(30 * STRIPE))")
    for n in range(3):
        (one,) = three.objects(n)
        assert one.stat().st_blocks * 512 == 10 * STRIPE
    home = three.data[three.home("f")] / "tree/f"
    assert home.stat().st_size == 30 * STRIPE
    assert home.stat().st_blocks * 512 < STRIPE  # the size, and no data


def test_sparse_files_read_as_zeros_and_are_not_taken_for_empty(three: Servers) -> None:
    three.python("""
fd = os.open(ROOT + "/f", os.O_RDWR | os.O_CREAT)
os.pwrite(fd, b"end", 50 * STRIPE + 7)
assert os.pread(fd, 1 << 20, 0) == bytes(50 * STRIPE + 7) + b"end"
assert os.fstat(fd).st_blocks * 512 >= 50 * STRIPE  # else tar and cp would copy holes alone
assert os.lseek(fd, 5, os.SEEK_DATA) == 5 and os.lseek(fd, 5, os.SEEK_HOLE) == 50 * STRIPE + 10
# What was cut off does not come back.
os.pwrite(fd, b"x" * 10 * STRIPE, 0)
os.ftruncate(fd, 3 * STRIPE - 5)
os.truncate(ROOT + "/f", 9 * STRIPE)
assert os.pread(fd, 1 << 20, 0) == b"x" * (3 * STRIPE - 5) + bytes(6 * STRIPE + 5)
""")


def test_programs_copy_archive_and_replace_striped_files(three: Servers) -> None:
    said = three.bash("""
mkdir $ROOT/d; seq 1 20000 > $ROOT/d/a
cp $ROOT/d/a $ROOT/d/b; cmp $ROOT/d/a $ROOT/d/b; seq 1 20000 | cmp - $ROOT/d/b
tar -C $ROOT -cSf $ROOT/d/t.tar d/a d/b
mkdir $ROOT/e; tar -C $ROOT/e -xf $ROOT/d/t.tar; cmp $ROOT/e/d/a $ROOT/d/a
sed -i s/7/8/ $ROOT/d/b; seq 1 20000 | sed s/7/8/ | cmp - $ROOT/d/b
sort -nr $ROOT/d/a > $ROOT/d/r; head -n 1 $ROOT/d/r
exec 3>>$ROOT/d/a; echo more >&3; (echo child >&3); exec 3>&-; tail -n 2 $ROOT/d/a | xargs
ln $ROOT/d/a $ROOT/d/l; rm $ROOT/d/a; tail -n 1 $ROOT/d/l; mv $ROOT/d/l $ROOT/d/b; wc -l < $ROOT/d/b
""")
    assert said.split("\n") == ["20000", "more child", "child", "20002", ""]


def test_nothing_is_left_anywhere_when_files_are_removed_or_replaced(three: Servers) -> None:
    three.python("""
os.mkdir(ROOT + "/d")
for n in range(6):
    open(ROOT + f"/d/{n}", "wb").write(os.urandom(9 * STRIPE))
kept = os.open(ROOT + "/d/0", os.O_RDONLY)
data = os.pread(kept, 9 * STRIPE, 0)
os.link(ROOT + "/d/1", ROOT + "/d/link")
os.rename(ROOT + "/d/1", ROOT + "/d/0")   # replaces 0, that is open
os.rename(ROOT + "/d/0", ROOT + "/d/link")  # the same file: both stay
assert os.pread(kept, 9 * STRIPE, 0) == data, "an open file lives on without a name"
for n in (0, 2, 3, 4, 5):
    os.unlink(ROOT + f"/d/{n}")
assert len(open(ROOT + "/d/link", "rb").read()) == 9 * STRIPE
""")
    assert [len(three.objects(n)) for n in range(3)] == [1, 1, 1]
    three.bash("rm -r $ROOT/d")
    assert [three.objects(n) for n in range(3)] == [[], [], []]


def test_appends_of_several_processes_do_not_mix(three: Servers) -> None:
    """Each record is longer than a stripe, so that it lies on two servers at least."""
    code = """
fd = os.open(ROOT + "/log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
for n in range(40):
    record = f"{sys.argv[1]}-{n:03d};".encode() * 2000  # 12000 bytes
    assert os.write(fd, record) == len(record) == 12000
"""
    writers = [three.popen(code, f"{n}") for n in range(4)]
    for writer in writers:
        out, err = writer.communicate(timeout=240)
        assert writer.returncode == 0, out + err
    three.python("""
data = open(ROOT + "/log", "rb").read()
assert len(data) == 160 * 12000
records = [data[at : at + 12000] for at in range(0, len(data), 12000)]
assert all(len(set(record.split(b";"))) == 2 for record in records)  # one text, and the end
assert len(set(records)) == 160
""")


def test_writers_and_a_cutter_leave_nothing_behind_the_end(three: Servers) -> None:
    """However they interleave, growing the file again shows zeros, never data that were cut off."""
    writer = """
fd = os.open(ROOT + "/f", os.O_RDWR | os.O_CREAT)
for n in range(150):
    os.pwrite(fd, b"w" * 3 * STRIPE, random.randrange(20) * STRIPE)
"""
    cutter = """
fd = os.open(ROOT + "/f", os.O_RDWR | os.O_CREAT)
for n in range(60):
    os.ftruncate(fd, random.randrange(5) * STRIPE)
"""
    running = [three.popen(writer), three.popen(writer), three.popen(cutter)]
    for one in running:
        out, err = one.communicate(timeout=240)
        assert one.returncode == 0, out + err
    three.python("""
fd = os.open(ROOT + "/f", os.O_RDWR)
size = os.fstat(fd).st_size
os.ftruncate(fd, size + 40 * STRIPE)
assert os.pread(fd, 1 << 20, size) == bytes(40 * STRIPE)
""")


def test_positions_are_shared_with_forked_and_started_processes(three: Servers) -> None:
    three.python("""
import subprocess
fd = os.open(ROOT + "/f", os.O_RDWR | os.O_CREAT)
os.write(fd, b"a" * 10000)
if os.fork() == 0:
    os.write(fd, b"b" * 10000)
    os._exit(0)
assert os.wait()[1] == 0
subprocess.run(["dd", "if=/dev/zero", "bs=10000", "count=1", "status=none"], stdout=fd, check=True)
os.write(fd, b"c" * 10000)
assert os.pread(fd, 1 << 20, 0) == b"a" * 10000 + b"b" * 10000 + bytes(10000) + b"c" * 10000
os.lseek(fd, 5000, os.SEEK_SET)
first = subprocess.run(["head", "-c", "10000"], stdin=fd, capture_output=True, check=True).stdout
assert first == b"a" * 5000 + b"b" * 5000
""")


def test_what_cannot_be_served_is_refused(three: Servers) -> None:
    """A client that knows the home server alone has no way to the data, and is told so."""
    three.python("open(ROOT + '/f', 'wb').write(b'x' * 5 * STRIPE)")
    home = three.home("f")
    three.python(
        """
for call in (lambda: open(ROOT + "/f", "rb"), lambda: os.truncate(ROOT + "/f", 3)):
    try:
        call()
        raise AssertionError("was served")
    except OSError as problem:
        assert problem.errno in (errno.EIO, errno.EOPNOTSUPP), problem
assert os.stat(ROOT + "/f").st_size == 5 * STRIPE
try:
    os.setxattr(ROOT + "/f", "user.fairshare.stripes", b"mine")
    raise AssertionError("a client may not say where data lie")
except PermissionError:
    pass
assert os.listxattr(ROOT + "/f") == []
open(ROOT + "/g", "wb").write(b"y" * 5 * STRIPE)  # of one server: not striped
assert open(ROOT + "/g", "rb").read() == b"y" * 5 * STRIPE
""",
        env=three.environment(only=home),
    )


def test_the_mount_shows_striped_files_and_refuses_their_data(programs: Programs) -> None:
    if os.geteuid() != 0 or not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("needs root and a usable /dev/fuse")
    with striping(programs, 2) as servers:
        servers.python("open(ROOT + '/f', 'wb').write(b'x' * 9 * STRIPE)")
        home = servers.home("f")
        place = servers.data[0].parent / "mount"
        place.mkdir()
        servers.kill(home)
        servers.start(home, "--mount", str(place))
        assert (place / "f").stat().st_size == 9 * STRIPE
        for call in ((place / "f").read_bytes, (place / "f").unlink, lambda: os.truncate(place / "f", 3)):
            with pytest.raises(OSError) as caught:
                call()
            assert caught.value.errno == errno.EOPNOTSUPP
        servers.python("assert open(ROOT + '/f', 'rb').read() == b'x' * 9 * STRIPE")


def test_what_fsync_acknowledged_outlives_killed_servers(three: Servers) -> None:
    """All three are killed and started again while a client writes; it goes on by itself."""
    writer = three.popen("""
fd = os.open(ROOT + "/f", os.O_RDWR | os.O_CREAT)
for n in range(120):
    block = bytes([n]) * 2 * STRIPE
    assert os.pwrite(fd, block, n * 2 * STRIPE) == len(block)
    os.fsync(fd)
    print(n, flush=True)
    time.sleep(0.01)
""")
    assert writer.stdout is not None
    for n in range(3):
        for _ in range(20):
            writer.stdout.readline()
        three.kill(n)
        time.sleep(0.1)
        three.start(n)
    out, err = writer.communicate(timeout=240)
    assert writer.returncode == 0, out + err
    three.python("""
data = open(ROOT + "/f", "rb").read()
assert data == b"".join(bytes([n]) * 2 * STRIPE for n in range(120))
""")


def test_a_server_that_is_down_is_an_error_and_no_wrong_data(three: Servers) -> None:
    three.python("open(ROOT + '/f', 'wb').write(b'x' * 9 * STRIPE)")
    down = (three.home("f") + 1) % 3
    reader = three.popen(
        """
fd = os.open(ROOT + "/f", os.O_RDWR)
assert os.pread(fd, 1 << 20, 0) == b"x" * 9 * STRIPE
print("read", flush=True)
sys.stdin.readline()
failed = 0
for call in (lambda: os.pread(fd, 9 * STRIPE, 0), lambda: os.pwrite(fd, b"y" * 9 * STRIPE, 0),
             lambda: os.fsync(fd), lambda: os.ftruncate(fd, 5), lambda: os.open(ROOT + "/f", os.O_RDONLY)):
    try:
        done = call()
        assert isinstance(done, (int, bytes)) and done not in (None, 0), "acknowledged"
        if isinstance(done, bytes):  # a part that lies on the servers that are there
            assert 0 < len(done) < 9 * STRIPE and set(done) == {ord("x")}
        failed += done != 9 * STRIPE
    except OSError as problem:
        assert problem.errno == errno.EIO, problem
        failed += 1
assert failed == 5, failed
print("failed", flush=True)
sys.stdin.readline()
assert len(os.pread(fd, 1 << 20, 0)) == 9 * STRIPE, "nothing was cut"
os.pwrite(fd, b"z" * 9 * STRIPE, 0)
assert os.pread(fd, 1 << 20, 0) == b"z" * 9 * STRIPE
""",
        patience=1, stdin=-1,
    )  # fmt: skip
    assert reader.stdout is not None
    assert reader.stdin is not None
    assert reader.stdout.readline() == "read\n", reader.communicate()
    three.kill(down)
    reader.stdin.write("\n")
    reader.stdin.flush()
    assert reader.stdout.readline() == "failed\n", reader.communicate()
    three.start(down)
    out, err = reader.communicate("\n", timeout=240)
    assert reader.returncode == 0, out + err


def test_what_a_dead_server_kept_of_a_removed_file_goes_later(three: Servers) -> None:
    """The home server remembers, and whoever removes a file next is told."""
    three.python("""
os.mkdir(ROOT + "/d")
for name in "abc":
    open(ROOT + "/d/" + name, "wb").write(b"x" * 9 * STRIPE)
""")
    home = three.home("d")
    down = (home + 1) % 3
    three.kill(down)
    three.python("os.unlink(ROOT + '/d/a')", patience=1)
    three.start(down)
    assert len(three.objects(down)) == 3
    (note,) = (path for path in three.objects(home) if path.suffix == ".gone")
    os.utime(note, (0, 0))  # long ago: whoever removed the file will not come back
    three.python("os.unlink(ROOT + '/d/b')")
    assert [len(three.objects(n)) for n in range(3)] == [1, 1, 1]  # of c
    three.python("assert open(ROOT + '/d/c', 'rb').read() == b'x' * 9 * STRIPE")
