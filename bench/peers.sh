# peers.sh - Redis and PostgreSQL as items.sh and queries.sh measure them; items.sh reads it.
#
# Both run in the foreground on folders of ours, over TCP as our server does, and both keep what they
# acknowledge: they sync before they answer. What could disturb them within a round (rewriting a
# log, a checkpoint) is put off, so they are at their best. Their own load generators, one thread
# each, drive them.

# start_redis PORT
start_redis() {
    mkdir "$temp/redis"
    redis-server --bind 127.0.0.1 --port "$1" --dir "$temp/redis" --save '' --appendonly yes \
        --appendfsync always --auto-aof-rewrite-percentage 0 >"$temp/redis.log" 2>&1 &
    redis_pid=$!
    pids+=("$redis_pid")
    redis_port=$1
    local i
    for i in $(seq 100); do
        ! redis-cli -p "$redis_port" ping >"$temp/created" 2>&1 || break
        sleep 0.1
    done
    # The keys that its load generator asks for.
    awk -v count="$items" -v text="$("${load[@]}" --print-item --seed 0 --first 0)" \
        'BEGIN { for (i = 0; i < count; i++) printf "SET key:%012d %s\r\n", i, "'"'"'" text "'"'"'" }' |
        redis-cli -p "$redis_port" >"$temp/created"
    [ "$(redis-cli -p "$redis_port" dbsize)" = "$items" ]
}

# timed COMMAND...: runs it; afterwards, client_ms and elapsed_ms say what it took.
timed() {
    local TIMEFORMAT='%R %U %S'
    { time "$@" >"$temp/timed.out" 2>"$temp/timed.err"; } 2>"$temp/timed" || {
        cat "$temp/timed.out" "$temp/timed.err" >&2
        exit 1
    }
    client_ms=$(awk '{ print ($2 + $3) * 1000 }' "$temp/timed")
    elapsed_ms=$(awk '{ print $1 * 1000 }' "$temp/timed")
}

# round NAME REQUESTS PER_S P50 P99 SERVER_MS: the line that orrery bench would have written.
round() {
    awk -v requests="$2" -v per_s="$3" -v p50="$4" -v p99="$5" -v server_ms="$6" -v client_ms="$client_ms" \
        -v elapsed_ms="$elapsed_ms" 'BEGIN {
        printf "{\"requests\":%d,\"requests_per_s\":%.1f,\"latency_us\":{\"p50\":%d,\"p99\":%d},", requests, per_s, p50, p99
        printf "\"server_cpu_us_per_request\":%.3f,", server_ms * 1000 / requests
        printf "\"client_cpu_us_per_request\":%.3f,\"client_busy\":%.2f}\n", client_ms * 1000 / requests, client_ms / elapsed_ms
    }' >>"$temp/rounds/$1.jsonl"
}

# sample_redis NAME KEYS get|set: its load generator counts requests instead of seconds, so a short
# run before the first round says how many those are.
declare -A redis_requests
sample_redis() {
    local name=$1 command before
    command=(redis-benchmark -p "$redis_port" -c "$connections" -d 1024 -r "$2" -t "$3" --csv)
    if [ -z "${redis_requests[$name]:-}" ]; then
        timed "${command[@]}" -n 5000
        redis_requests[$name]=$(tail -1 "$temp/timed.out" | tr -d '"' |
            awk -F, -v seconds="$round_seconds" '{ print int($2 * seconds) + 1 }')
    fi
    before=$(cpu_ms "$redis_pid")
    timed "${command[@]}" -n "${redis_requests[$name]}"
    # "SET","rps","avg","min","p50","p95","p99","max", in ms
    read -r per_s p50 p99 < <(tail -1 "$temp/timed.out" | tr -d '"' |
        awk -F, '{ print $2, $5 * 1000, $7 * 1000 }')
    round "$name" "${redis_requests[$name]}" "$per_s" "$p50" "$p99" \
        "$(awk "BEGIN { print $(cpu_ms "$redis_pid") - $before }")"
}

# PostgreSQL refuses to run as root.
as_postgres() {
    if [ "$(id -u)" = 0 ]; then
        exec setpriv --reuid=postgres --regid=postgres --init-groups "$@"
    else
        exec "$@"
    fi
}

