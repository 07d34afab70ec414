# container.sh - start, the idle server, and reading a container; run.sh reads it.
#
# nginx serves a file of 1 KB from its cache, which is about the least that an HTTP server can do;
# the distance to it is what authorisation and names cost.

starts=${STARTS:-20}
echo "== Starting the server $starts times on an empty folder"
for i in $(seq "$starts"); do
    port=$(free_port)
    # What asks is there first: its own start is no part of the server's.
    "${load[@]}" --ready --unsigned --url "http://127.0.0.1:$port/healthz" &
    ready_pid=$!
    sleep 0.2
    begin=$(now_us)
    launch_server "$temp/start-$i" "$port" --no-rate-limit
    wait "$ready_pid"
    echo $(($(now_us) - begin)) >>"$temp/starts"
    stop "$server_pid"
done
start_us=$(median <"$temp/starts")

echo "== Watching the idle server for 5 s"
port=$(free_port)
start_server "$temp/idle" "$port" --no-rate-limit
sleep 1
idle_begin_ms=$(cpu_ms "$server_pid")
sleep 5
idle_cpu_ms=$(awk "BEGIN { print $(cpu_ms "$server_pid") - $idle_begin_ms }")
idle_rss_kb=$(rss_kb "$server_pid")

url=http://127.0.0.1:$port
create "$url/dbs" '{"id":"b"}'
create "$url/dbs/b/colls" '{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}'
nginx_port=$(free_port)
start_nginx "$nginx_port"

echo "== Reading a container, and a file of 1 KB from nginx: $rounds rounds of $round_seconds s each"
for count in 1 "$connections"; do
    for _ in $(seq "$rounds"); do
        sample "orrery_$count" "$server_pid" request --connections "$count" --url "$url/dbs/b/colls/c"
        sample "nginx_$count" "$nginx_pid" request --connections "$count" --url "http://127.0.0.1:$nginx_port/file"
    done
done
stop "$server_pid"
stop "$nginx_pid"
rm -rf "$temp/nginx"

row() {
    awk -v name="$1" -v a="$2" -v b="$3" \
        'BEGIN { printf "%-36s %10.2f %10.2f %8.2f\n", name, a, b, (b > 0 ? a / b : 0) }'
}
echo
printf '%-36s %10s %10s %8s\n' 'median' orrery nginx ratio
for count in 1 "$connections"; do
    while read -r field name; do
        row "$name, $count connections" "$(of "orrery_$count" "$field")" "$(of "nginx_$count" "$field")"
    done <<FIELDS
server_cpu_us_per_request CPU us a request
requests_per_s requests/s
p50 P50 us
p99 P99 us
p999 P99.9 us
FIELDS
done
awk "BEGIN { printf \"%-36s %10.2f\n\", \"start until ready, ms\", $start_us / 1000 }"
awk "BEGIN { printf \"%-36s %10.2f\n\", \"idle memory, MB\", $idle_rss_kb / 1000 }"
printf '%-36s %10.2f\n\n' 'idle CPU over 5 s, ms' "$idle_cpu_ms"
note start_us "$start_us"
note idle_rss_kb "$idle_rss_kb"
note idle_cpu_ms "$idle_cpu_ms"
