"""What is taken out of texts before they are recorded, and what must stay."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiercel.privacy import Private, private

ALICE = Private(
    users=("alice",),
    homes=("/home/alice",),
    accounts=("abc123",),
    secrets=(("s3cr3t-value", "SITE_TOKEN"),),
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/home/alice/runs/a.json", "$HOME/runs/a.json"),
        ("-o=/home/alice", "-o=$HOME"),
        ('"/home/alice"', '"$HOME"'),
        ("in /home/alice.", "in $HOME."),
        # Another folder, whose name only begins like hers; and a home that lies elsewhere.
        ("/home/alice2/x", "/home/alice2/x"),
        ("/home/alice.old/x", "/home/alice.old/x"),
        ("/nfs/home/alice/x", "/nfs/home/$USER/x"),
        ("/p/lustre1/alice/tiercel", "/p/lustre1/$USER/tiercel"),
        ("file:%2Fp%2Falice%2Fx", "file:%2Fp%2F$USER%2Fx"),
        ("~alice/x", "~$USER/x"),
        ("sshfs alice@server:/export", "sshfs $USER@server:/export"),
        ("USER=alice LOGNAME=alice", "USER=$USER LOGNAME=$USER"),
        ("rw,username=alice,uid=1000", "rw,username=$USER,uid=1000"),
        ('{"user": "alice"}', '{"user": "$USER"}'),
        ("no quota for user alice", "no quota for user $USER"),
        ("squeue -u alice", "squeue -u $USER"),
        ("/tmp/pytest-of-alice/x /tmp/ompi.alice.1", "/tmp/pytest-of-$USER/x /tmp/ompi.$USER.1"),
        # A word is not a name: nothing says that it is one.
        ("alice in wonderland", "alice in wonderland"),
        ("/data/alice-springs/x", "/data/alice-springs/x"),
        ("sbatch -A abc123 --account=abc123", "sbatch -A $TIERCEL_ACCOUNT --account=$TIERCEL_ACCOUNT"),
        ("/gpfs/alpine/abc123/scratch", "/gpfs/alpine/$TIERCEL_ACCOUNT/scratch"),
        ("hash abc123", "hash abc123"),
        ("x s3cr3t-value y", "x $SITE_TOKEN y"),
        ("password=hunter2,rw", "password=***,rw"),
        ('{"api_key": "a b", "n": 1}', '{"api_key": "***", "n": 1}'),
        ("https://bob:pw@host/x", "https://***@host/x"),
        ("Authorization: Bearer abcdefghijklmnop", "Authorization: Bearer ***"),
        ("--token 0123456789abcdef0", "--token ***"),
        ("token ghp_aaaaaaaaaaaaaaaaaaaaaaaa", "token ***"),
        # Measured data and messages that only sound like it.
        ('{"max_token": 4096, "tokens": "many"}', '{"max_token": 4096, "tokens": "many"}'),
        ('{"secret": null}', '{"secret": null}'),
        ("unexpected token: end", "unexpected token: end"),
        ("password=$PASSWORD", "password=$PASSWORD"),
    ],
)  # fmt: skip
def test_texts(text: str, expected: str) -> None:
    assert ALICE.text(text) == expected
    assert ALICE.text(expected) == expected


def test_a_user_whose_name_is_an_ordinary_word() -> None:
    """User data: the word stays where it is no name, also in what tiercel calls `data` itself."""
    data = Private(users=("data",), homes=("/home/data",), mounts=frozenset({"/data"}))
    kept = [
        "writes data to file.data",
        "/p/x/tiercel-run-scaling.data.r0-1/data/data.00000000",
        "/data/set",  # a mount point of this machine
        '{"data": 1, "data_per_process": "data"}',
    ]
    for text in kept:
        assert data.text(text) == text
    assert data.text("/home/data/data") == "$HOME/$USER"
    assert data.text("/p/lustre1/data/run") == "/p/lustre1/$USER/run"


def test_plain_values_keep_their_kind_and_know_options_by_the_word_before() -> None:
    content = {
        "argv": ["srun", "-A", "abc123", "-n", "2", "x", "abc123", "--password", "hunter2"],
        "environment": {"USER": "alice", "OMPI_MCA_x": "/home/alice/x", "UCX_TOKEN": "0123456789abcdefg"},
        "load": 1.5, "n": 3, "flag": True, "none": None, "alice": "alice",
    }  # fmt: skip
    assert ALICE.plain(content) == {
        "argv": ["srun", "-A", "$TIERCEL_ACCOUNT", "-n", "2", "x", "abc123", "--password", "***"],
        "environment": {"USER": "$USER", "OMPI_MCA_x": "$HOME/x", "UCX_TOKEN": "***"},
        "load": 1.5, "n": 3, "flag": True, "none": None, "alice": "alice",
    }  # fmt: skip


def test_names_that_json_writes_otherwise() -> None:
    """A home folder with a letter that JSON escapes is found in JSON files, too."""
    zoe = Private(users=("zoë",), homes=('/home/zoë"s',))
    text = json.dumps({"path": '/home/zoë"s/x', "other": "/p/zoë/x"})
    assert json.loads(zoe.text(text)) == {"path": "$HOME/x", "other": "/p/$USER/x"}


def test_who_runs_this_is_found_in_the_environment(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "home").symlink_to("real")
    found = private(
        {
            "USER": "alice", "HOME": f"{tmp_path}/home/", "TIERCEL_ACCOUNT": "abc123",
            "MY_API_KEY": "0123456789", "TOKENIZERS_PARALLELISM": "falsefalse", "DB_PASSWORD": "short",
        }
    )  # fmt: skip
    assert "alice" in found.users and "root" not in found.users
    assert {f"{tmp_path}/home", f"{tmp_path}/real"} <= set(found.homes)
    assert found.accounts == ("abc123",)
    assert found.secrets == (("0123456789", "MY_API_KEY"),)


def test_the_root_folder_is_nobodys_home() -> None:
    assert "/" not in private({"HOME": "/"}).homes


#: How texts hold a path: strace, JSON, settings, messages, lists, addresses, a path of its own line.
CONTEXTS = (
    "read(3<{}>, 4096) = 1", '{{"path": "{}"}}', "--folder={}", "{}: No such file or directory", "({})",
    "a,{},b", "/usr/lib:{}:/opt", "'{}'", "cd {} && ls", "|{}|", "{}", "first\n{}\nlast", "[{};0]",
)  # fmt: skip
USERS = st.sampled_from(["alice", "data", "tester", "run"])
COMPONENTS = st.sampled_from(
    [
        "{}",
        "pytest-of-{}",
        "x.{}.1",
        "{}-set",
        "{}2",
        "un{}",
        "plain",
        "a=b",
        "a,b",
        "tiercel-run-{}.r0",
        "of-{}-{}",
        "x.{}.{}",
    ]
)
ROOTS = st.sampled_from(["/tmp", "/var/tmp", "/dev/shm", "/p/lustre1", "/nfs/tmp", "/data"])
PATHS = st.tuples(ROOTS, st.lists(COMPONENTS, min_size=1, max_size=4)).map(lambda p: "/".join([p[0], *p[1]]))


@given(USERS, st.lists(PATHS, min_size=1, max_size=4))
def test_a_path_is_replaced_the_same_wherever_it_stands(user: str, paths: list[str]) -> None:
    hers = Private(users=(user,), mounts=frozenset({"/data"}))
    paths = [path.replace("{}", user) for path in paths]
    texts = [context.format(path) for path in paths for context in CONTEXTS]
    decided = hers.decide(texts)
    for path in paths:
        image = decided.replaced(path)
        for context in CONTEXTS:
            assert decided.replaced(context.format(path)) == context.format(image)
        # A relative path has the same names in it, but for the user's alone: that may be a word.
        *_, last = path.split("/")
        if last != user:
            assert decided.replaced(f'"{last}"') == f'"{image.split("/")[-1]}"'
        assert decided.replaced(image) == image


@given(USERS, st.sampled_from(["/tmp", "/var/tmp", "/dev/shm"]), st.sampled_from(CONTEXTS))
def test_one_text_decides_for_all_others_of_a_run(user: str, root: str, context: str) -> None:
    decided = Private(users=(user,)).decide([context.format(f"{root}/pytest-of-{user}/x"), "other"])
    assert decided.replaced(f'open("pytest-of-{user}/y")') == 'open("pytest-of-$USER/y")'
    assert decided.replaced(f"pytest-of-{user}s") == f"pytest-of-{user}s"
    # What was written first, and is clean already, decides too.
    later = Private(users=(user,)).decide([context.format(f"{root}/pytest-of-$USER/x")])
    assert later.parts == decided.parts


@given(st.text(), st.text(alphabet="/ab. ", max_size=20))
def test_what_is_clean_stays_and_a_home_never_does(text: str, rest: str) -> None:
    cleaned = ALICE.text(f"{text} /home/alice/{rest}")
    assert "/home/alice/" not in cleaned
    assert ALICE.text(cleaned) == cleaned
