#!/bin/bash
# e2e.sh SERVER - runs the end-to-end tests against that server, three files more at once than there
# are processors, since files also wait: for clocks, leases, disks and each other. Each starts servers of its
# own. Of a file that fails everything is shown.
set -euo pipefail
[ $# -eq 1 ] || {
    echo "usage: e2e.sh SERVER" >&2
    exit 2
}
export ORRERY=$(realpath "$1")
cd "$(dirname "$0")/../test"

# The longest begin first, so that none of them is left alone at the end. Those that measure stand apart,
# so that they seldom wait for each other.
long='cluster cluster-journal cluster-operators backup-moves cluster-history cluster-clocks cluster-upgrade cluster-adopt cluster-damage cluster-work procedures-limits scripts-isolation queries-load floods export import splits history throttling memory cross-partition-many damage fairness cross-partition-random
    cross-partition-sdk queries-cancel crash-items faults queries-pages split-storm serve items-list model many'
# These measure how long others wait: one after another, so that they do not measure each other.
export MEASURING=' queries-load throttling queries-cancel fairness '
export LOCK=$(mktemp)
trap 'rm -f "$LOCK"' EXIT

# A name above that is no file any more is a file that fails, so that the lists cannot rot.
{ printf '%s.test.mjs\n' $long && printf '%s\n' *.test.mjs; } | awk '!seen[$0]++' |
    xargs -P "$(($(nproc) + 3))" -I FILE bash -c '
        # count WORD: what the end of the report says of it.
        count() {
            sed -n "s/^[^ ]* $1 \([0-9]*\)$/\1/p" <<<"$log" | tail -1
        }
        name=FILE
        if [[ $MEASURING = *" ${name%.test.mjs} "* ]]; then
            exec 9>"$LOCK" && flock 9
        fi
        begun=$SECONDS
        if log=$(node --test --test-reporter=spec "$name" 2>&1); then
            echo "  $name: $(count pass) passed, $(count skipped) skipped, $((SECONDS - begun)) s"
        else
            echo "  $name: FAILED"
            echo "$log"
            exit 1
        fi'