# The programs themselves: what Debian has on the path is a script that looks for them.
postgres_bin=/usr/lib/postgresql/15/bin
[ -x "$postgres_bin/postgres" ] || postgres_bin=$(dirname "$(command -v postgres)")

pg() {
    "$postgres_bin/psql" -X -q -v ON_ERROR_STOP=1 -h 127.0.0.1 -p "$postgres_port" -U bench "$@" postgres
}

# An item's number makes its names, as in src/load/item_maker.h, with numbers that pgbench can count with.
name_of() {
    echo "($1 * 2654435761) % 4294967296"
}

# start_postgres_server PORT SHARED_BUFFERS [OPTION...]: an empty one; its process is $postgres_pid then.
start_postgres_server() {
    local i buffers=$2
    postgres_port=$1
    shift 2
    postgres_options=(-c listen_addresses=127.0.0.1 -c unix_socket_directories= -c synchronous_commit=on -c fsync=on
        -c shared_buffers="$buffers" -c max_wal_size=8GB -c checkpoint_timeout=1h "$@")
    make_postgres_folder postgres
    (cd / && as_postgres "$postgres_bin/initdb" -D "$temp/postgres" -U bench --auth=trust -E UTF8 --locale=C \
        >"$temp/initdb.log" 2>&1)
    run_postgres postgres "$postgres_port"
    postgres_pids=("$postgres_pid")
    for i in $(seq 100); do
        ! pg -c 'SELECT 1' >"$temp/created" 2>&1 || break
        sleep 0.1
    done
}

make_postgres_folder() {
    chmod 711 "$temp"
    mkdir -m 700 "$temp/$1"
    [ "$(id -u)" != 0 ] || chown postgres: "$temp/$1"
}

# run_postgres FOLDER PORT [OPTION...]: its process is $postgres_pid then.
run_postgres() {
    local folder=$temp/$1 port=$2
    shift 2
    (cd / && as_postgres "$postgres_bin/postgres" -D "$folder" -p "$port" "${postgres_options[@]}" "$@" \
        >"$folder.log" 2>&1) &
    postgres_pid=$!
    pids+=("$postgres_pid")
    end_signals[$postgres_pid]=INT # it does not wait for its clients then
}

# start_standby PORT: from here on, what the server acknowledges is on the disk of its standby, too. The
# standby's process is $standby_pid then, and postgres_cpu_ms is about both.
start_standby() {
    local postgres_pid i
    standby_port=$1
    make_postgres_folder standby
    (cd / && as_postgres "$postgres_bin/pg_basebackup" -h 127.0.0.1 -p "$postgres_port" -U bench -D "$temp/standby" \
        -c fast -X stream >"$temp/basebackup.log" 2>&1)
    (cd / && as_postgres touch "$temp/standby/standby.signal")
    run_postgres standby "$standby_port" \
        -c "primary_conninfo=host=127.0.0.1 port=$postgres_port user=bench application_name=standby"
    standby_pid=$postgres_pid
    postgres_pids+=("$standby_pid")
    pg -c "ALTER SYSTEM SET synchronous_standby_names = 'standby'" -c 'SELECT pg_reload_conf()' >"$temp/created"
    for i in $(seq 100); do
        [ "$(pg -At -c "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'")" = 0 ] || return 0
        sleep 0.1
    done
    echo "bench: the standby of PostgreSQL does not follow: $(tail -3 "$temp/standby.log")" >&2
    exit 1
}

# start_postgres PORT: with the items in it.
start_postgres() {
    start_postgres_server "$1" 256MB
    item=$("${load[@]}" --print-item --seed 0 --first 0)
    pgbench_variables=(-D "doc=$item")
    pg <<SQL
CREATE TABLE items (pk text, id text, doc jsonb, PRIMARY KEY (pk, id));
INSERT INTO items SELECT ($(name_of '(n / 100)'))::text, ($(name_of n))::text, '$item'
    FROM generate_series(0::bigint, $items - 1) AS n;
SQL
    pg -c 'VACUUM ANALYZE items' -c CHECKPOINT
    write_scripts
    # This one fails when a row is missing, and the run that counts does not look.
    sed 's/;$/ \\gset/' "$temp/read.sql" >"$temp/found.sql"
    pgbench_run -t 20 -f "$temp/found.sql" >"$temp/created" 2>&1
    measure_connect read.sql
}

# measure_connect SCRIPT: what the connections cost before they do anything; each round pays that, and
# is given it back.
measure_connect() {
    local before
    before=$(postgres_cpu_ms)
    pgbench_run -t 1 -f "$temp/$1" >"$temp/created" 2>&1
    postgres_connect_ms=$(awk "BEGIN { print $(postgres_cpu_ms) - $before }")
}

write_scripts() {
    local any new i
    any="\\set n random(0, $items - 1)
\\set pk $(name_of '(:n / 100)')
\\set id $(name_of :n)"
    new="\\set id random(4294967296, 9000000000000000000)
\\set pk :id / 100"
    printf '%s\n' "$any" 'SELECT doc FROM items WHERE pk = :pk AND id = :id;' >"$temp/read.sql"
    printf '%s\n' "$new" 'INSERT INTO items VALUES (:pk, :id, :doc);' >"$temp/create.sql"
    printf '%s\n' "$any" 'INSERT INTO items VALUES (:pk, :id, :doc)
    ON CONFLICT (pk, id) DO UPDATE SET doc = excluded.doc;' >"$temp/upsert.sql"
    printf '%s\n' "$any" "UPDATE items SET doc = jsonb_set(jsonb_set(doc, '{serial}', to_jsonb(:n::bigint)),
    '{quantity}', to_jsonb((doc->>'quantity')::bigint + 1)) WHERE pk = :pk AND id = :id RETURNING doc;" \
        >"$temp/patch.sql"
    {
        printf '%s\nINSERT INTO items VALUES\n' "$new"
        for i in $(seq 99); do
            echo "(:pk, '$i', :doc),"
        done
        echo "(:pk, '100', :doc);"
    } >"$temp/batch.sql"
}

