"""PBS Professional and OpenPBS, through Snakemake's cluster-generic executor and the site's own scripts.

Each node is one chunk (``-l select``), alone on its host (``-l place=scatter:exclhost``).
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from tiercel.schedulers.base import Job, Scheduler, schedulers
from tiercel.schedulers.scripts import ScriptsMixin

_SUBMIT = r"""#!/bin/sh
# Submits a job of Snakemake to PBS: submit NODES MINUTES QUEUE JOBSCRIPT. Prints the job's id, nothing else.
set -eu
# QUESTION: what must each node have? For example ncpus=128:mem=240gb, or system=NAME. Without an answer: all
# processors and the memory of the nodes that have the most processors.
chunk=
# QUESTION: does the site ask for more? For example -l filesystems=home:scratch
options=
site=$(basename "$(dirname "$0")")   # the folder's name: by it the jobs of a killed Snakemake are found
nodes=$1 minutes=$2 queue=$3 script=$4
[ -n "$chunk" ] || chunk=$(pbsnodes -a | awk '
  # In whole MB, as PBS counts the memory of a node: a job that asks for more can never run.
  function mb(size) { return int(size * (size ~ /gb$/ ? 1024 : size ~ /mb$/ ? 1 : 1 / 1024)) }
  /^[^ ]/ { memory = 0 }
  $1 == "resources_available.mem" { memory = mb($3) }
  $1 == "resources_available.ncpus" && $3 + 0 >= most + 0 {
    if ($3 + 0 > most + 0 || memory < least) least = memory
    most = $3
  }
  END { if (most) print "ncpus=" most (least ? ":mem=" least "mb" : "") }')
[ -n "$chunk" ] ||
  { echo "submit: pbsnodes names no processors: write what a node has (chunk=)" >&2; exit 1; }
# shellcheck disable=SC2086 # several words
set -- -N "tiercel-$site" -S /bin/sh -V -r n -j oe -k doe -o .snakemake/ $options
set -- "$@" -l "select=$nodes:$chunk" -l place=scatter:exclhost
set -- "$@" -l "walltime=$((minutes / 60)):$((minutes % 60)):00"
[ "$queue" = default ] || set -- "$@" -q "$queue"
[ -z "${TIERCEL_ACCOUNT:-}" ] || set -- "$@" -A "$TIERCEL_ACCOUNT"
# PBS may keep no history of ended jobs: the job itself notes how it ended.
answer=$({
  echo 'cd "$PBS_O_WORKDIR" && trap '\''echo $? >".snakemake/pbs-$PBS_JOBID.code"'\'' EXIT'
  cat "$script"
} | qsub "$@" 2>&1) || { printf '%s\n' "$answer" | sed 's/^qsub: /submit: /' >&2; exit 1; }
id=$(printf '%s\n' "$answer" | sed -n '/^[0-9][0-9]*\.[^ ]*$/p' | tail -n 1)
[ -n "$id" ] || { printf 'submit: qsub gave no job id: %s\n' "$answer" >&2; exit 1; }
# Kept for the Snakemake after one that was killed: it waits for jobs that still run.
echo "$id" >>".snakemake/tiercel-$site.jobs"
echo "$id"
"""
_STATUS = r"""#!/bin/sh
# Prints how a job of PBS is: status JOB prints running (waiting, too), success or failed.
answer=$(LC_ALL=C qstat -f "$1" 2>&1) || :
case $answer in
  *'Unknown Job Id'* | *'Job has finished'*) ;;
  # Also without an answer: then nothing is known, and a job that may run must not be submitted again.
  *) echo running; exit ;;
esac
# It has ended. How: from the history of jobs, else what the job noted; one that was killed notes nothing.
answer=$(LC_ALL=C qstat -x -f "$1" 2>&1) || :
case $answer in
  *'job_state = F'*'Exit_status = 0'*) echo success; exit ;;
  *'job_state = F'*) echo failed; exit ;;
esac
for _ in 1 2 3; do
  [ ! -f ".snakemake/pbs-$1.code" ] || break
  sleep 1
done
[ "$(cat ".snakemake/pbs-$1.code" 2>/dev/null)" = 0 ] && echo success || echo failed
"""
_CANCEL = """#!/bin/sh
# Ends jobs of PBS: cancel JOB...
exec qdel "$@"
"""


@schedulers.register("pbs")
class PBS(ScriptsMixin, Scheduler):
    name = "pbs"
    programs = ("qsub", "qstat", "qdel")
    marks = ("pbsnodes",)
    scripts = {"submit": _SUBMIT, "status": _STATUS, "cancel": _CANCEL}

    def left_behind(self, site: str, folder: Path) -> list[Job]:
        """Return what the status script knows, and of jobs that wait why."""
        return [_described(job) for job in super().left_behind(site, folder)]


def _described(job: Job) -> Job:
    try:
        command = ["qstat", "-f", "-w", job.id]
        answer = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return job
    said = dict(re.findall(r"^ +(job_state|comment) = (.*)$", answer, re.MULTILINE))
    if (state := said.get("job_state")) not in ("Q", "H", "W"):
        return job
    reason = said.get("comment") or ("held" if state == "H" else "")
    return Job(job.id, False, reason, state == "H" or reason.startswith("Can Never Run"))
