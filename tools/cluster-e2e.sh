#!/bin/bash
# cluster-e2e.sh SERVER [fast] - runs end-to-end tests against three nodes of that server, each request at another
# one: all that can apply to a cluster, or with "fast" a few that take seconds. One pair of PostgreSQL servers is for all.
set -euo pipefail
[ $# -eq 1 ] || [ "$#-${2:-}" = 2-fast ] || {
    echo "usage: cluster-e2e.sh SERVER [fast]" >&2
    exit 2
}
export ORRERY=$(realpath "$1") ORRERY_TEST_NODES=3
cd "$(dirname "$0")/../test"

fast='session batch patch'
# Left out is what is about one node or one folder (backups, chaos, certificates, logs, budgets of one process), and what
# counts on one node's view: top, events, metrics, and lists whose page ends with a node's ranges.
all='advice-route authorisation batch change-feed-sdk change-feed-versions client-encryption client-encryption-keys conflicts consistency
    containers cross-partition databases definitions documents feed-ranges functions index-paths indexing items items-keys items-purge patch permissions procedures procedures-api
    procedures-transactions queries queries-order queries-pages sdk-texts session throughput triggers ttl unique users'
names=$fast
[ $# -eq 2 ] || names=$all

folder=$(mktemp -d)
chmod 711 "$folder" # the servers run as another user if this one is root
export ORRERY_TEST_ENGINE=$folder/engine
trap './postgres-pair.sh end "$ORRERY_TEST_ENGINE" && rmdir "$folder"' EXIT
./postgres-pair.sh start "$ORRERY_TEST_ENGINE"

printf '%s.test.mjs\n' $names | xargs -P 2 -I FILE bash -c '
    begun=$SECONDS
    if log=$(node --test --test-reporter=spec FILE 2>&1); then
        passed=$(sed -n "s/^[^ ]* pass \([0-9]*\)$/\1/p" <<<"$log" | tail -1)
        echo "  three nodes, FILE: $passed passed, $((SECONDS - begun)) s"
    else
        echo "  three nodes, FILE: FAILED"
        echo "$log"
        exit 1
    fi'
