# lib.sh - what the parts of the benchmark share; run.sh reads it.
#
# Everything lives in the folder $temp and every process in $pids; both are gone when the script
# ends, however it ends. A round is one line of JSON in $temp/rounds/NAME.jsonl.

temp=$(mktemp -d)
mkdir "$temp/rounds"
pids=()
declare -A end_signals=() # of those that TERM does not end in time

# stop PID [SIGNAL]: ends a process that we started, and forgets it.
stop() {
    local left=() pid
    ! kill -"${2:-TERM}" "$1" 2>/dev/null || wait "$1" 2>/dev/null || true
    for pid in "${pids[@]}"; do
        [ "$pid" = "$1" ] || left+=("$pid")
    done
    pids=("${left[@]}")
}
cleanup() {
    local pid
    for pid in "${pids[@]}"; do
        stop "$pid" "${end_signals[$pid]:-TERM}"
    done
    rm -rf "$temp"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

# A free port.
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

# number NAME: the first number of that name in each JSON object on standard input.
number() {
    sed -n "s/.*\"$1\":\([0-9.]*\).*/\1/p"
}

# CPU of a process with all its threads, in ms.
cpu_ms() {
    awk -v tick="$(getconf CLK_TCK)" '{ sub(/.*\) /, ""); print ($12 + $13) * 1000 / tick }' "/proc/$1/stat"
}

rss_kb() {
    awk '/^VmRSS/ { print $2 }' "/proc/$1/status"
}

server_log=$temp/orrery.log

# launch_server FOLDER PORT [OPTION...]: its process is $server_pid then.
launch_server() {
    local folder=$1 port=$2
    shift 2
    # The SDK of partitions.mjs is known to merge partitions by itself, and is to do so only when it is told.
    "$orrery" serve --data "$folder" --port "$port" --merge always "$@" >"$server_log" 2>&1 &
    server_pid=$!
    pids+=("$server_pid")
}

# start_server FOLDER PORT [OPTION...]: the same, and waits until it is ready.
start_server() {
    launch_server "$@"
    "${load[@]}" --ready --unsigned --url "http://127.0.0.1:$2/healthz" || {
        cat "$server_log" >&2
        exit 1
    }
}

# settle PID [SECONDS]: what was just written is compacted in the background, which is no cost of
# reading; at most a minute, or SECONDS, are given to that.
settle() {
    local i before
    for i in $(seq "${2:-60}"); do
        before=$(cpu_ms "$1")
        sleep 1
        awk "BEGIN { exit !($(cpu_ms "$1") - $before < 20) }" && break
    done
}

# create URL BODY [OPTION...]
create() {
    local url=$1 body=$2
    shift 2
    "${load[@]}" --once --method POST --url "$url" --body "$body" "$@" >"$temp/created"
}

start_nginx() {
    mkdir "$temp/nginx" "$temp/nginx/www"
    head -c 1024 /dev/zero | tr '\0' x >"$temp/nginx/www/file"
    # Without sendfile, which costs a small file more than copying it does: nginx at its best.
    cat >"$temp/nginx/nginx.conf" <<CONF
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
CONF
    # On Debian it is not on the path of ordinary users.
    PATH=$PATH:/usr/sbin nginx -p "$temp/nginx" -c nginx.conf 2>"$temp/nginx/start.log" &
    nginx_pid=$!
    pids+=("$nginx_pid")
    "${load[@]}" --ready --unsigned --url "http://127.0.0.1:$1/file"
}

# sample NAME PID OPTION...: one round of orrery bench.
sample() {
    local name=$1 pid=$2 line
    shift 2
    line=$("${load[@]}" --json --pid "$pid" --seconds "$round_seconds" "$@") || true # it says what was wrong
    # An error page is quick to make, so a round with one would look good.
    [ "$(number failures <<<"$line")" = 0 ] &&
        grep -qE '"statuses":\{"20[01]":[0-9]+(,"201":[0-9]+)?\}' <<<"$line" || {
        echo "bench: $name was not answered with 200 or 201 throughout: $line" >&2
        exit 1
    }
    echo "$line" >>"$temp/rounds/$name.jsonl"
}

# of NAME FIELD: its median over the rounds.
of() {
    number "$2" <"$temp/rounds/$1.jsonl" | median
}

# ratio A B: A / B with two digits.
ratio() {
    awk -v a="$1" -v b="$2" 'BEGIN { printf "%.2f", (b > 0 ? a / b : 0) }'
}

# by_rounds A B FIELD: the median of the rounds' ratios of A to B, which were measured in turn: what the
# machine did in a round is in both.
by_rounds() {
    paste <(number "$3" <"$temp/rounds/$1.jsonl") <(number "$3" <"$temp/rounds/$2.jsonl") |
        awk '{ printf "%.4f\n", ($2 > 0 ? $1 / $2 : 0) }' | median | awk '{ printf "%.3f", $1 }'
}

# note NAME NUMBER: a number beside the rounds.
note() {
    printf ',\n "%s":%s' "$1" "$2" >>"$temp/notes"
}

# On a virtual machine others may take the processors for a while, and every latency is theirs then:
# how much of the time that was, in percent, since this file was read.
stolen_ticks() {
    awk '/^cpu / { print $9, $2 + $3 + $4 + $5 + $6 + $7 + $8 + $9 }' /proc/stat
}
stolen_before=$(stolen_ticks)
stolen_percent() {
    echo "$stolen_before $(stolen_ticks)" | awk '{ printf "%.1f", ($4 > $2 ? 100 * ($3 - $1) / ($4 - $2) : 0) }'
}

# Writes everything that was measured into one file.
write_result() {
    local result file
    note stolen_percent "$(stolen_percent)"
    mkdir -p bench/results
    result=bench/results/$(date -u +%Y%m%dT%H%M%SZ).json
    {
        printf '{"at":"%s","commit":"%s","processors":%s,"kernel":"%s"' "$(date -u +%Y-%m-%dT%H:%M:%SZ)" \
            "$(git rev-parse --short HEAD 2>/dev/null || echo unknown)" "$(nproc)" "$(uname -r)"
        [ ! -e "$temp/notes" ] || cat "$temp/notes"
        for file in "$temp"/rounds/*.jsonl; do
            printf ',\n "%s":[%s]' "$(basename "$file" .jsonl)" "$(paste -sd, "$file")"
        done
        printf '}\n'
    } >"$result"
    echo
    echo "Others had the processors for $(stolen_percent)% of the time. Every round is in $result"
}
