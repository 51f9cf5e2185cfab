from __future__ import annotations

import pytest

from tiercel.errors import UserError
from tiercel.placement.groups import bundles_of, groups_of, pattern_of


@pytest.mark.parametrize(
    ("path", "pattern"),
    [
        ("/d/dump.100.txt", "/d/dump.*.txt"),
        ("/d/step3/x1.bin", "/d/step*/x*.bin"),
        ("/r/.git/objects/ab/tmp_obj_Xy12zQ", "/r/.git/objects/*/tmp_obj_*"),
        ("/t/sortAb1_Zq", "/t/sort*"),
        ("/d/log.lammps", "/d/log.lammps"),
        ("/d/0123456789abcdef0123", "/d/*"),
        ("table.db", "table.db"),
    ],
)
def test_what_varies_becomes_a_star(path: str, pattern: str) -> None:
    assert pattern_of(path) == pattern


def test_a_pattern_of_one_file_is_the_file() -> None:
    groups = groups_of(["/d/dump.1.txt", "/d/dump.2.txt", "/d/only.7.txt"])
    assert list(groups) == ["/d/dump.*.txt", "/d/dump.*.txt", "/d/only.7.txt"]


def test_a_database_stays_with_its_journal_and_nothing_else() -> None:
    groups = groups_of(["/d/t.db", "/d/t.db-journal", "/d/other.txt"])
    bundles = bundles_of(groups)
    assert bundles["/d/t.db"] == bundles["/d/t.db-journal"] != bundles["/d/other.txt"]


def test_a_renamed_file_keeps_its_folder_together() -> None:
    groups = groups_of(["/d/a/new.part", "/d/a/old.dat", "/d/a/deep/x.dat", "/e/y.dat"])
    bundles = bundles_of(groups, renamed=["/d/a/new.part"])
    assert len({bundles[g] for g in ("/d/a/new.part", "/d/a/old.dat", "/d/a/deep/x.dat")}) == 1
    assert bundles["/e/y.dat"] != bundles["/d/a/new.part"]


def test_the_user_may_keep_files_together() -> None:
    groups = groups_of(["/d/mesh.bin", "/d/state.bin", "/d/notes.txt"])
    bundles = bundles_of(groups, together=["*.bin"])
    assert bundles["/d/mesh.bin"] == bundles["/d/state.bin"] != bundles["/d/notes.txt"]


def test_a_pattern_that_no_file_has_keeps_nothing_together() -> None:
    """It was passed over: whoever misspelt it had his files apart."""
    with pytest.raises(UserError, match=r"--together \*\.hdf: no file of the trace"):
        bundles_of(groups_of(["/d/mesh.bin"]), together=["*.bin", "*.hdf"])
