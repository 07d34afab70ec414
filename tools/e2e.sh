#!/bin/bash
# e2e.sh SERVER - runs the end-to-end tests against that server, several files at once: each starts
# servers of its own. Of a file that fails everything is shown.
set -euo pipefail
[ $# -eq 1 ] || {
    echo "usage: e2e.sh SERVER" >&2
    exit 2
}
export ORRERY=$1
cd "$(dirname "$0")/../test"

# These wait more than they work, and measure how long others wait: one after another, so that they
# do not measure each other, beside as many of the rest as there are processors.
measuring='queries-load throttling queries-cancel'
# Of the rest the longest begin first, so that none of them is left alone at the end.
long='splits cross-partition-random cross-partition-sdk cross-partition-many crash-items faults
    queries-pages split-storm serve items-list model many'

# Names one file a line, each once, the long ones first.
rest() {
    { printf '%s.test.mjs\n' $long && printf '%s\n' *.test.mjs; } | awk '!seen[$0]++' |
        grep -vxF -f <(printf '%s.test.mjs\n' $measuring)
}

# at_once COUNT: runs the files it reads the names of.
at_once() {
    xargs -P "$1" -I FILE bash -c '
        # count WORD: what the end of the report says of it.
        count() {
            sed -n "s/^[^ ]* $1 \([0-9]*\)$/\1/p" <<<"$log" | tail -1
        }
        begun=$SECONDS
        if log=$(node --test --test-reporter=spec FILE 2>&1); then
            echo "  FILE: $(count pass) passed, $(count skipped) skipped, $((SECONDS - begun)) s"
        else
            echo "  FILE: FAILED"
            echo "$log"
            exit 1
        fi'
}

status=0
printf '%s.test.mjs\n' $measuring | at_once 1 &
rest | at_once "$(nproc)" || status=1
wait $! || status=1
exit $status
