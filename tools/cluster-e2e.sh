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

fast='session batch patch change-feed-sdk throughput queries-order resource-tokens triggers'
# Every file that uses sharedServer or startAny is in one of these lists, or the script fails; the others start servers of their own.
# Single tests that are about one node say so (ofOneNode of server.mjs).
all='advice-route auth authorisation batch bench change-feed change-feed-moves change-feed-processor change-feed-sdk change-feed-versions
    change-feed-versions-moves charges client-encryption client-encryption-keys conflicts consistency containers copy cross-partition
    cross-partition-many cross-partition-random cross-partition-sdk cross-partition-spec databases definitions documents export feed-ranges functions import
    index-paths indexing items items-drop items-keys items-list items-purge model patch permissions procedures procedures-api procedures-limits
    procedures-transactions queries queries-index queries-load queries-order queries-pages queries-spec reference resource-tokens scripts-isolation
    scripts-resources sdk-details sdk-texts seed session split-storm storage-limits throughput triggers ttl unique users'
# advise                              what a container was asked is told by the node that served it
# chaos                               faults are caused at one node, and what they did is seen there
# connect, tls, troubleshooting       certificates, connections and starts of one process; the proxy speaks HTTP only
# many                                counts what is left in one folder and in one process
# seeing                              partitions, keys and throttled requests as one node sees them
# splits                              where the cut is (layout), which is a node's view; automatic merges, for which all
#                                     partitions must be at the catalogue's owner
excused='advise chaos connect many seeing splits tls troubleshooting'
listed=$(printf '%s.test.mjs\n' $all $excused | sort)
using=$(grep -lE '(sharedServer|startAny)\(' *.test.mjs | sort)
[ "$listed" = "$using" ] || {
    echo "cluster-e2e.sh: its lists (<) and the files that use sharedServer or startAny (>) differ:" >&2
    diff <(echo "$listed") <(echo "$using") >&2 || true
    exit 1
}
names=$fast
[ $# -eq 2 ] || names=$all

folder=$(mktemp -d)
chmod 711 "$folder" # the servers run as another user if this one is root
export ORRERY_TEST_ENGINE=$folder/engine
trap './postgres-pair.sh end "$ORRERY_TEST_ENGINE" && rmdir "$folder"' EXIT
./postgres-pair.sh start "$ORRERY_TEST_ENGINE"

printf '%s.test.mjs\n' $names | xargs -P "$(($(nproc) + 1))" -I FILE bash -c '
    begun=$SECONDS
    if log=$(node --test --test-reporter=spec FILE 2>&1); then
        passed=$(sed -n "s/^[^ ]* pass \([0-9]*\)$/\1/p" <<<"$log" | tail -1)
        echo "  three nodes, FILE: $passed passed, $((SECONDS - begun)) s"
    else
        echo "  three nodes, FILE: FAILED"
        echo "$log"
        exit 1
    fi'
