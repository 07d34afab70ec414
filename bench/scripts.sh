# scripts.sh - procedures and functions in JavaScript; run.sh reads it.
#
# Executions take the same connections, signatures and rounds as requests for items, so their numbers
# can be compared with those of items.sh. What runs the scripts are processes of their own: their CPU is
# counted beside that of the server.
#
#   ITEMS=10000             items that procedures read and replace, 100 of a partition key
#   BENCH_ITEMS=100000      orders that a function is called for

items=${ITEMS:-10000}
many=${BENCH_ITEMS:-100000}
. bench/items.sh

EMPTY='function () {}'
REPLACE='function (id) { var c = getContext().getCollection(); c.readDocument(c.getAltLink() + \"/docs/\" + id, function (error, item) { if (error) throw error; item.quantity++; c.replaceDocument(item._self, item, function (failed) { if (failed) throw failed; }); }); }'
CREATE='function (list) { var c = getContext().getCollection(), done = 0; next(); function next() { if (done === list.length) return getContext().getResponse().setBody(done); if (!c.createDocument(c.getSelfLink(), list[done], created)) throw new Error(\"not accepted\"); } function created(error) { if (error) throw error; done++; next(); } }'
LOOP='function (list) { var c = getContext().getCollection(), done = 0; for (var i = 0; i < list.length; i++) if (!c.createDocument(c.getSelfLink(), list[i], created)) throw new Error(\"not accepted\"); function created(error) { if (error) throw error; if (++done === list.length) getContext().getResponse().setBody(done); } }'
ACCEPT='function (quantity) { return quantity > 5; }'

# workers_ms: CPU of the processes that run scripts for the server, so far.
workers_ms() {
    local pid sum=0
    for pid in $(pgrep -P "$server_pid" || true); do
        # One that ends now has no number any more.
        sum=$(awk "BEGIN { print $sum + $(cpu_ms "$pid" 2>/dev/null || echo 0) }")
    done
    echo "$sum"
}

# sample_script NAME OPTION...: a round; the scripts' CPU a request goes into a file of its own.
sample_script() {
    local name=$1 before after
    shift
    before=$(workers_ms)
    sample "$name" "$server_pid" "$@"
    after=$(workers_ms)
    # The warm-up is in it too, so it is set against all requests of the time that was measured.
    awk -v ms="$(awk "BEGIN { print $after - $before }")" -v seconds="$round_seconds" -v rate="$(tail -1 "$temp/rounds/$name.jsonl" | number requests_per_s)" \
        'BEGIN { printf "{\"workers_us\":%.1f}\n", (rate > 0 ? ms * 1000 / (rate * (seconds + 0.5)) : 0) }' >>"$temp/rounds/${name}_workers.jsonl"
}

measure_scripts() {
    local port url docs key i
    echo "== Starting Orrery with $items items of 1 KB, and $many orders"
    port=$(free_port)
    start_server "$temp/scripts" "$port" --no-rate-limit
    create "http://127.0.0.1:$port/dbs" '{"id":"b"}'
    create "http://127.0.0.1:$port/dbs/b/colls" "$container"
    url=http://127.0.0.1:$port/dbs/b/colls/c
    docs=$url/docs
    fill "$docs" "$items"
    create "$url/sprocs" "{\"id\":\"empty\",\"body\":\"$EMPTY\"}"
    create "$url/sprocs" "{\"id\":\"replace\",\"body\":\"$REPLACE\"}"
    create "$url/sprocs" "{\"id\":\"create\",\"body\":\"$CREATE\"}"
    create "$url/sprocs" "{\"id\":\"loop\",\"body\":\"$LOOP\"}"
    create "http://127.0.0.1:$port/dbs/b/colls" "${container/'"c"'/'"o"'}"
    fill "http://127.0.0.1:$port/dbs/b/colls/o/docs" "$many" --orders
    create "http://127.0.0.1:$port/dbs/b/colls/o/udfs" "{\"id\":\"accept\",\"body\":\"$ACCEPT\"}"
    settle "$server_pid"

    echo "== Scripts over $connections connections: $rounds rounds of $round_seconds s each"
    for i in $(seq "$rounds"); do
        sample_script empty execute --items "$items" --connections "$connections" --url "$url/sprocs/empty"
        sample_script replace execute --items "$items" --connections "$connections" --url "$url/sprocs/replace"
        # All of them have one partition key, so each waits for the one before.
        sample_script replace_one_key execute --items 100 --connections "$connections" --url "$url/sprocs/replace"
        sample_script patch patch --items "$items" --connections "$connections" --url "$docs"
        sample_script create_100 execute-new --connections "$connections" --url "$url/sprocs/create"
        sample_script loop_100 execute-new --connections "$connections" --url "$url/sprocs/loop"
        sample_script batch_100 batch --connections "$connections" --url "$docs"
    done
    for i in $(seq "$rounds"); do
        for key in function scan; do
            sample "$key" "$server_pid" query --query "$key" --items "$many" --connections 1 --count 1 --drain \
                --url "http://127.0.0.1:$port/dbs/b/colls/o/docs"
        done
    done
    stop "$server_pid"
}

print_scripts() {
    local name value
    echo
    printf '%-18s %12s %12s %10s %10s %14s %12s %7s\n' median 'executions/s' 'items/s' 'P50 us' 'P99 us' 'CPU us, server' \
        'in scripts' 'busy'
    for name in empty replace replace_one_key patch create_100 loop_100 batch_100; do
        value=1
        [ "${name%_100}" = "$name" ] || value=100
        [ "$name" != empty ] || value=0
        printf '%-18s %12.0f %12.0f %10.0f %10.0f %14.1f %12.1f %6.0f%%\n' "$name" "$(of "$name" requests_per_s)" \
            "$(of "$name" requests_per_s | awk -v n="$value" '{ print $1 * n }')" "$(of "$name" p50)" "$(of "$name" p99)" \
            "$(of "$name" server_cpu_us_per_request)" "$(of "${name}_workers" workers_us)" \
            "$(of "$name" client_busy | awk '{ print $1 * 100 }')"
    done
    echo
    for name in create loop; do
        value=$(ratio "$(of ${name}_100 requests_per_s)" "$(of batch_100 requests_per_s)")
        printf '%-60s %8s\n' "100 new items: $name, a procedure / a transactional batch, items/s" "$value"
        note "ratio_${name}_100_batch_100" "$value"
    done
    for name in function scan; do
        value=$(of "$name" p50 | awk -v n="$many" '{ printf "%.0f", n * 1e6 / ($1 > 0 ? $1 : 1) }')
        printf '%-60s %8s\n' "$([ "$name" = function ] && echo "calls of a function a second, $many orders" ||
            echo 'the same orders read without one, a second')" "$value"
        note "${name}_per_s" "$value"
    done
}

measure_scripts
print_scripts
