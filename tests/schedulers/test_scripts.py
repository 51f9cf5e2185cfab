"""The sites' submit, status and cancel scripts: the exact commands that they give, by recording stand-ins."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tiercel.schedulers import Job, Request, schedulers
from tiercel.schedulers.flux import Flux
from tiercel.schedulers.pbs import PBS
from tiercel.schedulers.slurm import Slurm
from tiercel.site import load_site
from tiercel.site.folder import site_files, write_folder

SITES = Path(__file__).resolve().parents[2] / "site-configs"

#: Writes its words, one a line, and what it reads; then says what the test put into `answer`.
STAND_IN = """#!/bin/sh
{ echo "$0" | sed 's|.*/||'; printf '%s\\n' "$@"; } >"$RECORD/words"
case ${0##*/} in bsub | qsub) cat >"$RECORD/input" ;; esac
if [ -f "$RECORD/${0##*/}.answer" ]; then cat "$RECORD/${0##*/}.answer"; exit 0; fi
cat "$RECORD/answer"
exit "$(cat "$RECORD/code")"
"""


class Machine:
    """A PATH on which a scheduler's commands are recording stand-ins."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bin = folder / "bin"
        self.bin.mkdir()
        (folder / ".snakemake").mkdir()
        for name in (
            "bsub",
            "bjobs",
            "bkill",
            "flux",
            "qsub",
            "qstat",
            "qdel",
            "qconf",
            "qacct",
            "pbsnodes",
            "sbatch",
            "squeue",
            "scancel",
            "sacct",
        ):
            (self.bin / name).write_text(STAND_IN)
            (self.bin / name).chmod(0o755)

    def call(
        self, script: Path, *words: str, answer: str = "", code: int = 0, account: str = ""
    ) -> subprocess.CompletedProcess[str]:
        (self.folder / "answer").write_text(answer)
        (self.folder / "code").write_text(str(code))
        environment = {
            "PATH": f"{self.bin}:/usr/bin:/bin",
            "RECORD": str(self.folder),
            **({"TIERCEL_ACCOUNT": account} if account else {}),
        }
        return subprocess.run(
            [script, *words], env=environment, cwd=self.folder, capture_output=True, text=True, check=False
        )

    @property
    def words(self) -> list[str]:
        return (self.folder / "words").read_text().splitlines()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.fixture
def jobscript(tmp_path: Path) -> Path:
    """A job script in a folder with characters that a careless script trips over."""
    folder = tmp_path / "a b'c$d"
    folder.mkdir()
    path = folder / "job.sh"
    path.write_text("#!/bin/sh\n# properties = {}\ntrue\n")
    return path


def test_lassen_submits_by_nodes(machine: Machine, jobscript: Path) -> None:
    done = machine.call(
        SITES / "lassen" / "submit", "4", "30", "pbatch", str(jobscript),
        answer="Job <1234> is submitted to queue <pbatch>.\n", account="guests",
    )  # fmt: skip
    assert done.stdout == "1234\n"
    expected = "bsub -nnodes 4 -W 30 -J tiercel-lassen -o .snakemake/lsf-%J.log -q pbatch -G guests"
    assert machine.words == [
        *expected.split(), "-stage", "storage=1400", "-core_isolation", "0",
    ]  # fmt: skip
    assert (machine.folder / "input").read_text() == jobscript.read_text()


def test_summit_names_its_project_and_its_burst_buffer(machine: Machine, jobscript: Path) -> None:
    done = machine.call(
        SITES / "summit" / "submit", "2", "120", "batch", str(jobscript),
        answer="Job <7> is submitted to queue <batch>.\n", account="ABC123",
    )  # fmt: skip
    assert done.stdout == "7\n"
    assert machine.words[-6:] == ["-q", "batch", "-P", "ABC123", "-alloc_flags", "NVME"]


@pytest.mark.parametrize("site", ["theta", "thetagpu"])
def test_cobalt(machine: Machine, jobscript: Path, site: str) -> None:
    done = machine.call(
        SITES / site / "submit", "8", "60", "default", str(jobscript),
        answer="Warning: something\n4711\n", account="proj",
    )  # fmt: skip
    assert done.stdout == "4711\n"
    assert machine.words[:8] == f"qsub -n 8 -t 60 --mode script --jobname tiercel-{site} -A".split()[:8]
    assert machine.words[-1] == str(jobscript)
    assert "-q" not in machine.words


def test_frontera_submits_by_nodes_and_tasks(machine: Machine, jobscript: Path) -> None:
    done = machine.call(
        SITES / "frontera" / "submit", "2", "56", "30", "normal", str(jobscript),
        answer="--- Welcome ---\n55;cluster\n", account="acc",
    )  # fmt: skip
    assert done.stdout == "55\n"
    expected = "sbatch --parsable --no-requeue -N 2 --ntasks-per-node=56 -t 30 -J tiercel-frontera"
    expected += " -o .snakemake/slurm-%j.log"
    assert machine.words == [*expected.split(), "-p", "normal", "-A", "acc", str(jobscript)]


def test_flux(machine: Machine, jobscript: Path, tmp_path: Path) -> None:
    write_folder(tmp_path / "here", site_files("here", "flux"))
    done = machine.call(
        tmp_path / "here" / "submit",
        "2",
        "15",
        "pbatch",
        "none",
        str(jobscript),
        answer="f3ETxsR9H\n",
        account="bank",
    )
    assert done.stdout == "f3ETxsR9H\n"
    assert machine.words == [
        "flux", "batch", "--nodes=2", "--exclusive", "--time-limit=15m", "--job-name=tiercel-here",
        "--output=.snakemake/flux-{{id}}.log", "--queue=pbatch", "--bank=bank", str(jobscript),
    ]  # fmt: skip


def test_flux_makes_the_storage_of_a_job(machine: Machine, jobscript: Path) -> None:
    directive = "#DW jobdw type=xfs capacity=1TiB name=tiercel"
    done = machine.call(
        SITES / "tuolumne" / "submit", "1", "15", "default", directive, str(jobscript), answer="f1\n"
    )
    assert done.stdout == "f1\n"
    assert machine.words[-2:] == [f"--setattr=dw={directive}", str(jobscript)]


def test_flux_asks_for_the_storage_that_a_job_measures() -> None:
    site = load_site("tuolumne", SITES.parent)
    assert site.scheduler is not None
    rabbit = {"rabbit": site.storages["rabbit"]}
    asked = [
        Flux().resources(Request(site, site.scheduler, 1, 10, some))["allocate"] for some in ({}, rabbit)
    ]
    # A word of a shell's command line.
    assert asked == ["none", "'#DW jobdw type=xfs capacity=1TiB name=tiercel'"]


@pytest.mark.parametrize(
    ("state", "code", "expected"),
    [
        ("RUN", 0, "running"), ("PEND", 0, "running"), ("SSUSP", 0, "running"), ("UNKWN", 0, "running"),
        ("DONE", 0, "success"), ("EXIT", 0, "failed"),
        ("Job <1> is not found", 255, "failed"),
        ("LSF is down. Please wait", 255, "running"),  # it may run: it must not be submitted again
    ],
)  # fmt: skip
def test_status_of_lsf(machine: Machine, state: str, code: int, expected: str) -> None:
    done = machine.call(SITES / "lassen" / "status", "1", answer=state + "\n", code=code)
    assert done.stdout == expected + "\n"
    assert machine.words == ["bjobs", "-noheader", "-o", "stat", "1"]


@pytest.mark.parametrize(
    ("answer", "code", "expected"),
    [
        ("RUN ", 0, "running"),
        ("SCHED ", 0, "running"),
        ("INACTIVE COMPLETED", 0, "success"),
        ("INACTIVE TIMEOUT", 0, "failed"),
        ("INACTIVE CANCELED", 0, "failed"),
        # A Flux that was started anew has forgotten the job: who waits for it would wait for ever.
        ("JobID f2222aa unknown", 1, "failed"),
        ("flux-jobs: error: argument JOBID: invalid JobID value: 'fzz0l'", 2, "failed"),
        # It may run: it must not be submitted again.
        ("flux-jobs: ERROR: Unable to connect to Flux: ENOENT: No such file or directory", 1, "running"),
        (
            "flux-jobs: ERROR: Unable to connect to Flux: broker socket /run/flux/local was not found",
            1,
            "running",
        ),
    ],
)
def test_status_of_flux(machine: Machine, tmp_path: Path, answer: str, code: int, expected: str) -> None:
    """Answers of Flux 0.88."""
    write_folder(tmp_path / "here", site_files("here", "flux"))
    done = machine.call(tmp_path / "here" / "status", "f1", answer=answer + "\n", code=code)
    assert done.stdout == expected + "\n"


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("RUNNING", "running"),
        ("COMPLETED", "success"),
        ("NODE_FAIL", "failed"),
        ("PREEMPTED", "failed"),
        ("", "running"),
    ],
)
def test_status_of_slurm(machine: Machine, state: str, expected: str) -> None:
    assert machine.call(SITES / "frontera" / "status", "5", answer=state).stdout == expected + "\n"


