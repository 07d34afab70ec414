# import.sh - `orrery import` and `orrery export` beside PostgreSQL's COPY; run.sh reads it.
#
#   BENCH_ITEMS=1000000     items of 1 KB in the file
#   ROUNDS=3                how often each is measured, in turn
#
# Both read the same items from a file on the same disk and index all of them: Orrery by its default
# policy, PostgreSQL by a GIN index (jsonb_path_ops) on a column of JSONB, which exists beforehand, as
# the container does. Both are empty at the beginning of a round, and sync what they acknowledge. The
# time is that of the whole command. Then both write all items back to a file.

. bench/items.sh
many=${BENCH_ITEMS:-1000000}
note items "$many"

need_room() {
    local free_kb
    free_kb=$(df -Pk "$temp" | awk 'NR == 2 { print $4 }')
    [ "$many" -ge 100 ] && [ "$many" -le 100000000 ] && [ "$free_kb" -gt $((many * 16)) ] || {
        echo "bench: expected BENCH_ITEMS from 100, and 16 KB of disk for each; found $many, and $free_kb KB in $temp" >&2
        exit 1
    }
}

# The items as JSON lines, and as the lines of three columns that COPY reads.
make_files() {
    echo "== Making files of $many items of 1 KB"
    awk -v count="$many" -v item="$("${load[@]}" --print-item --seed 0 --first 0)" -v jsonl="$temp/items.jsonl" -v copy="$temp/items.copy" '
    BEGIN {
        sub(/^\{"id":"[^"]*","pk":"[^"]*","serial":[0-9]+/, "", item)
        at = index(item, "\"quantity\":3")
        before = substr(item, 1, at - 1)
        after = substr(item, at + length("\"quantity\":3"))
        for (i = 0; i < count; i++) {
            id = sprintf("%08x%08x", (i * 2654435761) % 4294967296, i)
            pk = sprintf("%016x", int(i / 100))
            text = "{\"id\":\"" id "\",\"pk\":\"" pk "\",\"serial\":" i before "\"quantity\":" i % 1000 after
            print text >jsonl
            print pk "\t" id "\t" text >copy
        }
    }'
    chmod 644 "$temp/items.copy"
}

# sample_timed NAME PID COMMAND...: the seconds of a command, and the CPU of it and of the server.
sample_timed() {
    local name=$1 pid=$2 before after
    shift 2
    before=$([ "$pid" = postgres ] && postgres_cpu_ms || cpu_ms "$pid")
    timed "$@"
    after=$([ "$pid" = postgres ] && postgres_cpu_ms || cpu_ms "$pid")
    awk -v count="$many" -v ms="$elapsed_ms" -v client="$client_ms" -v server="$(awk "BEGIN { print $after - $before }")" 'BEGIN {
        printf "{\"items_per_s\":%.0f,\"seconds\":%.2f,\"client_us_per_item\":%.2f,\"server_us_per_item\":%.2f}\n",
            count * 1000 / ms, ms / 1000, client * 1000 / count, server * 1000 / count
    }' >>"$temp/rounds/$name.jsonl"
}

measure_orrery() {
    local port to
    port=$(free_port)
    rm -rf "$temp/orrery"
    start_server "$temp/orrery" "$port" --no-rate-limit
    to=(--endpoint "http://127.0.0.1:$port" --database b --container c --quiet)
    create "http://127.0.0.1:$port/dbs" '{"id":"b"}'
    create "http://127.0.0.1:$port/dbs/b/colls" '{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}'
    sample_timed orrery_import "$server_pid" "$orrery" import "${to[@]}" "$temp/items.jsonl"
    sample_timed orrery_export "$server_pid" "$orrery" export "${to[@]}" --output "$temp/exported.jsonl"
    [ "$(wc -l <"$temp/exported.jsonl")" = "$many" ] || {
        echo "bench: $(wc -l <"$temp/exported.jsonl") of $many items were exported" >&2
        exit 1
    }
    stop "$server_pid"
}

measure_postgres() {
    pg -c 'DROP TABLE IF EXISTS items' -c 'CREATE TABLE items (pk text, id text, doc jsonb, PRIMARY KEY (pk, id))' \
        -c 'CREATE INDEX items_gin ON items USING gin (doc jsonb_path_ops)' 2>"$temp/created"
    sample_timed postgres_import postgres pg -c "\\copy items FROM '$temp/items.copy'"
    sample_timed postgres_export postgres pg -c "\\copy (SELECT doc FROM items) TO '$temp/exported.copy'"
    [ "$(pg -At -c 'SELECT count(*) FROM items')" = "$many" ]
}

print_import() {
    local name
    echo
    printf '%-28s %12s %18s %18s\n' "$many items of 1 KB" 'items/s' 'client CPU us/item' 'server CPU us/item'
    for name in orrery_import postgres_import orrery_export postgres_export; do
        printf '%-28s %12.0f %18.2f %18.2f\n' "${name/_/ }" "$(of "$name" items_per_s)" \
            "$(of "$name" client_us_per_item)" "$(of "$name" server_us_per_item)"
    done
    echo
    for name in import export; do
        printf '%-60s %8s\n' "$name: items/s, Orrery / PostgreSQL's COPY" \
            "$(by_rounds "orrery_$name" "postgres_$name" items_per_s)"
        note "ratio_$name" "$(by_rounds "orrery_$name" "postgres_$name" items_per_s)"
    done
}

need_room
make_files
echo "== Starting PostgreSQL"
start_postgres_server "$(free_port)" 1GB
for round in $(seq "$rounds"); do
    echo "== Round $round: Orrery"
    measure_orrery
    echo "== Round $round: PostgreSQL"
    measure_postgres
done
stop "$postgres_pid" INT
print_import
