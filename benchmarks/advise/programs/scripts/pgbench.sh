#!/bin/sh
# A PostgreSQL server whose data lie in the folder, and 150 transactions of pgbench.
bin=$(dirname "$(ls /usr/lib/postgresql/*/bin/postgres | tail -n 1)")
"$bin/postgres" -D "$1/base" -k "$1" -c listen_addresses= >"$1/log" 2>&1 &
until "$bin/pg_isready" -q -h "$1"; do
    kill -0 $! || { tail -n 1 "$1/log" >&2; exit 1; }
    sleep 0.02
done
"$bin/pgbench" -h "$1" -n -t 150 -c 1 postgres >"$1/answer" 2>&1
"$bin/pg_ctl" -D "$1/base" -s -m fast stop
wait
