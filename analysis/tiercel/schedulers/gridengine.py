"""Grid Engine, through Snakemake's cluster-generic executor and the site's own scripts.

Whole nodes are asked for by a parallel environment whose ``allocation_rule`` is the number of a node's slots.
"""

from __future__ import annotations

from tiercel.schedulers.base import Scheduler, schedulers
from tiercel.schedulers.scripts import ScriptsMixin

_SUBMIT = r"""#!/bin/sh
# Submits Snakemake's jobs to Grid Engine: submit NODES MINUTES QUEUE JOBSCRIPT. Prints the number alone.
set -eu
site=$(basename "$(dirname "$0")")   # the folder's name: by it the jobs of a killed Snakemake are found
nodes=$1 minutes=$2 queue=$3 script=$4
# A parallel environment that gives whole nodes: its allocation_rule (qconf -sp) is a node's slots.
pe=   # QUESTION: which one? Without an answer the one with the largest rule
slots=0
for each in ${pe:-$(qconf -spl)}; do
  rule=$(qconf -sp "$each" | sed -n 's/^allocation_rule *\([0-9][0-9]*\) *$/\1/p')
  [ "${rule:-0}" -le "$slots" ] || pe=$each slots=$rule
done
[ "$slots" -gt 0 ] ||
  { echo "submit: ${pe:-no parallel environment}: no allocation_rule of so many slots a node" >&2; exit 1; }
set -- -terse -cwd -V -S /bin/sh -r n -N "tiercel-$site" -j y -o .snakemake/
set -- "$@" -pe "$pe" $((nodes * slots)) -l "h_rt=$((minutes * 60))"
[ "$queue" = default ] || set -- "$@" -q "$queue"
[ -z "${TIERCEL_ACCOUNT:-}" ] || set -- "$@" -P "$TIERCEL_ACCOUNT"
answer=$(LC_ALL=C qsub "$@" "$script" 2>&1) ||
  { printf '%s\n' "$answer" | sed 's/^Unable to run job: /submit: /' >&2; exit 1; }
id=$(printf '%s\n' "$answer" | sed -n '/^[0-9][0-9]*$/p' | tail -n 1)
[ -n "$id" ] || { printf 'submit: qsub gave no job number: %s\n' "$answer" >&2; exit 1; }
# Kept for the Snakemake after one that was killed: it waits for jobs that still run.
echo "$id" >>".snakemake/tiercel-$site.jobs"
echo "$id"
"""
_STATUS = r"""#!/bin/sh
# Says how a job of Grid Engine is: status JOB prints running (waiting, too), success or failed.
if said=$(LC_ALL=C qstat -j "$1" 2>&1); then
  # A job in error (Eqw) never begins by itself; one whose node is gone (au) may go on.
  case $said in *'error reason'*) echo failed ;; *) echo running ;; esac
  exit
fi
# Without an answer nothing is known, and a job that may run must not be submitted again.
case $said in *'do not exist'*) ;; *) echo running; exit ;; esac
# It has ended. How, is written down some seconds later.
for _ in 1 2 3 4 5 6 7 8; do
  if said=$(LC_ALL=C qacct -j "$1" 2>/dev/null); then
    printf '%s\n' "$said" | awk '$1 == "failed" || $1 == "exit_status" { bad = bad || $2 != 0; seen++ }
      END { print(seen && !bad ? "success" : "failed") }'
    exit
  fi
  sleep 2
done
echo failed
"""
_CANCEL = """#!/bin/sh
# Ends jobs of Grid Engine: cancel JOB...
exec qdel "$@"
"""


@schedulers.register("gridengine")
class GridEngine(ScriptsMixin, Scheduler):
    name = "gridengine"
    programs = ("qsub", "qstat", "qdel", "qacct")
    marks = ("qconf",)
    scripts = {"submit": _SUBMIT, "status": _STATUS, "cancel": _CANCEL}
