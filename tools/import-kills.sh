#!/bin/bash
# import-kills.sh [ITEMS] - imports and exports ITEMS (a million) items, once undisturbed and once killed again
# and again, and expects the same digest everywhere: nothing is lost, and nothing is there twice.
#
# Of the disturbed run, `orrery import` is killed up to four times and resumed each time; sometimes the server is
# killed with it, and in the end the server alone, while the import goes on. `orrery export` is killed and resumed.
# The moments are shares of the time that the undisturbed run took. Then `orrery check` reads the folder.
set -euo pipefail
cd "$(dirname "$0")/.."
orrery=${ORRERY:-build/orrery}
items=${1:-1000000}
temp=$(mktemp -d)
pids=()
cleanup() {
    local pid
    for pid in "${pids[@]}"; do
        kill -KILL "$pid" 2>/dev/null || true
    done
    rm -rf "$temp"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

fail() {
    echo "import-kills: $*" >&2
    exit 1
}

free_port() {
    local port
    while :; do
        port=$((20000 + RANDOM % 10000))
        (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null || break
    done
    echo "$port"
}

# serve FOLDER: on $port; its process is $server then.
serve() {
    local i
    "$orrery" serve --data "$1" --port "$port" --no-rate-limit >>"$temp/serve.log" 2>&1 &
    server=$!
    pids+=("$server")
    for i in $(seq 600); do
        ! (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null || return 0
        sleep 0.1
    done
    cat "$temp/serve.log" >&2
    fail "the server does not start"
}

# end SIGNAL PID: ends a process that we started, and forgets it.
end() {
    local left=() pid
    kill -"$1" "$2" 2>/dev/null || true
    wait "$2" 2>/dev/null || true
    for pid in "${pids[@]}"; do
        [ "$pid" = "$2" ] || left+=("$pid")
    done
    pids=("${left[@]}")
}

# expect NAME DIGEST: digests are followed by the number of items.
expect() {
    [ "$2" = "$digest" ] || fail "$1 has the digest '$2', expected '$digest'"
    echo "   $1: $2"
}

# The ids of the file that was exported, each once.
expect_ids() {
    local ids
    ids=$(awk -F '"id":"' '{ sub(/".*/, "", $2); print $2 }' "$temp/exported.jsonl" | LC_ALL=C sort -u | wc -l)
    [ "$ids" = "$items" ] || fail "$ids different ids in the exported file, expected $items"
}

# wait_until SECONDS PID: the share of a run that has passed; false if the process has ended before.
wait_until() {
    sleep "$1"
    kill -0 "$2" 2>/dev/null
}

# share SECONDS PERCENT
share() {
    awk -v s="$1" -v percent="$2" 'BEGIN { printf "%.2f", s * percent / 100 }'
}

echo "== Making $items items of 1 KB"
awk -v count="$items" 'BEGIN {
    for (i = 0; i < 600; i++)
        text = text substr("abcdefghijklmnopqrstuvwxyz", (i * i + 7 * i) % 26 + 1, 1)
    for (i = 0; i < count; i++)
        printf "{\"id\":\"%08x-%d\",\"pk\":\"p%d\",\"serial\":%d,\"price\":%.2f,\"tags\":[\"t%d\",\"t%d\"],\"open\":%s,\"at\":{\"day\":%d,\"city\":\"c%d\"},\"note\":\"%s\"}\n",
            (i * 2654435761) % 4294967296, i, i / 50, i, (i * 37 % 100000) / 100, i % 11, i % 13, i % 2 ? "true" : "false",
            i % 365, i % 101, text
}' >"$temp/items.jsonl"
[ "$(wc -l <"$temp/items.jsonl")" = "$items" ]

echo "== Undisturbed"
port=$(free_port)
# Commands, not functions: in the background a function is a shell, which would be killed instead of them.
container=(--endpoint "http://127.0.0.1:$port" --database d --container c --quiet --digest)
import=("$orrery" import "$temp/items.jsonl" "${container[@]}" --create --partition-key /pk)
export=("$orrery" export "${container[@]}" --output "$temp/exported.jsonl")
serve "$temp/whole"
begin=${EPOCHREALTIME/[.,]/}
digest=$("${import[@]}")
import_s=$(awk "BEGIN { print (${EPOCHREALTIME/[.,]/} - $begin) / 1000000 }")
[ "${digest##* }" = "$items" ] || fail "${digest##* } items were imported, expected $items"
begin=${EPOCHREALTIME/[.,]/}
found=$("${export[@]}")
export_s=$(awk "BEGIN { print (${EPOCHREALTIME/[.,]/} - $begin) / 1000000 }")
echo "   import: $digest in $import_s s"
expect export "$found"
expect_ids
end TERM "$server"
rm -rf "$temp/whole" "$temp/exported.jsonl"

# kill_in_the_middle SECONDS COMMAND...: starts it anew with its file of the resumed job removed, sooner each time,
# until it is killed before it ends.
kill_in_the_middle() {
    local seconds=$1 percent
    shift
    for percent in 18 6 2; do
        rm -f "$temp/resume"
        "$@" --resume "$temp/resume" >"$temp/digest" 2>"$temp/log" &
        job=$!
        pids+=("$job")
        if wait_until "$(share "$seconds" $percent)" "$job"; then
            end KILL "$job"
            return
        fi
    done
    fail "'$*' ended before it could be killed; use more items"
}

echo "== Killed"
serve "$temp/killed"
kill_in_the_middle "$import_s" "${import[@]}"
kills=1
for turn in 1 2 3; do
    "${import[@]}" --resume "$temp/resume" >"$temp/digest" 2>"$temp/log" &
    job=$!
    pids+=("$job")
    wait_until "$(share "$import_s" 8)" "$job" || break
    end KILL "$job"
    kills=$((kills + 1))
    [ $((turn % 2)) = 1 ] || continue
    end KILL "$server"
    serve "$temp/killed"
done
"${import[@]}" --resume "$temp/resume" >"$temp/digest" 2>"$temp/log" &
job=$!
pids+=("$job")
if wait_until "$(share "$import_s" 5)" "$job"; then
    end KILL "$server"
    serve "$temp/killed"
fi
# An import that has begun waits for a server that is away; one that is about to begin fails.
wait "$job" || "${import[@]}" --resume "$temp/resume" >"$temp/digest" || fail "the last import failed"
expect "import after $kills kills" "$(cat "$temp/digest")"

kill_in_the_middle "$export_s" "${export[@]}"
expect "export after it was killed" "$("${export[@]}" --resume "$temp/resume")"
expect_ids
expect "all that is stored" "$("${export[@]}")"

echo "== Checking the folder"
end TERM "$server"
"$orrery" check --data "$temp/killed" | tail -1
