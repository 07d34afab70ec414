# throughput.sh - what it costs to enforce reserved throughput; run.sh reads it.
#
# Two servers with the same items, one of which asks a budget before each read: all else is the same,
# charges too. They have their turns in the same seconds, round by round, so that whatever else the
# machine does hits both. What is provisioned is more than any client can use.

items=${ITEMS:-10000}
. bench/items.sh

# open_budget NAME PORT [OPTION...]: a server with items; its process is ${NAME}_pid then.
open_budget() {
    local name=$1 port=$2
    shift 2
    start_server "$temp/$name" "$port" --partition-ru 1000000 "$@"
    create "http://127.0.0.1:$port/dbs" '{"id":"b"}'
    create "http://127.0.0.1:$port/dbs/b/colls" "$container" --header "x-ms-offer-throughput: 1000000"
    fill "http://127.0.0.1:$port/dbs/b/colls/c/docs" "$items"
    printf -v "${name}_pid" '%s' "$server_pid"
}

measure_throughput() {
    local open_port bound_port i name port pid
    open_port=$(free_port)
    echo "== Starting two servers with $items items of 1 KB each"
    open_budget free "$open_port" --no-rate-limit
    bound_port=$(free_port)
    open_budget bound "$bound_port"
    settle "$free_pid"
    settle "$bound_pid"
    echo "== Reads over $connections connections: $rounds rounds of $round_seconds s each"
    for i in $(seq "$rounds"); do
        # Each is first in every second round.
        for name in $([ $((i % 2)) = 0 ] && echo free bound || echo bound free); do
            [ "$name" = free ] && port=$open_port pid=$free_pid || port=$bound_port pid=$bound_pid
            sample "read_$name" "$pid" --items read --items-count "$items" --connections "$connections" \
                --url "http://127.0.0.1:$port/dbs/b/colls/c/docs"
        done
    done
    stop "$free_pid"
    stop "$bound_pid"
}

print_throughput() {
    local name
    echo
    printf '%-28s %12s %12s %10s\n' 'median of reads' 'CPU us a req' 'requests/s' 'P99 us'
    for name in free bound; do
        printf '%-28s %12.3f %12.0f %10.0f\n' \
            "$([ $name = free ] && echo --no-rate-limit || echo 'with a budget')" \
            "$(of "read_$name" server_cpu_us_per_request)" "$(of "read_$name" requests_per_s)" \
            "$(of "read_$name" p99)"
    done
    echo
    # The median of the ratios of each round: what the machine did in it is in both.
    local ratio
    ratio=$(paste <(number server_cpu_us_per_request <"$temp/rounds/read_bound.jsonl") \
        <(number server_cpu_us_per_request <"$temp/rounds/read_free.jsonl") | awk '{ print $1 / $2 }' | median)
    printf '%-40s %.3f\n' 'CPU of a read with a budget / without' "$ratio"
    note ratio_read_budget "$ratio"
}

measure_throughput
print_throughput
