#!/bin/bash
# soak.sh SECONDS FUZZER... - looks where `make test` does not: runs the random tests and the fuzz
# targets from ever new seeds, a third of the time each for unit tests, end-to-end tests and fuzz
# targets. One at a time and in random order; what has begun is finished. Each line is a command that
# repeats the run.
set -euo pipefail
[ $# -ge 2 ] || {
    echo "usage: soak.sh SECONDS FUZZER..." >&2
    exit 2
}
cd "$(dirname "$0")/.."
third=$((($1 + 2) / 3))
shift
failed=

new_seed() {
    od -An -N4 -tu4 /dev/urandom | tr -d ' '
}

# The tests that take a seed; a new one is found by what it calls.
units() {
    grep -rl --include='*_test.c' 'test_seed()' src |
        sed 's|^src/\([^/]*\)/\(.*/\)\{0,1\}\(.*\)\.c$|build/dev/tests/\1_\3|'
}

# The history is as long as its part of the time, up to two minutes.
ends() {
    grep -l 'chooseSeed()' test/*.test.mjs | sed "s|^|ORRERY=$PWD/build/orrery node --test |
        / test.history\.test\.mjs\$/s|^|ORRERY_HISTORY_SECONDS=$((third < 120 ? third : 120)) |"
}

# soak COMMAND...: until the time is over, each at least once in each round.
soak() {
    local end=$((SECONDS + third)) command log
    while true; do
        while read -r command; do
            command="ORRERY_TEST_SEED=$(new_seed) $command"
            echo "  $command"
            if ! log=$(eval "$command" 2>&1 </dev/null); then
                echo "$log"
                echo "  FAILED: $command"
                failed="$failed$command"$'\n'
            fi
            [ $SECONDS -lt $end ] || return 0
        done < <(printf '%s\n' "$@" | shuf)
    done
}

mapfile -t commands < <(units)
echo "== Soaking ${#commands[@]} unit tests for $third s"
soak "${commands[@]}"

mapfile -t commands < <(ends)
echo "== Soaking ${#commands[@]} end-to-end tests for $third s"
soak "${commands[@]}"

seconds=$((third * $(nproc) / $#))
[ $seconds -gt 0 ] || seconds=1
seed=$(new_seed)
echo "== Fuzzing each target for $seconds s"
echo "  FUZZ_SEED=$seed tools/fuzz.sh $seconds $*"
FUZZ_SEED=$seed tools/fuzz.sh $seconds "$@" || failed="${failed}FUZZ_SEED=$seed tools/fuzz.sh"$'\n'

[ -z "$failed" ] || {
    printf 'Failed:\n%s' "$failed" >&2
    exit 1
}
echo "== Nothing found"