def test_status_of_cobalt_reads_the_log_of_an_ended_job(machine: Machine) -> None:
    status = SITES / "theta" / "status"
    assert machine.call(status, "9", answer="9  user 00:10:00 4 running\n").stdout == "running\n"
    assert machine.call(status, "9", code=1).stdout == "failed\n"  # neither known nor a log
    log = machine.folder / "9.cobaltlog"
    log.write_text("Info: task completed normally with an exit code of 0; initiating job cleanup\n")
    assert machine.call(status, "9", code=1).stdout == "success\n"
    log.write_text("Info: task completed normally with an exit code of 1; initiating job cleanup\n")
    assert machine.call(status, "9", code=1).stdout == "failed\n"


@pytest.fixture
def gridengine(tmp_path: Path) -> Path:
    """The scripts that `tiercel site new --scheduler gridengine` writes."""
    own = schedulers.get("gridengine").scripts
    write_folder(tmp_path / "here", site_files("here", "gridengine", scripts=own))
    return tmp_path / "here"


def test_grid_engine_submits_to_the_environment_of_whole_nodes(
    machine: Machine, gridengine: Path, jobscript: Path
) -> None:
    """Of those that qconf lists, the one with the most slots a node; 3 nodes of 28 are 84 slots."""
    (machine.bin / "qconf").write_text(
        "#!/bin/sh\ncase $* in -spl) printf 'smp\\npairs\\nwhole\\n' ;; '-sp smp') r='$pe_slots' ;; "
        "'-sp pairs') r=2 ;; '-sp whole') r=28 ;; esac\n"
        '[ -z "${r:-}" ] || printf "pe_name x\\nslots 999\\nallocation_rule    %s\\n" "$r"\n'
    )
    done = machine.call(
        gridengine / "submit", "3", "30", "all.q", str(jobscript), answer="4711\n", account="proj"
    )
    assert done.stdout == "4711\n", done.stderr
    expected = "qsub -terse -cwd -V -S /bin/sh -r n -N tiercel-here -j y -o .snakemake/ -pe whole 84"
    expected += " -l h_rt=1800 -q all.q -P proj"
    assert machine.words == [*expected.split(), str(jobscript)]
    assert (machine.folder / ".snakemake" / "tiercel-here.jobs").read_text() == "4711\n"
    refused = machine.call(
        gridengine / "submit", "3", "30", "closed", str(jobscript), code=1,
        answer='Unable to run job: Job was rejected because job requests unknown queue "closed".\nExiting.\n',
    )  # fmt: skip
    assert (refused.returncode, refused.stdout) == (1, "")
    assert 'submit: Job was rejected because job requests unknown queue "closed".' in refused.stderr


