#!/bin/sh
# A redis server that syncs each write, and its benchmark.
cd "$1" || exit 1
redis-server --port 0 --unixsocket "$1/s" --dir "$1" --appendonly yes --appendfsync always --save '' >log &
until redis-cli -s "$1/s" ping >/dev/null 2>&1; do sleep 0.01; done
redis-benchmark -s "$1/s" -t set -n 2000 -r 100000 -c 4 -q >/dev/null
redis-cli -s "$1/s" shutdown >/dev/null
wait
