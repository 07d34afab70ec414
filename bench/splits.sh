# splits.sh - partitions that are split and merged: how fast, how clients are affected meanwhile, and
# what more partitions gain afterwards; run.sh reads it.
#
# Orders (src/load/order_text.h), completely indexed, are in one container. It is split and merged by request, so that
# each move is measured alone. A tenth of them are in containers of 1, 2, 5
# and 10 partitions.
#
#   BENCH_RATE=500   requests a second of reads, and as many of writes, while a partition is split
#   BENCH_TURNS=40   how often each number of partitions has its turn when they are compared

. bench/orders.sh
sizes="1 2 5 10"
rate=${BENCH_RATE:-500}
load_connections=16
operations="read upsert patch mixed"
# Over how many connections the sizes are compared: as everywhere, and so many that ten partitions
# have as much to do at a time as one has else.
counts="$connections $((connections * 4))"
turns=${BENCH_TURNS:-40}
need_disk 12
cache_mb=$((many * 26 / 10 / 1000 + 256))
memory_mb=$(awk '/^MemTotal/ { print int($2 / 1024 * 0.6) }' /proc/meminfo)
[ "$cache_mb" -le "$memory_mb" ] || cache_mb=$memory_mb
note cache_mb "$cache_mb"

# serve RATE: the server, with that --split-rate.
serve() {
    local port
    port=$(free_port)
    start_server "$temp/splits" "$port" --no-rate-limit --enable-chaos --no-auto-split --split-rate "$1" \
        --cache "${cache_mb}M"
    endpoint=http://127.0.0.1:$port
    docs=$endpoint/dbs/b/colls/c/docs
    moves=0 # in its log
}

# ranges [CONTAINER]: the ids of its partitions, in order.
ranges() {
    "${load[@]}" --once --url "$endpoint/dbs/b/colls/${1:-c}/pkranges" | grep -oE '"(id|minInclusive)":"[0-9A-F]*"' |
        paste - - | sort -t: -k3 | sed 's/^"id":"\([0-9]*\)".*/\1/'
}

# order WHAT BODY: asks for a move.
order() {
    "${load[@]}" --once --method POST --url "$endpoint/_orrery/chaos/dbs/b/colls/c/$1" --body "$2" >"$temp/ordered"
    moves=$((moves + 1))
}

is_over() {
    [ "$(grep -c ' move\.done ' "$temp/orrery.log")" -ge "$moves" ]
}

wait_move() {
    while ! is_over; do
        ! grep ' move\.failed ' "$temp/orrery.log" >&2 || exit 1
        sleep 0.05
    done
}

# of_move NAME: a number of the newest move.
of_move() {
    grep ' move\.done ' "$temp/orrery.log" | tail -1 | sed "s/.* $1=\([0-9]*\).*/\1/"
}

split() {
    order split "{\"range\":\"$(ranges | head -1)\",\"parts\":$1}"
}

merge() {
    order merge "{\"ranges\":[$(ranges | sed 's/.*/"&"/' | paste -sd,)]}"
}

# timed NAME COMMAND...: a move from its order to its end, as a line of a round.
timed() {
    local name=$1 begin
    shift
    begin=$(now_us)
    "$@"
    wait_move
    awk -v us=$(($(now_us) - begin)) -v bytes="$(of_move bytes)" -v items="$(of_move items)" -v fence="$(of_move fence_us)" \
        'BEGIN { printf "{\"seconds\":%.2f,\"mb_per_s\":%.1f,\"items_per_s\":%.0f,\"bytes\":%d,\"fence_us\":%d}\n",
            us / 1e6, bytes / us, items / us * 1e6, bytes, fence }' >>"$temp/rounds/$name.jsonl"
}

measure_speed() {
    local round
    echo "== Splitting $many orders in two, and merging them, as fast as it goes: 2 rounds"
    for round in 1 2; do
        timed split_fast split 2
        settle "$server_pid"
        timed merge_fast merge
        settle "$server_pid"
    done
}

# both NAME: reads and writes at the same time, at a fixed rate each.
both() {
    sample "$1_read" "$server_pid" read --orders --items "$many" --connections "$load_connections" \
        --rate "$rate" --warmup-ms 0 --url "$docs" &
    local pid=$!
    pids+=("$pid")
    sample "$1_upsert" "$server_pid" upsert --orders --items "$many" --connections "$load_connections" \
        --rate "$rate" --warmup-ms 0 --url "$docs"
    wait "$pid"
    stop "$pid"
}

# A move takes twice as long as all the rounds before it, or what --split-rate is by default.
measure_during() {
    local bytes slow round
    bytes=$(number bytes <"$temp/rounds/split_fast.jsonl" | tail -1)
    slow=$(awk -v bytes="$bytes" -v s=$((2 * rounds * round_seconds)) \
        'BEGIN { rate = bytes / s; print int(rate < 67108864 ? rate : 67108864) }')
    stop "$server_pid"
    serve "$slow"
    note split_rate "$slow"
    read_all "$docs" "$many"
    settle "$server_pid"
    echo "== $rate reads and $rate writes a second, before a split and during one at $((slow / 1000000)) MB/s"
    for round in $(seq "$rounds"); do
        both before
    done
    split 2
    while ! is_over; do
        both during # the last one sees the fence
    done
    note during_fence_us "$(of_move fence_us)"
    note during_caught_up_rounds "$(wc -l <"$temp/rounds/during_read.jsonl")"
}

