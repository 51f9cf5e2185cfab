"""`tiercel site new` on machines that are not there: programs that answer as their schedulers do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tiercel.cli.site import new
from tiercel.errors import UserError
from tiercel.schedulers import scheduler_of
from tiercel.site import load_site
from tiercel.site.model import Storage
from tiercel.site.new import new_site
from tiercel.site.profile import check_profile
from tiercel.site.survey import Survey, survey

from ..conftest import CHECKOUT

SINFO = """\
pdebug|16|56|128000|1:00:00
pbatch*|1480+|56|128000+|1-00:00:00
"""


class Machine:
    """A project, and a PATH with nothing but a machine's own programs."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root, self.bin = root / "project", root / "bin"
        (self.root / "site-configs").mkdir(parents=True)
        (self.root / "Snakefile").touch()
        self.bin.mkdir()
        monkeypatch.setenv("PATH", str(self.bin))
        monkeypatch.setenv("LOADEDMODULES", "gcc/12.1:openmpi/4.1")

    def program(self, name: str, says: str = "", code: int = 0) -> None:
        (self.bin / f"{name}.txt").write_text(says)
        # Its words are kept: a survey must submit nothing.
        (self.bin / name).write_text(
            f'#!/bin/sh\necho "{name} $*" >>"{self.bin}/calls"\n'
            f'while IFS= read -r line; do echo "$line"; done <"{self.bin}/{name}.txt"\nexit {code}\n'
        )
        (self.bin / name).chmod(0o755)

    def calls(self) -> list[str]:
        path = self.bin / "calls"
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


def test_slurm(machine: Machine) -> None:
    for name in ("sbatch", "squeue", "scancel"):
        machine.program(name)
    machine.program("sinfo", SINFO)
    machine.program("srun", "MPI plugin types are...\n\tnone\n\tpmi2\n\tpmix\n")
    found = survey()
    folder = new_site("newton", machine.root, found)
    site = load_site("newton", machine.root)
    assert (site.launcher, site.launcher_options) == ("srun", ["--mpi=pmi2"])
    assert site.scheduler is not None
    # The partition with the star is the default one; a day, as sinfo says.
    assert (site.scheduler.partition, site.scheduler.walltime) == ("pbatch", 86400)
    assert (site.nodes, site.processes_per_node, site.memory_per_node) == (1480, 56, 128000 * 1024**2)
    text = (folder / "site.yaml").read_text()
    assert "# QUESTION: other partitions: pbatch, pdebug" in text
    assert "# Modules that were loaded: gcc/12.1, openmpi/4.1" in text
    profile = yaml.safe_load((folder / "config.yaml").read_text())
    assert profile["executor"] == "slurm"
    check_profile("newton", machine.root)
    assert (machine.root / "newton").readlink() == Path("site-configs/newton")
    assert all(call.split()[0] in ("sinfo", "srun") for call in machine.calls())
    assert "srun --mpi=list" in machine.calls()


def test_slurm_that_does_not_answer(machine: Machine) -> None:
    machine.program("sbatch")
    machine.program("sinfo", "slurm_load_partitions: Unable to contact slurm controller\n", code=1)
    found = survey()
    assert found.scheduler == "slurm"
    assert any("sinfo named no partition" in question for question in found.questions)
    alone = survey("none")
    assert (alone.scheduler, alone.launcher) == ("", "auto")
    assert alone.storages and not any("sinfo" in question for question in alone.questions)
    new_site("quiet", machine.root, found)
    assert load_site("quiet", machine.root).scheduler is not None