pgbench_variables=() # options that scripts need
pgbench_sampling=0.2 # share of the transactions whose latency is kept

pgbench_run() {
    "$postgres_bin/pgbench" -n -M prepared -h 127.0.0.1 -p "$postgres_port" -U bench -c "$connections" -j 1 \
        "${pgbench_variables[@]}" "$@" postgres
}

# All processes of it and of its standby: those that have ended count for the first one, so the connections of
# the last run are given the time to end. One that ends between the two looks is lost, and does little.
postgres_cpu_ms() {
    local server pid files=()
    sleep 0.3
    for server in "${postgres_pids[@]}"; do
        for pid in "$server" $(cat "/proc/$server/task/$server/children"); do
            files+=("/proc/$pid/stat")
        done
    done
    { cat "${files[@]}" 2>"$temp/gone" || true; } | awk -v tick="$(getconf CLK_TCK)" \
        '{ sub(/.*\) /, ""); sum += $12 + $13 + $14 + $15 } END { print sum * 1000 / tick }'
}

# sample_postgres NAME SCRIPT...
sample_postgres() {
    local name=$1 before server_ms requests per_s p50 p99 script scripts=()
    shift
    for script in "$@"; do
        scripts+=(-f "$temp/$script")
    done
    before=$(postgres_cpu_ms)
    # Its time runs while it still connects, but it counts from the last connection.
    timed pgbench_run -T $((round_seconds + 1)) "${scripts[@]}" --log --log-prefix="$temp/pgbench" \
        --sampling-rate="$pgbench_sampling"
    server_ms=$(awk "BEGIN { print $(postgres_cpu_ms) - $before - $postgres_connect_ms }")
    requests=$(sed -n 's/^number of transactions actually processed: \([0-9]*\).*/\1/p' "$temp/timed.out")
    per_s=$(sed -n 's/^tps = \([0-9.]*\).*/\1/p' "$temp/timed.out")
    grep -q '^number of failed transactions: 0 ' "$temp/timed.out"
    read -r p50 p99 < <(awk '{ print $3 }' "$temp"/pgbench.* | sort -n |
        awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)], v[int(NR * 0.99) + (NR < 100)] }')
    rm -f "$temp"/pgbench.*
    round "$name" "$requests" "$per_s" "$p50" "$p99" "$server_ms"
}