# The same orders in containers that were created with that number of partitions: a move causes background
# work, and measurements that are an hour apart cannot be compared. Writes cause background work of
# RocksDB, too, for a second or two from time to time, in any container's turn. So there are many short
# turns, each size is first as often as the others, and the sums over all turns are compared.
measure_sizes() {
    local size operation round count requests few=$((many / 10))
    for size in $sizes; do
        echo "== $few orders over $size partitions"
        orders "$few" "$endpoint/dbs/b/colls/c$size" "$(policy "c$size" '')" --header "x-ms-offer-throughput: $((size * 6000))"
        [ "$(ranges "c$size" | wc -l)" = "$size" ] || {
            echo "bench: expected $size partitions, found $(ranges "c$size" | wc -l)" >&2
            exit 1
        }
    done
    settle "$server_pid"
    for size in $sizes; do
        read_all "$endpoint/dbs/b/colls/c$size/docs" "$few"
    done
    echo "== Requests to each: $turns turns of about half a second, for ${operations// /, }"
    for operation in $operations; do
        requests=6000
        case $operation in read | mixed) requests=20000 ;; esac
        for count in $counts; do
            for round in $(seq "$turns"); do
                for size in $(rotate "$round" $sizes); do
                    sample "${operation}_${size}_$count" "$server_pid" "$operation" --orders \
                        --items "$few" --connections "$count" --count "$requests" --seconds 60 --warmup-ms 0 \
                        --url "$endpoint/dbs/b/colls/c$size/docs"
                done
            done
        done
    done
}

# rotate N WORD...: the words, beginning with another one for each N.
rotate() {
    local n=$1
    shift
    n=$((n % $#))
    echo "${@:n + 1}" "${@:1:n}"
}

# rate_in_all NAME, cpu_in_all NAME: requests a second, and the server's CPU in us a request, over all of
# its turns.
rate_in_all() {
    paste <(number requests <"$temp/rounds/$1.jsonl") <(number seconds <"$temp/rounds/$1.jsonl") |
        awk '{ requests += $1; seconds += $2 } END { printf "%.0f", requests / seconds }'
}
cpu_in_all() {
    paste <(number requests <"$temp/rounds/$1.jsonl") <(number server_cpu_us_per_request <"$temp/rounds/$1.jsonl") |
        awk '{ requests += $1; us += $1 * $2 } END { printf "%.1f", us / requests }'
}

# print_sizes TITLE FUNCTION NAME: a number of each size, and its ratio to that of one partition.
print_sizes() {
    local operation count size value
    printf '\n%-28s' "$1, partitions:"
    printf ' %8s' $sizes
    printf ' %6s/1' ${sizes#* }
    echo
    for operation in $operations; do
        for count in $counts; do
            printf '%-28s' "$operation, $count connections"
            for size in $sizes; do
                printf ' %8s' "$("$2" "${operation}_${size}_$count")"
            done
            for size in ${sizes#* }; do
                value=$(ratio "$("$2" "${operation}_${size}_$count")" "$("$2" "${operation}_1_$count")")
                note "$3_${operation}_${size}_$count" "$value"
                printf ' %8s' "$value"
            done
            echo
        done
    done
}

print_splits() {
    local way operation
    echo
    printf '%-40s %12s %12s %12s %12s\n' "moves of $many orders" seconds MB/s items/s 'fence us'
    for way in split merge; do
        printf '%-40s %12.1f %12.1f %12.0f %12.0f\n' "$way, without other load" "$(of "${way}_fast" seconds)" \
            "$(of "${way}_fast" mb_per_s)" "$(of "${way}_fast" items_per_s)" "$(of "${way}_fast" fence_us)"
    done
    printf '%-40s %12s %12.1f %12s %12.0f\n' 'split under load' '' "$(awk "BEGIN { print $(noted split_rate) / 1e6 }")" '' \
        "$(noted during_fence_us)"
    echo
    printf '%-40s %12s %12s %12s %12s\n' "latency, us ($rate/s each)" 'P50 before' 'P50 during' 'P99 before' 'P99 during'
    for operation in read upsert; do
        printf '%-40s %12.0f %12.0f %12.0f %12.0f\n' "$operation" "$(of "before_$operation" p50)" "$(of "during_$operation" p50)" \
            "$(of "before_$operation" p99)" "$(of "during_$operation" p99)"
        note "during_${operation}_p99_ratio" "$(ratio "$(of "during_$operation" p99)" "$(of "before_$operation" p99)")"
        printf '%-40s %38s %25.0f\n' '' 'the slowest of all, during:' "$(number max <"$temp/rounds/during_$operation.jsonl" | sort -n | tail -1)"
    done
    print_sizes requests/s rate_in_all ratio
    print_sizes 'CPU us a request' cpu_in_all cpu_ratio
}

serve 0
create "$endpoint/dbs" '{"id":"b"}'
echo "== $many orders in one partition"
orders "$many" "$endpoint/dbs/b/colls/c" "$(policy c '')" --header 'x-ms-offer-throughput: 6000'
settle "$server_pid"
measure_speed
measure_during
stop "$server_pid"
serve 0
measure_sizes
stop "$server_pid"
print_splits