@pytest.mark.parametrize(
    ("programs", "scheduler", "launcher", "scripts"),
    [
        (("bsub", "jsrun"), "lsf", "jsrun", "bsub"),
        (("flux",), "flux", "flux", "flux batch"),
        (("qsub", "aprun"), "cobalt", "aprun", "qsub"),
        (("sbatch", "ibrun"), "slurm", "ibrun", "sbatch"),
        (("qsub", "qconf"), "gridengine", "auto", "qsub"),  # by scripts that the scheduler brings
        (("qsub", "qstat pbs_version = 23\n"), "pbs", "auto", "select="),
    ],
)
def test_schedulers_with_scripts(
    machine: Machine,
    programs: tuple[str, ...],
    scheduler: str,
    launcher: str,
    scripts: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in programs:
        program, _, answer = name.partition(" ")
        machine.program(program, answer)
    monkeypatch.chdir(machine.root)
    new("other")
    folder, site = machine.root / "site-configs" / "other", load_site("other", machine.root)
    assert site.launcher == launcher
    assert site.scheduler is not None and site.scheduler.name == scheduler
    assert scheduler_of(site) is not None
    profile = yaml.safe_load((folder / "config.yaml").read_text())
    assert profile["executor"] == "cluster-generic"
    for name in ("submit", "status", "cancel"):
        script = folder / name
        assert script.stat().st_mode & 0o111
        subprocess.run(["/bin/sh", "-n", str(script)], check=True)
    assert scripts in (folder / "submit").read_text()
    check_profile("other", machine.root)


_FLUX = """#!/bin/sh
case "$1 $2" in
  'resource list') echo '2|4' ;;
  'queue list') printf 'pdebug|inf\\npbatch*|7200.0\\n' ;;
  *) exit 1 ;;
esac
"""


def test_a_flux_that_answers_is_the_scheduler_where_slurms_programs_are_too(machine: Machine) -> None:
    """What Flux 0.88 answers on two nodes of two cores, and a Slurm that is installed and not running."""
    machine.program("sbatch")
    machine.program("sinfo", "slurm_load_partitions: Unable to contact slurm controller\n", code=1)
    (machine.bin / "flux").write_text(_FLUX)
    (machine.bin / "flux").chmod(0o755)
    found = survey()
    assert (found.scheduler, found.launcher, found.partition) == ("flux", "flux", "pbatch")
    assert (found.nodes, found.cores, found.walltime_minutes) == (2, 2, 120)
    assert "other queues: pbatch, pdebug" in found.questions


def test_a_flux_that_does_not_answer_is_no_scheduler_where_slurm_is_one(machine: Machine) -> None:
    machine.program("flux", "flux-resource: ERROR: Unable to connect to Flux\n", code=1)
    machine.program("sbatch")
    machine.program("sinfo", SINFO)
    assert survey().scheduler == "slurm"


_QSTAT = """#!/bin/sh
case "$*" in
  --version) echo 'pbs_version = 23.06.06' ;;
  '-B -f') printf 'Server: head\n    default_queue = workq\n    scheduling = True\n' ;;
  '-Q -f workq') printf 'Queue: workq\n    resources_max.walltime = 06:00:00\n' ;;
esac
"""


def test_pbs_names_its_nodes_and_queue(machine: Machine) -> None:
    machine.program("qsub")
    (machine.bin / "qstat").write_text(_QSTAT)
    (machine.bin / "qstat").chmod(0o755)
    node = "{}\n     Mom = {}\n     resources_available.mem = {}kb\n     resources_available.ncpus = {}\n\n"
    machine.program(
        "pbsnodes", "".join(node.format(n, n, mem, cpus) for n, mem, cpus in [
            ("n1", 2097152, 64), ("big", 8388608, 64), ("n2", 2097152, 64), ("gpu", 4194304, 32),
        ]),
    )  # fmt: skip
    found = survey()
    assert (found.scheduler, found.launcher, found.partition) == ("pbs", "auto", "workq")
    # The most frequent kind: two nodes of 64 processors and 2 GiB.
    assert (found.nodes, found.cores, found.memory_mib, found.walltime_minutes) == (2, 64, 2048, 360)
    assert "other nodes, by processors: 1 of 64, 1 of 32 (what a job asks for: chunk= in submit)" in (
        found.questions
    )


def test_torque_is_not_taken_for_pbs_nor_for_cobalt(machine: Machine) -> None:
    machine.program("qsub")
    machine.program("qstat", "Version: 6.1.2\n")
    found = survey()
    assert found.scheduler == ""
    assert any("qsub" in question for question in found.questions)


def test_names_of_a_new_site_are_short_and_its_own(machine: Machine) -> None:
    def storage(kind: str, point: str) -> Storage:
        return Storage(type=kind, mount=point, scratch=f"{point}/x")

    found = Survey(storages={
        "btrfs-tmp-a-mnt-btrfs": storage("btrfs", "/tmp/a/mnt/btrfs"),
        "xfs-mnt-data-1": storage("xfs", "/mnt/data/1"),
        "xfs-srv-1": storage("xfs", "/srv/1"),
        "xfs-root": storage("xfs", "/"),
    })  # fmt: skip
    new_site("mine", machine.root, found)
    assert list(load_site("mine", machine.root).storages) == ["btrfs", "xfs-1", "xfs-srv-1", "xfs-root"]


def test_a_laptop(machine: Machine) -> None:
    new_site("mine", machine.root, survey())
    site = load_site("mine", machine.root)
    # What was found is written down, to be named and cut by a person.
    assert site.scheduler is None and not site.discover and site.storages
    assert "# QUESTION: are these the storage systems" in (machine.root / "mine" / "site.yaml").read_text()
    profile = yaml.safe_load((machine.root / "mine" / "config.yaml").read_text())
    assert "executor" not in profile


def test_storage_of_a_cluster(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Network file systems come from the mounts; the login node's disk says nothing of the other nodes'."""
    monkeypatch.setenv("USER", "alice")
    storages = {
        "lustre-p": Storage(type="lustre", mount="/p", scratch="/p/alice/tiercel-1", medium="network"),
    }
    found = Survey(scheduler="slurm", launcher="srun", nodes=4, cores=8, storages=storages)
    new_site("known", machine.root, found)
    storage = load_site("known", machine.root).storages["lustre"]
    assert storage.scratch == "/p/$USER/tiercel-1"  # the file is for everybody
    assert storage.shared


def test_a_cluster_without_storage_asks_for_it(machine: Machine) -> None:
    found = Survey(scheduler="slurm", launcher="srun")
    folder = new_site("bare", machine.root, found)
    assert load_site("bare", machine.root).storages["shared"].mount == "$TIERCEL_SHARED"
    assert "QUESTION" in (folder / "site.yaml").read_text()


def test_what_asks_for_a_storage_names_the_one_that_stands_for_it(machine: Machine) -> None:
    """It said "add the shared storage" of a file that has one, which stands for what was not found."""
    for name in ("sbatch", "sinfo"):
        machine.program(name)
    folder = new_site("bare", machine.root, survey())
    if [*load_site("bare", machine.root).storages] != ["shared"]:
        pytest.skip("this machine has a network file system")
    text = (folder / "site.yaml").read_text()
    assert "QUESTION: no network file system was found" in text and "give `shared` the type" in text


def test_names_that_will_not_do(machine: Machine) -> None:
    with pytest.raises(UserError, match="lower-case"):
        new_site("My Cluster", machine.root, Survey())
    new_site("twice", machine.root, Survey())
    before = (machine.root / "site-configs" / "twice" / "site.yaml").read_text()
    with pytest.raises(UserError, match="is there already"):
        new_site("twice", machine.root, Survey())
    (machine.root / "taken").mkdir()
    with pytest.raises(UserError, match="is there already"):
        new_site("taken", machine.root, Survey())
    assert (machine.root / "site-configs" / "twice" / "site.yaml").read_text() == before


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
@pytest.mark.parametrize("place", [".", "site-configs"])
def test_a_checkout_that_may_only_be_read(machine: Machine, place: str) -> None:
    """Nothing is begun that cannot be ended: neither a folder without its link nor the other way round."""
    (machine.root / place).chmod(0o555)
    try:
        with pytest.raises(UserError, match="cannot be written to: a new site needs a project of your own"):
            new_site("mine", machine.root, Survey())
        assert not (machine.root / "mine").is_symlink()
        assert not list((machine.root / "site-configs").iterdir())
    finally:
        (machine.root / place).chmod(0o755)


def test_the_command_plans_what_it_wrote(tmp_path: Path) -> None:
    """As a user types it, on this machine, up to a plan for the new site."""
    root = tmp_path / "project"
    (root / "site-configs").mkdir(parents=True)
    (root / "Snakefile").symlink_to(CHECKOUT / "Snakefile")
    (root / "workflows").symlink_to(CHECKOUT / "workflows")

    def tiercel(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "tiercel", *words],
            cwd=root,
            capture_output=True,
            text=True,
            check=False,
        )

    made = tiercel("site", "new", "here")
    assert made.returncode == 0, made.stderr
    assert "next: edit site-configs/here/site.yaml" in made.stdout
    assert "here" in tiercel("site", "list").stdout.split()
    plan = tiercel("plan", "--site", "here", "--json")
    assert plan.returncode == 0, plan.stderr
    assert '"site": "here"' in plan.stdout
    again = tiercel("site", "new", "here")
    assert again.returncode == 2
    assert "is there already" in again.stderr
