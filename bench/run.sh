#!/bin/bash
# run.sh - what `make bench` does: measures the server, and nginx beside it in the same minutes.
#
# A number alone says more about the machine than about the server, so both are measured in turn,
# round by round, and the medians are compared. nginx serves a file of 1 KB from its cache, which is
# about the least that an HTTP server can do; the distance to it is what authorisation, names and
# documents cost.
#
#   ROUNDS=5 ROUND_SECONDS=3   how often and how long each is measured
#   STARTS=20                  how many starts
set -euo pipefail

cd "$(dirname "$0")/.."
orrery=${ORRERY:-build/orrery}
load=build/orrery-load
rounds=${ROUNDS:-5}
round_seconds=${ROUND_SECONDS:-3}
starts=${STARTS:-20}

temp=$(mktemp -d)
server_pid=
nginx_pid=

stop() {
    [ -z "$1" ] || ! kill "$1" 2>/dev/null || wait "$1" 2>/dev/null || true
}
cleanup() {
    stop "$server_pid"
    stop "$nginx_pid"
    rm -rf "$temp"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

# A port on which nobody answers.
free_port() {
    local port
    while :; do
        port=$((20000 + RANDOM % 10000))
        (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null || break
    done
    echo "$port"
}

now_us() {
    echo "${EPOCHREALTIME/[.,]/}"
}

median() {
    sort -n | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'
}

# number NAME: the first number of that name in a JSON object of orrery-load.
number() {
    sed -n "s/.*\"$1\":\([0-9.]*\).*/\1/p"
}

cpu_ms() {
    awk -v tick="$(getconf CLK_TCK)" '{ sub(/.*\) /, ""); print ($12 + $13) * 1000 / tick }' "/proc/$1/stat"
}

start_server() {
    "$orrery" serve --data "$1" --port "$2" >"$temp/orrery.log" 2>&1 &
    server_pid=$!
    "$load" --ready --unsigned --url "http://127.0.0.1:$2/healthz" || {
        cat "$temp/orrery.log" >&2
        exit 1
    }
}

start_nginx() {
    mkdir "$temp/nginx" "$temp/nginx/www"
    head -c 1024 /dev/zero | tr '\0' x >"$temp/nginx/www/file"
    # Without sendfile, which costs a small file more than copying it does: nginx at its best.
    cat >"$temp/nginx/nginx.conf" <<EOF
daemon off;
master_process off;
pid $temp/nginx/pid;
error_log $temp/nginx/error.log;
events { worker_connections 1024; }
http {
    access_log off;
    default_type application/json;
    sendfile off;
    open_file_cache max=16 inactive=1h;
    keepalive_timeout 1h;
    keepalive_requests 1000000000;
    client_body_temp_path $temp/nginx/body;
    proxy_temp_path $temp/nginx/proxy;
    fastcgi_temp_path $temp/nginx/fastcgi;
    uwsgi_temp_path $temp/nginx/uwsgi;
    scgi_temp_path $temp/nginx/scgi;
    server { listen 127.0.0.1:$1; root $temp/nginx/www; }
}
EOF
    # On Debian it is not on the path of ordinary users.
    PATH=$PATH:/usr/sbin nginx -p "$temp/nginx" -c nginx.conf 2>"$temp/nginx/start.log" &
    nginx_pid=$!
    "$load" --ready --unsigned --url "http://127.0.0.1:$1/file"
}

# sample NAME CONNECTIONS URL PID: one round, kept in a file of that name.
sample() {
    local line
    line=$("$load" --json --url "$3" --connections "$2" --seconds "$round_seconds" --pid "$4")
    # An error page is quick to make, so a round with one would look good.
    [ "$(number failures <<<"$line")" = 0 ] && grep -q '"statuses":{"200":[0-9]*}' <<<"$line" || {
        echo "bench: $1 did not answer everything with 200: $line" >&2
        exit 1
    }
    echo "$line" >>"$temp/$1-$2.jsonl"
}

# of NAME CONNECTIONS FIELD: its median over the rounds.
of() {
    number "$3" <"$temp/$1-$2.jsonl" | median
}

echo "== Starting the server $starts times on an empty folder"
for i in $(seq "$starts"); do
    port=$(free_port)
    begin=$(now_us)
    start_server "$temp/start-$i" "$port"
    echo $(($(now_us) - begin)) >>"$temp/starts"
    stop "$server_pid"
    server_pid=
done
start_us=$(median <"$temp/starts")

echo "== Watching the idle server for 5 s"
port=$(free_port)
start_server "$temp/data" "$port"
sleep 1
idle_begin_ms=$(cpu_ms "$server_pid")
sleep 5
idle_cpu_ms=$(awk "BEGIN { print $(cpu_ms "$server_pid") - $idle_begin_ms }")
idle_rss_kb=$(awk '/^VmRSS/ { print $2 }' "/proc/$server_pid/status")

url=http://127.0.0.1:$port
"$load" --once --method POST --url "$url/dbs" --body '{"id":"b"}' >"$temp/created"
"$load" --once --method POST --url "$url/dbs/b/colls" >"$temp/created" \
    --body '{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}'
nginx_port=$(free_port)
start_nginx "$nginx_port"

echo "== Reading a container, and a file of 1 KB from nginx: $rounds rounds of $round_seconds s each"
for connections in 1 32; do
    for _ in $(seq "$rounds"); do
        sample orrery "$connections" "$url/dbs/b/colls/c" "$server_pid"
        sample nginx "$connections" "http://127.0.0.1:$nginx_port/file" "$nginx_pid"
    done
done

row() {
    awk -v name="$1" -v a="$2" -v b="$3" \
        'BEGIN { printf "%-36s %10.2f %10.2f %8.2f\n", name, a, b, (b > 0 ? a / b : 0) }'
}
echo
printf '%-36s %10s %10s %8s\n' 'median' orrery nginx ratio
for connections in 1 32; do
    row "CPU us a request, $connections connections" \
        "$(of orrery $connections server_cpu_us_per_request)" "$(of nginx $connections server_cpu_us_per_request)"
    row "requests/s, $connections connections" \
        "$(of orrery $connections requests_per_s)" "$(of nginx $connections requests_per_s)"
    row "P50 us, $connections connections" "$(of orrery $connections p50)" "$(of nginx $connections p50)"
    row "P99 us, $connections connections" "$(of orrery $connections p99)" "$(of nginx $connections p99)"
    row "P99.9 us, $connections connections" "$(of orrery $connections p999)" "$(of nginx $connections p999)"
done
awk "BEGIN { printf \"%-36s %10.2f\n\", \"start until ready, ms\", $start_us / 1000 }"
awk "BEGIN { printf \"%-36s %10.2f\n\", \"idle memory, MB\", $idle_rss_kb / 1000 }"
printf '%-36s %10.2f\n' 'idle CPU over 5 s, ms' "$idle_cpu_ms"

mkdir -p bench/results
result=bench/results/$(date -u +%Y%m%dT%H%M%SZ).json
{
    printf '{"at":"%s","commit":"%s","processors":%s,"kernel":"%s",\n' "$(date -u +%Y-%m-%dT%H:%M:%SZ)" \
        "$(git rev-parse --short HEAD 2>/dev/null || echo unknown)" "$(nproc)" "$(uname -r)"
    printf ' "start_us":%s,"idle_rss_kb":%s,"idle_cpu_ms":%s' "$start_us" "$idle_rss_kb" "$idle_cpu_ms"
    for name in orrery nginx; do
        for connections in 1 32; do
            printf ',\n "%s_%s":[%s]' "$name" "$connections" "$(paste -sd, "$temp/$name-$connections.jsonl")"
        done
    done
    printf '}\n'
} >"$result"
echo
echo "Every round is in $result"
