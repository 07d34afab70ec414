# throughput.sh - what budgets and statistics cost a read; run.sh reads it.
#
# Three servers with the same items: one that neither asks a budget nor keeps statistics, one that
# keeps statistics, and one that does both. All else is the same, charges too. The differences are
# smaller than what a machine does from one second to the next, so the turns are short and many,
# each server is first as often as the others, and ratios are made turn by turn. What is provisioned is
# more than any client can use.
#
#   BENCH_TURNS=60   of 10,000 reads each

items=${ITEMS:-10000}
turns=${BENCH_TURNS:-60}
reads=10000
. bench/items.sh

declare -A options=([bare]='--no-rate-limit --no-statistics' [seen]='--no-rate-limit' [bound]='')
declare -A ports server_pids

# open_budget NAME: a server with items.
open_budget() {
    local port
    port=$(free_port)
    # shellcheck disable=SC2086 # several options
    start_server "$temp/$1" "$port" --partition-ru 1000000 ${options[$1]}
    create "http://127.0.0.1:$port/dbs" '{"id":"b"}'
    create "http://127.0.0.1:$port/dbs/b/colls" "$container" --header "x-ms-offer-throughput: 1000000"
    fill "http://127.0.0.1:$port/dbs/b/colls/c/docs" "$items"
    ports[$1]=$port
    server_pids[$1]=$server_pid
    settle "$server_pid"
}

read_items() {
    sample "read_$1" "${server_pids[$1]}" read --items "$items" --connections "$connections" \
        --count "$reads" --url "http://127.0.0.1:${ports[$1]}/dbs/b/colls/c/docs"
}

measure_throughput() {
    local i name
    echo "== Starting three servers with $items items of 1 KB each"
    for name in bare seen bound; do
        open_budget "$name"
        read_items "$name"
        rm "$temp/rounds/read_$name.jsonl" # it was the first, which fills caches
    done
    echo "== Reads over $connections connections: $turns turns of $reads reads"
    for i in $(seq "$turns"); do
        case $((i % 3)) in
        0) set -- bare seen bound ;;
        1) set -- seen bound bare ;;
        2) set -- bound bare seen ;;
        esac
        for name in "$@"; do
            read_items "$name"
        done
    done
    for name in bare seen bound; do
        stop "${server_pids[$name]}"
    done
}

print_throughput() {
    local name value
    echo
    printf '%-36s %12s %12s %10s\n' 'median of reads' 'CPU us a req' 'requests/s' 'P99 us'
    for name in bare seen bound; do
        printf '%-36s %12.3f %12.0f %10.0f\n' "${options[$name]:-with statistics and a budget}" \
            "$(of "read_$name" server_cpu_us_per_request)" "$(of "read_$name" requests_per_s)" \
            "$(of "read_$name" p99)"
    done
    echo
    value=$(by_rounds read_seen read_bare server_cpu_us_per_request)
    printf '%-48s %s\n' 'CPU of a read with statistics / without' "$value"
    note ratio_read_statistics "$value"
    value=$(by_rounds read_bound read_seen server_cpu_us_per_request)
    printf '%-48s %s\n' 'CPU of a read with a budget / without' "$value"
    note ratio_read_budget "$value"
}

measure_throughput
print_throughput
