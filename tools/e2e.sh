#!/bin/bash
# e2e.sh SERVER - runs the end-to-end tests against that server, as many files at once as there are
# processors: each starts servers of its own. Of a file that fails everything is shown.
set -euo pipefail
[ $# -eq 1 ] || {
    echo "usage: e2e.sh SERVER" >&2
    exit 2
}
export ORRERY=$1
cd "$(dirname "$0")/../test"
printf '%s\n' *.test.mjs | xargs -P "$(nproc)" -I FILE bash -c '
    begun=$SECONDS
    if log=$(node --test --test-reporter=spec FILE 2>&1); then
        echo "  FILE: $(grep -E "^. pass " <<<"$log" | tail -1 | cut -d" " -f3) passed, $(grep -E "^. skipped " <<<"$log" | tail -1 | cut -d" " -f3) skipped, $((SECONDS - begun)) s"
    else
        echo "  FILE: FAILED"
        echo "$log"
        exit 1
    fi'
