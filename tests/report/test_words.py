"""Words of the report: labels that are too long for a figure still differ."""

from __future__ import annotations

from tiercel.pages.secured import unbroken
from tiercel.report.words import told_apart

DISK = "disk / with fairshare policy={} rate=400MiB"


def test_short_labels_stay() -> None:
    assert told_apart(["disk /", "tmpfs /tmp"], 44) == ["disk /", "tmpfs /tmp"]


def test_settings_that_all_share_go_first() -> None:
    labels = ["disk /", DISK.format("fifo"), DISK.format("job-fair")]
    assert told_apart(labels, 40) == [
        "disk /",
        "disk / with fairshare policy=fifo",
        "disk / with fairshare policy=job-fair",
    ]


def test_the_middle_goes_where_the_ends_differ() -> None:
    labels = [
        f"{name} /a/very/long/path/to/a/scratch/folder/{number}"
        for name, number in [("a", 1), ("b", 1), ("a", 2)]
    ]
    shorter = told_apart(labels, 20)
    assert len(set(shorter)) == 3
    assert all(len(label) == 20 for label in shorter)
    assert shorter[0] == "a /a/v…atch/folder/1"


def test_labels_never_become_equal() -> None:
    labels = ["x" * 30 + "1" + "y" * 30, "x" * 30 + "2" + "y" * 30]
    assert told_apart(labels, 20) == labels


def test_a_number_stays_with_its_unit_and_figures_stay_as_they_are() -> None:
    text = '<p>17 400 samples/s, 95 % of 2 s</p><path d="M 10 200 h 5 s 1 1"/><td>3 min 20 s</td>'
    assert unbroken(text) == (
        "<p>17\u00a0400\u00a0samples/s, 95\u00a0% of 2\u00a0s</p>"
        '<path d="M 10 200 h 5 s 1 1"/><td>3\u00a0min 20\u00a0s</td>'
    )
    assert unbroken('<a class="x" title="95 % of it">interval</a>') == (
        '<a class="x" title="95\u00a0% of it">interval</a>'  # as in the list of words
    )
    assert unbroken("<p>2 storages, 1 system</p>") == "<p>2 storages, 1 system</p>"


def test_scripts_and_styles_keep_their_blanks():
    script = '<script>const f = (x) => "0 0 480 190"; x < 3</script>'
    assert unbroken(f"<p>1 480 B</p>{script}<p>2 190 op/s</p>") == (
        f"<p>1\u00a0480\u00a0B</p>{script}<p>2\u00a0190\u00a0op/s</p>"
    )