def test_grid_engine_without_whole_nodes_is_told(machine: Machine, gridengine: Path, jobscript: Path) -> None:
    (machine.folder / "qconf.answer").write_text("allocation_rule    $fill_up\n")
    done = machine.call(gridengine / "submit", "1", "30", "default", str(jobscript))
    assert done.returncode == 1
    assert done.stderr.startswith(
        "submit: no parallel environment: no allocation_rule of so many slots a node"
    )


@pytest.mark.parametrize(
    ("answer", "code", "accounted", "expected"),
    [
        ("job_number: 5\n", 0, "", "running"),
        ("job_number: 5\nerror reason 1: can't chdir\n", 0, "", "failed"),  # Eqw: it never begins
        # It may run: it must not be submitted again.
        ("error: commlib error: got select error (Connection refused)\n", 1, "", "running"),
        ("Following jobs do not exist: \n5\n", 1, "failed 0\nexit_status  0\n", "success"),
        ("Following jobs do not exist: \n5\n", 1, "failed 0\nexit_status  1\n", "failed"),
        ("Following jobs do not exist: \n5\n", 1, "failed 37 : enforced h_rt\nexit_status 0\n", "failed"),
    ],
)  # fmt: skip
def test_status_of_grid_engine(
    machine: Machine, gridengine: Path, answer: str, code: int, accounted: str, expected: str
) -> None:
    """Answers of Grid Engine 8.1.9."""
    if accounted:
        (machine.folder / "qacct.answer").write_text(accounted)
    done = machine.call(gridengine / "status", "5", answer=answer, code=code)
    assert done.stdout == expected + "\n"


