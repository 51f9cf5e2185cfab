"""A subject in a folder of another package: workload, engine, metric, section, finding, command."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tiercel.columns import NUMBER, Column, Declared
from tiercel.results.observations import load_observations

from .conftest import ONE, Project

LINKS = Path(__file__).parent / "data" / "subject"
STUDY = """
    study: chains
    title: Names behind links
    repetitions: {minimum: 2, maximum: 2}
    twins: false
    engines: [follower]
    experiments:
      names:
        processes_per_node: [1]
        workloads:
          long: {operation: links, chain: 5, names: 20}
    """


def installed(path: Path = LINKS) -> dict[str, str]:
    return {"PYTHONPATH": os.pathsep.join(filter(None, (str(path), os.environ.get("PYTHONPATH"))))}


def test_a_subject_in_a_folder_of_its_own_is_measured_and_reported(
    new_project: Callable[[str], Project], tmp_path: Path
) -> None:
    project = new_project("scratch")
    project.study("chains", STUDY)
    # Without it, the study is a mistake in one line.
    without = project.tiercel("plan", "--study", "chains")
    assert without.returncode == 2 and "operation 'links' is unknown" in without.stderr, without.stderr
    # One process is what the engine starts, whatever a study says: two are a mistake, not a number of two.
    project.study("pairs", STUDY.replace("chains", "pairs").replace("[1]", "[2]"))
    two = project.tiercel("plan", "--study", "pairs", env=installed())
    assert two.returncode == 2 and "processes_per_node: [1]" in two.stderr, two.stderr
    done = project.tiercel("evaluate", "--study", "chains", env=installed())
    assert done.returncode == 0, done.stderr
    found = load_observations(project.results)
    assert found["operation"].tolist() == ["link-open"] * 2 and found["chain"].tolist() == [5, 5]
    followed = found["links_per_second"] * found["total_time"]
    assert followed.tolist() == pytest.approx([5 * 20] * 2)
    page = (project.results / "report" / "index.html").read_text()
    assert "Links followed in a second" in page and "Names lead through 5 symbolic links." in page
    (tmp_path / "a").symlink_to(tmp_path)
    counted = project.tiercel("links", str(tmp_path), env=installed())
    assert counted.stdout == "1\n", counted.stderr
    # Gone again: other studies go on, and its results are not lost.
    project.study("tiny", ONE)
    other = project.tiercel("evaluate", "--study", "tiny")
    assert other.returncode == 0, other.stderr
    again = project.tiercel("collect", "--study", "chains", env=installed())
    assert again.returncode == 0, again.stderr
    whole = load_observations(project.results)
    assert sorted(whole["links_per_second"].dropna()) == sorted(found["links_per_second"])
    assert (whole["operation"] == "write").any()


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("nothing.there:subject", "No module named 'nothing'"),
        ("os.path:join", "is no tiercel.subjects.Subject"),
    ],
)
def test_a_broken_package_is_named(
    tmp_path: Path, named: str, said: str, new_project: Callable[[str], Project]
) -> None:
    info = tmp_path / "bad-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: bad\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[tiercel.subjects]\nbad = {named}\n")
    done = new_project("scratch").tiercel("engines", "list", env=installed(tmp_path))
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.startswith("tiercel: subject bad") and said in done.stderr


def test_one_name_has_one_meaning() -> None:
    found = Declared("metric", lambda: None)
    rate = Column("rate", NUMBER, "1/s", "of something")
    found.declare(rate)
    found.declare(rate)
    with pytest.raises(ValueError, match="'rate' is declared twice"):
        found.declare(Column("rate", NUMBER, "B/s", "of something else"))
    assert list(found) == [rate]
