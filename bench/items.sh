# items.sh - items of 1 KB, beside nginx, Redis and PostgreSQL; run.sh reads it.
#
# Every server gets the same number of connections from a client of one thread, and each write is on
# disk before it is answered. In each round all of them have their turn.

items=${ITEMS:-10000}
. bench/peers.sh

operations="read create upsert patch batch mixed"
container='{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2},
 "indexingPolicy":{"indexingMode":"none","automatic":false}}'

# fill URL COUNT [OPTION...]: items 0 to COUNT - 1, in batches of 100. In the background, so that an
# interrupt does not have to wait for it.
fill() {
    local url=$1 count=$2
    shift 2
    "${load[@]}" --json batch --first 0 --count $((count / 100)) --seconds 3600 \
        --connections "$connections" --pid "$server_pid" --url "$url" "$@" >"$temp/filled" &
    local pid=$!
    pids+=("$pid")
    wait "$pid"
    stop "$pid"
    grep -q '"statuses":{"200":[0-9]*}' "$temp/filled" || {
        echo "bench: the items could not be made: $(cat "$temp/filled")" >&2
        exit 1
    }
}

measure_items() {
    echo "== Starting Orrery, nginx, Redis and PostgreSQL with $items items of 1 KB each"
    local port nginx_port docs i operation
    port=$(free_port)
    start_server "$temp/items" "$port" --no-rate-limit
    create "http://127.0.0.1:$port/dbs" '{"id":"b"}'
    create "http://127.0.0.1:$port/dbs/b/colls" "$container"
    docs=http://127.0.0.1:$port/dbs/b/colls/c/docs
    fill "$docs" "$items"
    nginx_port=$(free_port)
    start_nginx "$nginx_port"
    start_redis "$(free_port)"
    start_postgres "$(free_port)"

    echo "== Items over $connections connections: $rounds rounds of $round_seconds s each"
    for i in $(seq "$rounds"); do
        sample nginx_file "$nginx_pid" request --connections "$connections" --url "http://127.0.0.1:$nginx_port/file"
        for operation in $operations; do
            sample "orrery_$operation" "$server_pid" "$operation" --items "$items" \
                --connections "$connections" --url "$docs"
            if [ "$operation" = mixed ]; then
                sample_postgres postgres_mixed read.sql@95 upsert.sql@5
            else
                sample_postgres "postgres_$operation" "$operation.sql"
            fi
            case $operation in
            read) sample_redis redis_read "$items" get ;;
            create) sample_redis redis_create 1000000000 set ;;
            upsert) sample_redis redis_upsert "$items" set ;;
            esac
        done
    done
    stop "$server_pid"
    stop "$nginx_pid"
    stop "$redis_pid"
    stop "$postgres_pid" INT
}

print_items() {
    local operation server name
    echo
    printf '%-8s %-10s %12s %12s %10s %10s %12s %7s\n' median server 'CPU us a req' 'requests/s' 'P50 us' 'P99 us' \
        'client us' 'busy'
    for operation in file $operations; do
        for server in orrery nginx redis postgres; do
            name=${server}_$operation
            [ -e "$temp/rounds/$name.jsonl" ] || continue
            printf '%-8s %-10s %12.2f %12.0f %10.0f %10.0f %12.2f %6.0f%%\n' "$operation" "$server" \
                "$(of "$name" server_cpu_us_per_request)" "$(of "$name" requests_per_s)" "$(of "$name" p50)" \
                "$(of "$name" p99)" "$(of "$name" client_cpu_us_per_request)" \
                "$(of "$name" client_busy | awk '{ print $1 * 100 }')"
        done
    done
    echo
    printf '%-52s %8s\n' 'ratio of medians' ''
    print_ratio 'read: CPU a request, Orrery / nginx' orrery_read nginx_file server_cpu_us_per_request
    for operation in $operations; do
        print_ratio "$operation: requests/s, Orrery / PostgreSQL" "orrery_$operation" "postgres_$operation" requests_per_s
        print_ratio "$operation: CPU a request, Orrery / PostgreSQL" "orrery_$operation" "postgres_$operation" \
            server_cpu_us_per_request
    done
    for operation in read create upsert; do
        print_ratio "$operation: requests/s, Orrery / Redis" "orrery_$operation" "redis_$operation" requests_per_s
        print_ratio "$operation: CPU a request, Orrery / Redis" "orrery_$operation" "redis_$operation" \
            server_cpu_us_per_request
    done
}

# print_ratio TEXT NAME NAME FIELD
print_ratio() {
    local value
    value=$(ratio "$(of "$2" "$4")" "$(of "$3" "$4")")
    printf '%-52s %8s\n' "$1" "$value"
    note "ratio_${2}_${3}_$4" "$value"
}

# Only when it is the part that was asked for: large.sh and orders.sh read this file for fill.
[ "$part" != items ] || {
    measure_items
    note items "$items"
    print_items
}
