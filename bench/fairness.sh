# fairness.sh - what short requests wait for long ones; run.sh reads it.
#
# An order found by its number (an index serves it) and an item read by its id, at a fixed rate, from a
# quiet server and beside loads that want all of it. The client shares the processors with the server
# and with what makes the load, so a latency is that of the whole machine.
#
#   BENCH_ORDERS=100000   in the container that is read and scanned
#   BENCH_RATE=200        requests a second

orders=${BENCH_ORDERS:-100000}
rate=${BENCH_RATE:-200}
list=$(seq -s, 0 999)
declare -A load_connections=([quiet]=0 [joins]=16 [scans]=60 [plans]=24 [writes]=8)
declare -A load_names=([quiet]='quiet' [joins]='16 cartesian joins' [scans]='60 scans'
    [plans]='24 clients: plans of 512 KB' [writes]='8 writers: items of 1,000,000 numbers')
loads=${BENCH_LOADS:-quiet joins scans plans writes}

open_fairness() {
    port=$(free_port)
    start_server "$temp/fairness" "$port" --no-rate-limit --durability relaxed
    url=http://127.0.0.1:$port
    create "$url/dbs" '{"id":"b"}'
    create "$url/dbs/b/colls" '{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}'
    create "$url/dbs/b/colls" '{"id":"lists","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2},
        "indexingPolicy":{"indexingMode":"consistent","excludedPaths":[{"path":"/*"}]}}'
    create "$url/dbs/b/colls/lists/docs" "{\"id\":\"1\",\"pk\":\"1\",\"l\":[$list]}" \
        --header 'x-ms-documentdb-partitionkey: ["1"]'
    "${load[@]}" --quiet batch --orders --first 0 --count $((orders / 100)) --seconds 600 --connections 8 \
        --url "$url/dbs/b/colls/c/docs" >"$temp/fill"
    settle "$server_pid"
}

# measure_beside LOAD: both kinds of requests, in turn.
measure_beside() {
    local name=$1 loader= round
    if [ "${load_connections[$name]}" -gt 0 ]; then
        node bench/fairness.mjs --endpoint "$url" --load "$name" --connections "${load_connections[$name]}" \
            >"$temp/load_$name" 2>&1 &
        loader=$!
        pids+=("$loader")
        until grep -q ready "$temp/load_$name"; do
            kill -0 "$loader" 2>/dev/null || {
                cat "$temp/load_$name" >&2
                exit 1
            }
            sleep 0.1
        done
    fi
    for round in $(seq "$rounds"); do
        sample "lookup_$name" "$server_pid" query --query unique --items "$orders" --connections 4 --rate "$rate" \
            --drain --url "$url/dbs/b/colls/c/docs"
        sample "read_$name" "$server_pid" read --orders --items "$orders" --connections 4 --rate "$rate" \
            --drain --url "$url/dbs/b/colls/c/docs"
    done
    [ -z "$loader" ] || stop "$loader"
    [ -z "$loader" ] || tail -n 1 "$temp/load_$name"
}

print_fairness() {
    local name
    echo
    printf '%-40s %18s %18s\n' 'ms' 'look-up by index' 'point read'
    printf '%-40s %9s %8s %9s %8s\n' '' 'P50' 'P99' 'P50' 'P99'
    for name in $loads; do
        printf '%-40s %9.2f %8.2f %9.2f %8.2f\n' "${load_names[$name]}" \
            "$(of "lookup_$name" p50 | to_ms)" "$(of "lookup_$name" p99 | to_ms)" \
            "$(of "read_$name" p50 | to_ms)" "$(of "read_$name" p99 | to_ms)"
    done
}

to_ms() {
    awk '{ print $1 / 1000 }'
}

echo "== Starting a server with $orders orders"
open_fairness
for name in $loads; do
    echo "== Measuring: ${load_names[$name]}"
    measure_beside "$name"
done
stop "$server_pid"
print_fairness