@pytest.fixture
def pbs(tmp_path: Path) -> Path:
    """The scripts that `tiercel site new --scheduler pbs` writes."""
    own = schedulers.get("pbs").scripts
    write_folder(tmp_path / "here", site_files("here", "pbs", scripts=own))
    return tmp_path / "here"


NODES = """\
small
     resources_available.mem = 1024kb
     resources_available.ncpus = 2

n1
     resources_available.host = n1
     resources_available.mem = 500gb
     resources_available.ncpus = 64
     resources_assigned.ncpus = 64

n2
     resources_available.mem = 24684092kb
     resources_available.ncpus = 64
"""


def test_pbs_submits_whole_nodes(machine: Machine, pbs: Path, jobscript: Path) -> None:
    (machine.folder / "pbsnodes.answer").write_text(NODES)
    done = machine.call(
        pbs / "submit", "3", "95", "workq", str(jobscript), answer="12.head\n", account="proj"
    )
    assert done.stdout == "12.head\n", done.stderr
    expected = "qsub -N tiercel-here -S /bin/sh -V -r n -j oe -k doe -o .snakemake/"
    # Of the nodes with the most processors, 64, the least memory, 24684092 kB in whole MB: of more
    # OpenPBS 23.06 says that it can never run. 95 minutes are 1 h 35.
    expected += (
        " -l select=3:ncpus=64:mem=24105mb -l place=scatter:exclhost -l walltime=1:35:00 -q workq -A proj"
    )
    assert machine.words == expected.split()
    assert (machine.folder / "input").read_text().endswith(jobscript.read_text())
    assert (machine.folder / ".snakemake" / "tiercel-here.jobs").read_text() == "12.head\n"
    refused = machine.call(
        pbs / "submit", "3", "30", "closed", str(jobscript), code=1, answer="qsub: Unknown queue\n"
    )
    assert (refused.returncode, refused.stdout, refused.stderr) == (1, "", "submit: Unknown queue\n")


