"""The summary in the terminal."""

import io

import pytest
from tests.report.synthetic import Synthetic, site, study

from tiercel.report.terminal import print_summary


class Terminal(io.StringIO):
    def isatty(self):
        return True


def printed(data, folder, out):
    print_summary(data.write(folder), site(), study(), out)
    return out.getvalue()


def test_it_fits_eighty_columns_and_is_plain_in_a_file(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    text = printed(Synthetic().whole(), tmp_path, io.StringIO())
    assert max(map(len, text.splitlines())) <= 80
    assert "\x1b" not in text
    assert text.splitlines()[-1] == "345 runs succeeded, 1 failed."
    assert "failed: 1 run failed on Project space (NFS)" in text
    rows = [line.split() for line in text.splitlines()]
    assert [row[1:3] for row in rows if row[:1] == ["scientific"]] == [["nfs-project", "517"]]
    assert "?" in text  # reads on NFS are not proven cold


def test_a_terminal_gets_bold_type(tmp_path, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[1m" in printed(Synthetic(repetitions=1, processes=(1,)).whole(), tmp_path, Terminal())


def test_nothing_measured(tmp_path):
    data = Synthetic()
    data.fail("nvme", "engine not found\x1b[2J")
    text = printed(data, tmp_path, io.StringIO())
    assert "0 runs succeeded, 1 failed." in text
    assert "No run has a result" in text
    assert "\x1b[2J" not in text


def test_a_title_does_nothing_to_the_terminal(tmp_path):
    """It is of a study that somebody else may have written."""
    folder = Synthetic(repetitions=1, processes=(1,), storages=("nvme",)).whole().write(tmp_path)
    out = io.StringIO()
    print_summary(folder, site(), study().model_copy(update={"title": "[/x] a\x1b[2Jb\n\u202ec"}), out)
    assert out.getvalue().startswith(r"[/x] a\x1b[2Jb\n\u202ec: medians at the largest scale")


def test_the_page_is_named_on_one_line(tmp_path):
    folder = tmp_path / ("long-" * 20) / "results"
    (folder / "report").mkdir(parents=True)
    (folder / "report" / "index.html").touch()
    text = printed(Synthetic(repetitions=1, processes=(1,)).whole(), folder, io.StringIO())
    assert f"Report: {folder / 'report' / 'index.html'}" in text.splitlines()


@pytest.mark.parametrize("storage", ["[bold]x[/bold]", "a\nb"])
def test_names_are_no_markup(tmp_path, storage):
    data = Synthetic(repetitions=1, processes=(1,), storages=("nvme",)).whole()
    for row in (*data.observations, *data.runs):
        row["storage"] = row["storage_label"] = storage
    text = printed(data, tmp_path, io.StringIO())
    assert storage.replace("\n", "\\n") in text


def test_other_causes_of_failures_are_told_or_counted(tmp_path):
    data = Synthetic(repetitions=1, processes=(1,)).whole()  # one has failed: no space
    for reason in ("ended with code 1", "ended with code 2", "ended with code 2", "ended by signal 9"):
        data.fail("nvme", reason)
    text = " ".join(printed(data, tmp_path, io.StringIO()).split())
    assert "failed: 2 runs failed on Node-local NVMe: ended with code 2" in text  # the commonest is first
    assert "failed: 1 run failed on Node-local NVMe: ended with code 1" in text
    assert "ended by signal 9" not in text  # the fourth
    assert "failed for one other reason: run `tiercel status" in text


def test_workloads_of_one_name_are_told_apart(tmp_path):
    """Each one was called "default", and only the first row of all said what was measured."""
    data = Synthetic(repetitions=1, processes=(1,), storages=("nvme",))
    for experiment in ("training", "scaling"):
        data.add(experiment, "default", "Default", "nvme", 1, 0, "a", [], operation="train",
                 samples_per_second=100.0)  # fmt: skip
    rows = [line.split() for line in printed(data, tmp_path, io.StringIO()).splitlines()]
    assert ["training", "default"] in rows and ["scaling", "default"] in rows
    assert len([row for row in rows if row[:3] == ["first", "epoch", "nvme"]]) == 2
