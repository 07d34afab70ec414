# feed.sh - the change feed; run.sh reads it.
#
#   BENCH_ITEMS=100000      orders in the container
#   FOLLOWERS=1000          connections that poll it, each every five seconds
#   BEFORE=FILE             a server without a log of changes, to compare creates with
#   BENCH_TURNS=10          turns of creates, if there is one

many=${BENCH_ITEMS:-100000}
followers=${FOLLOWERS:-1000}
turns=${BENCH_TURNS:-10}
. bench/items.sh

poll_s=5
indexed='{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}'

# sample_feed NAME OPTION...: like sample; a feed ends with 304.
sample_feed() {
    local name=$1 line
    shift
    line=$("${load[@]}" --json --pid "$server_pid" --seconds 60 "$@") || true # it says what was wrong
    [ "$(number failures <<<"$line")" = 0 ] && grep -qE '"statuses":\{("200":[0-9]+)?,?("304":[0-9]+)?\}' <<<"$line" || {
        echo "bench: $name failed: $line" >&2
        exit 1
    }
    echo "$line" >>"$temp/rounds/$name.jsonl"
}

# start_with SERVER FOLDER: the orders' container is $url/colls/c then.
start_with() {
    local port
    port=$(free_port)
    orrery=$1 start_server "$2" "$port" --no-rate-limit
    url=http://127.0.0.1:$port/dbs/b
    create "http://127.0.0.1:$port/dbs" '{"id":"b"}'
    create "$url/colls" "$indexed"
}

measure_reading() {
    local i
    for i in $(seq "$rounds"); do
        sample_feed feed feed --header 'x-ms-max-item-count: 1000' --connections 1 --count 1 --drain --url "$url/colls/c/docs"
        sample_feed query query --query whole --items "$many" --page-size 1000 --connections 1 --count 1 --drain --url "$url/colls/c/docs"
    done
}

measure_followers() {
    sample_feed idle feed --header 'If-None-Match: *' --connections "$followers" --rate $((followers / poll_s)) --seconds 10 \
        --url "$url/colls/c/docs"
}

# Creates in turn on both servers. Each has its own, so neither compacts for the other.
measure_log() {
    local i before_pid now_pid before_url now_url
    start_with "$BEFORE" "$temp/before"
    before_pid=$server_pid before_url=$url
    start_with "$orrery" "$temp/now"
    now_pid=$server_pid now_url=$url
    for i in $(seq "$turns"); do
        sample create_before "$before_pid" create --orders --connections "$connections" --url "$before_url/colls/c/docs"
        sample create_now "$now_pid" create --orders --connections "$connections" --url "$now_url/colls/c/docs"
    done
    stop "$before_pid"
    stop "$now_pid"
}

measure_feed() {
    echo "== Starting a server with $many orders"
    start_with "$orrery" "$temp/feed"
    fill "$url/colls/c/docs" "$many" --orders
    settle "$server_pid"
    echo "== Reading all orders: $rounds rounds"
    measure_reading
    echo "== $followers followers"
    measure_followers
    stop "$server_pid"
    [ -z "${BEFORE:-}" ] || {
        echo "== Creating orders, with a log of changes and without: $turns turns"
        measure_log
    }
}

print_feed() {
    local name
    echo
    printf '%-40s %12s %16s\n' "$many orders" 'items/s' 'CPU us an item'
    for name in feed query; do
        printf '%-40s %12.0f %16.2f\n' "$name" \
            "$(of "$name" p50 | awk -v n="$many" '{ print n * 1e6 / $1 }')" \
            "$(of "$name" server_cpu_us_per_request | awk -v n="$many" '{ print $1 / n }')"
    done
    echo
    printf '%-60s %8s\n' 'items/s, feed / query' "$(ratio "$(of query p50)" "$(of feed p50)")"
    printf '%-60s %8.1f\n' 'CPU of a poll that finds nothing, us' "$(of idle server_cpu_us_per_request)"
    printf '%-60s %7.2f%%\n' "$followers followers that poll every $poll_s s, of one processor" \
        "$(of idle server_cpu_us_per_request | awk -v n="$followers" -v s="$poll_s" '{ print $1 * n / s / 1e4 }')"
    note ratio_feed_query "$(ratio "$(of query p50)" "$(of feed p50)")"
    [ -z "${BEFORE:-}" ] || {
        printf '%-60s %8s\n' 'CPU of an indexed create, with the log / without' \
            "$(by_rounds create_now create_before server_cpu_us_per_request)"
    }
}

measure_feed
print_feed