@pytest.mark.parametrize(("site", "systems"), [("polaris", "home:eagle"), ("aurora", "home:flare")])
def test_argonne_names_the_system_and_its_file_systems(
    machine: Machine, jobscript: Path, site: str, systems: str
) -> None:
    done = machine.call(
        SITES / site / "submit", "2", "60", "prod", str(jobscript), answer="12.pbs-01.example\n", account="p"
    )
    assert done.stdout == "12.pbs-01.example\n", done.stderr
    expected = (
        f"-l filesystems={systems} -l select=2:system={site} -l place=scatter:exclhost -l walltime=1:0:00"
    )
    assert " ".join(machine.words).endswith(f"{expected} -q prod -A p")
    # But for what the site asks for its scripts are those of the adapter.
    own = schedulers.get("pbs").scripts
    head, body = (SITES / site / "submit").read_text().split("\nsite=", 1)
    assert body == own["submit"].split("\nsite=", 1)[1]
    assert [line.partition("=")[0] for line in head.splitlines()[-2:]] == ["chunk", "options"]
    assert all((SITES / site / name).read_text() == own[name] for name in ("status", "cancel"))


def test_pbs_without_nodes_asks_what_a_node_has(machine: Machine, pbs: Path, jobscript: Path) -> None:
    done = machine.call(pbs / "submit", "1", "30", "default", str(jobscript))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("submit: pbsnodes names no processors")


_GONE = "qstat: Unknown Job Id 5.head\n"
_FINISHED = "qstat: 5.head Job has finished, use -x or -H to obtain historical job information\n"
_NO_HISTORY = "qstat: PBS is not configured to maintain job history 5.head\n"


@pytest.mark.parametrize(
    ("now", "before", "noted", "expected"),
    [
        ("    job_state = R\n", "", "", "running"),
        ("    job_state = Q\n    comment = Not Running: no node\n", "", "", "running"),
        ("    job_state = E\n    Exit_status = 1\n", "", "", "running"),  # its files are on their way
        # It may run: it must not be submitted again.
        ("Connection refused\nqstat: cannot connect to server head (errno=15010)\n", "", "0", "running"),
        (_FINISHED, "    job_state = F\n    Exit_status = 0\n", "", "success"),
        (_FINISHED, "    job_state = F\n    Exit_status = 271\n", "", "failed"),
        (_FINISHED, "    job_state = F\n    substate = 91\n", "", "failed"),  # removed before it began
        # Without a history of jobs: what the job noted itself.
        (_GONE, _NO_HISTORY, "0", "success"),
        (_GONE, _NO_HISTORY, "1", "failed"),
        (_GONE, _NO_HISTORY, "", "failed"),  # killed
    ],
)
def test_status_of_pbs(machine: Machine, pbs: Path, now: str, before: str, noted: str, expected: str) -> None:
    """Answers of OpenPBS 23.06."""
    if noted:
        (machine.folder / ".snakemake" / "pbs-5.head.code").write_text(f"{noted}\n")
    (machine.bin / "qstat").write_text(
        '#!/bin/sh\ncase $1 in -x) cat "$RECORD/before" ;; *) cat "$RECORD/answer" ;; esac\n'
    )
    (machine.folder / "before").write_text(before)
    done = machine.call(pbs / "status", "5.head", answer=now)
    assert done.stdout == expected + "\n"


