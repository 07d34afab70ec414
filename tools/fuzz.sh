#!/bin/sh
# fuzz.sh SECONDS TARGET... - runs fuzz targets of build/fuzz for that long each, as many at once
# as there are processors. What they learn is kept in build/fuzz/corpus; an input that breaks
# something is kept in build/fuzz/findings. FUZZ_SEED is where chance begins (0: elsewhere each time).
set -eu

cd "$(dirname "$0")/.."
[ $# -ge 2 ] || {
    echo "usage: fuzz.sh SECONDS TARGET..." >&2
    exit 2
}
seconds=$1
shift

mkdir -p build/fuzz/findings
export seconds
export FUZZ_SEED="${FUZZ_SEED:-0}"
printf "%s\n" "$@" | xargs -P "$(nproc)" -n 1 sh -c '
    name=$1
    corpus=build/fuzz/corpus/$name
    log=build/fuzz/findings/$name.log
    mkdir -p "$corpus"
    seeds=$(find src -type d \( -name "${name}_seeds" -o -name "${name%_fuzz}_seeds" \))
    if build/fuzz/fuzz/$name -max_total_time="$seconds" -seed="$FUZZ_SEED" -timeout=10 -rss_limit_mb=2048 \
        -print_final_stats=1 -artifact_prefix="build/fuzz/findings/$name-" \
        "$corpus" $seeds >"$log" 2>&1; then
        awk -v name="$name" "/number_of_executed_units/ { print \"  \" name \": \" \$2 \" inputs\" }" "$log"
        rm -f "$log"
    else
        echo "  $name: FAILED; run build/fuzz/fuzz/$name with the file that this names:"
        tail -n 40 "$log"
        exit 1
    fi' fuzz
