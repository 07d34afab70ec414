# large.sh - a million items or more: what they take, and whether reads notice; run.sh reads it.
#
# Two servers run at the same time, one with few items and one with many, and are read in turn from
# random places. Both have a cache that holds all of the many, as far as the machine has memory, and
# every item is read once beforehand.

. bench/items.sh
few=10000
many=${BENCH_ITEMS:-1000000}
# An item of 1 KB takes 1.2 KB of the cache, three quarters of which hold items.
cache_mb=$((many * 17 / 10 / 1000 + 128))
memory_mb=$(awk '/^MemTotal/ { print int($2 / 1024 * 0.75) }' /proc/meminfo)
[ "$cache_mb" -le "$memory_mb" ] || cache_mb=$memory_mb
note cache_mb "$cache_mb"

# start_filled NAME COUNT: notes what the items take. Leaves $server_pid and $docs.
start_filled() {
    local port begin
    port=$(free_port)
    start_server "$temp/$1" "$port" --no-rate-limit --cache "${cache_mb}M"
    create "http://127.0.0.1:$port/dbs" '{"id":"b"}'
    create "http://127.0.0.1:$port/dbs/b/colls" "$container"
    echo "== Making $2 items of 1 KB in batches of 100"
    fill "http://127.0.0.1:$port/dbs/b/colls/c/docs" "$2"
    cp "$temp/filled" "$temp/rounds/$1_fill.jsonl"
    note "$1_filled_rss_kb" "$(rss_kb "$server_pid")"
    # Stopped and started, so that both read from what is on disk and say how long a start takes.
    stop "$server_pid"
    begin=$(now_us)
    start_server "$temp/$1" "$port" --no-rate-limit --cache "${cache_mb}M"
    note "$1_start_us" $(($(now_us) - begin))
    docs=http://127.0.0.1:$port/dbs/b/colls/c/docs
}

free_kb=$(df -Pk "$temp" | awk 'NR == 2 { print $4 }')
[ "$many" -ge 10000 ] && [ "$many" -le 1000000000 ] && [ "$free_kb" -gt $((many * 4)) ] || {
    echo "bench: expected BENCH_ITEMS from 10000, and 4 KB of disk for each; found $many, and $free_kb KB in $temp" >&2
    exit 1
}
start_filled few "$few"
few_pid=$server_pid
few_docs=$docs
start_filled many "$many"
many_pid=$server_pid
many_docs=$docs

echo "== Reading items at random over $connections connections: $rounds rounds of $round_seconds s each"
for pid in "$few_pid" "$many_pid"; do
    settle "$pid"
done
"${load[@]}" --json sweep --first 0 --count "$few" --seconds 3600 --connections "$connections" \
    --pid "$few_pid" --url "$few_docs" >"$temp/rounds/few_cold_read.jsonl"
"${load[@]}" --json sweep --first 0 --count "$many" --seconds 3600 --connections "$connections" \
    --pid "$many_pid" --url "$many_docs" >"$temp/rounds/many_cold_read.jsonl"
for round in $(seq "$rounds"); do
    sample few_read "$few_pid" read --items "$few" --connections "$connections" --url "$few_docs"
    sample many_read "$many_pid" read --items "$many" --connections "$connections" --url "$many_docs"
done
for name in few many; do
    pid=${name}_pid
    note "${name}_rss_kb" "$(rss_kb "${!pid}")"
    note "${name}_disk_bytes" "$(du -s --block-size=1 "$temp/$name" | cut -f1)"
done

noted() {
    number "$1" <"$temp/notes"
}
row() {
    awk -v name="$1" -v a="$2" -v b="$3" \
        'BEGIN { printf "%-36s %14.2f %14.2f %8.2f\n", name, a, b, (a > 0 ? b / a : 0) }'
}
per_item() {
    awk "BEGIN { print $1 / $2 }"
}
echo
printf '%-36s %14s %14s %8s\n' 'items' "$few" "$many" ratio
row 'read: CPU us a request' "$(of few_read server_cpu_us_per_request)" "$(of many_read server_cpu_us_per_request)"
row 'first read: CPU us a request' "$(of few_cold_read server_cpu_us_per_request)" \
    "$(of many_cold_read server_cpu_us_per_request)"
row 'read: requests/s' "$(of few_read requests_per_s)" "$(of many_read requests_per_s)"
row 'read: P50 us' "$(of few_read p50)" "$(of many_read p50)"
row 'read: P99 us' "$(of few_read p99)" "$(of many_read p99)"
row 'memory after reads, MB' "$(per_item "$(noted few_rss_kb)" 1000)" "$(per_item "$(noted many_rss_kb)" 1000)"
row 'memory after writes, MB' "$(per_item "$(noted few_filled_rss_kb)" 1000)" "$(per_item "$(noted many_filled_rss_kb)" 1000)"
row 'disk, bytes an item' "$(per_item "$(noted few_disk_bytes)" "$few")" "$(per_item "$(noted many_disk_bytes)" "$many")"
row 'start until ready, ms' "$(per_item "$(noted few_start_us)" 1000)" "$(per_item "$(noted many_start_us)" 1000)"
row 'items made a second' "$(per_item "$(of few_fill requests_per_s)" 0.01)" "$(per_item "$(of many_fill requests_per_s)" 0.01)"
row 'items made: CPU us an item' "$(per_item "$(of few_fill server_cpu_us_per_request)" 100)" \
    "$(per_item "$(of many_fill server_cpu_us_per_request)" 100)"