@pytest.mark.parametrize(
    ("state", "comment", "expected"),
    [
        ("R", "Job run at Sat Nov 28 at 10:44 on (head:ncpus=2)", Job("5.head", True)),
        ("Q", "Not Running: Insufficient amount of resource: ncpus",
         Job("5.head", False, "Not Running: Insufficient amount of resource: ncpus")),
        ("Q", "Can Never Run: Insufficient amount of resource: mem (R: 24684092kb A: 24105mb T: 24105mb)",
         Job("5.head", False, "Can Never Run: Insufficient amount of resource: mem (R: 24684092kb A: 24105mb "
             "T: 24105mb)", stuck=True)),
        ("H", "", Job("5.head", False, "held", stuck=True)),
    ],
)  # fmt: skip
def test_pbs_names_why_a_job_waits(
    machine: Machine, pbs: Path, state: str, comment: str, expected: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Comments of OpenPBS 23.06."""
    said = f"Job Id: 5.head\n    job_state = {state}\n" + (f"    comment = {comment}\n" if comment else "")
    (machine.bin / "qstat").write_text(f"#!/bin/sh\ncat <<'E'\n{said}E\n")
    (machine.folder / "site-configs").mkdir()
    pbs.rename(machine.folder / "site-configs" / "here")
    (machine.folder / ".snakemake" / "tiercel-here.jobs").write_text("5.head\n")
    monkeypatch.setenv("PATH", f"{machine.bin}:/usr/bin:/bin")
    assert PBS().left_behind("here", machine.folder) == [expected]


@pytest.mark.parametrize(
    ("state", "reason", "expected"),
    [
        ("RUNNING", "None", Job("7", True)),
        ("PENDING", "None", Job("7", False)),
        ("PENDING", "Priority", Job("7", False, "Priority")),
        ("PENDING", "PartitionConfig", Job("7", False, "PartitionConfig", stuck=True)),
    ],
)
def test_slurm_names_why_a_job_waits(
    machine: Machine, state: str, reason: str, expected: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    (machine.bin / "squeue").write_text(
        f"#!/bin/sh\necho '7|{state}|tiercel-here_1|{reason}|{machine.folder}'\n"
    )
    monkeypatch.setenv("PATH", f"{machine.bin}:/usr/bin:/bin")
    assert Slurm().left_behind("here", machine.folder) == [expected]


@pytest.mark.parametrize("ends", [0, 3])
def test_a_job_of_pbs_notes_how_it_ended(machine: Machine, pbs: Path, jobscript: Path, ends: int) -> None:
    jobscript.write_text(f"#!/bin/sh\npwd\nexit {ends}\n")
    (machine.folder / "pbsnodes.answer").write_text(NODES)
    machine.call(pbs / "submit", "1", "30", "default", str(jobscript), answer="5.head\n")
    done = subprocess.run(
        ["sh", machine.folder / "input"], cwd="/", capture_output=True, text=True, check=False,
        env={"PATH": "/usr/bin:/bin", "PBS_O_WORKDIR": str(machine.folder), "PBS_JOBID": "5.head"},
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (ends, f"{machine.folder}\n")
    assert (machine.folder / ".snakemake" / "pbs-5.head.code").read_text() == f"{ends}\n"


@pytest.mark.parametrize(
    ("site", "program"),
    [("lassen", "bkill"), ("summit", "bkill"), ("theta", "qdel"), ("frontera", "scancel")],
)
def test_cancel(machine: Machine, site: str, program: str) -> None:
    machine.call(SITES / site / "cancel", "1", "2")
    assert machine.words == [program, "1", "2"]


@pytest.mark.parametrize("site", ["lassen", "sierra", "summit", "theta", "thetagpu"])
def test_a_refused_job_fails_and_prints_no_number(machine: Machine, jobscript: Path, site: str) -> None:
    done = machine.call(SITES / site / "submit", "4", "30", "closed", str(jobscript), code=255)
    assert done.returncode == 255
    assert done.stdout == ""


def test_an_answer_without_a_number_is_told(machine: Machine, jobscript: Path) -> None:
    done = machine.call(SITES / "lassen" / "submit", "4", "30", "q", str(jobscript), answer="hello\n")
    assert done.returncode == 1
    assert "bsub gave no job number: hello" in done.stderr


def test_scripts_are_executable_shell() -> None:
    for name in ("submit", "status", "cancel"):
        for script in SITES.glob(f"*/{name}"):
            assert os.access(script, os.X_OK), script
            subprocess.run(["sh", "-n", script], check=True)
