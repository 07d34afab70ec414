#!/bin/bash
# run.sh - what `make bench` does: measures the server, and others beside it in the same minutes.
#
# A number alone says more about the machine than about the server, so all are measured in turn,
# round by round, and the medians are compared.
#
#   run.sh              start, idle server, container (container.sh) and items (items.sh)
#   run.sh --items      only items
#   run.sh --large      only items by the million (large.sh); BENCH_LARGE=1 does the same
#   run.sh --queries    only SQL over items by the million (queries.sh)
#   run.sh --partitions only SQL over several partitions (partitions.sh)
#   run.sh --splits     only splits and merges of partitions (splits.sh)
#   run.sh --throughput only what budgets and statistics cost a read (throughput.sh)
#   run.sh --scripts    only procedures and functions in JavaScript (scripts.sh)
#   run.sh --feed       only the change feed (feed.sh)
#   run.sh --fairness   only how long short requests wait for long ones (fairness.sh)
#   run.sh --import     only orrery import and export beside COPY (import.sh)
#   run.sh --snapshot   only snapshots of a database: saving and restoring (snapshot.sh)
#   run.sh --cluster    only a cluster of one to three nodes beside a server alone and PostgreSQL (cluster.sh)
#
#   ROUNDS=3 ROUND_SECONDS=2   how often and how long each is measured
#   STARTS=20                  how many starts
#   ITEMS=10000                items that exist beforehand
#   BENCH_ITEMS=1000000        items of --large, --queries, --partitions, --splits and --import
#   TMPDIR=/tmp                where the data goes; --large needs 4 KB an item, --queries and --splits 12 KB, --partitions and --import 16 KB
set -euo pipefail

cd "$(dirname "$0")/.."
orrery=${ORRERY:-build/orrery}
load=(build/orrery bench) # of this tree, also if another server is measured
rounds=${ROUNDS:-3}
round_seconds=${ROUND_SECONDS:-2}
connections=32

mode=default
[ "${BENCH_LARGE:-0}" = 0 ] || mode=--large
[ $# -eq 0 ] || mode=$1
case $mode in
default) parts="container items" ;;
--items) parts=items ;;
--large) parts=large ;;
--queries) parts=queries ;;
--partitions) parts=partitions ;;
--splits) parts=splits ;;
--throughput) parts=throughput ;;
--scripts) parts=scripts ;;
--feed) parts=feed ;;
--fairness) parts=fairness ;;
--import) parts=import ;;
--snapshot) parts=snapshot ;;
--cluster) parts=cluster ;;
*)
    echo "usage: run.sh [--items | --large | --queries | --partitions | --throughput | --splits | --scripts | --feed | --fairness | --import | --snapshot | --cluster]" >&2
    exit 2
    ;;
esac

. bench/lib.sh
for part in $parts; do
    . "bench/$part.sh"
done
write_result
