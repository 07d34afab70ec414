# cluster.sh - what a cluster costs; run.sh reads it.
#
#   ITEMS=10000             items of 1 KB, and orders, that exist beforehand
#   BENCH_ITEMS=1000000     items of 1 KB that a new node is seeded with
#   ROUNDS=3                how often each is measured, in turn
#
# A server alone stands beside clusters of one, two and three nodes over one pair of PostgreSQL servers, a
# primary and its synchronous standby, all on this machine: so it is CPU per request that counts, that of
# all nodes together, and that of the engine beside it. Everything is indexed. The same items are also
# written straight into a table of that pair, a column of JSONB with a GIN index. Then owners are killed,
# and a node begins with an empty folder.

. bench/orders.sh
note existing_items "$items"
clusters="one two three"

# Of each arrangement by its name: the ports and the processes of its nodes.
declare -A ports processes

# node ARRANGEMENT NAME PORT: starts it, as the next node of its cluster.
node() {
    local arrangement=$1 name=$2 port=$3
    server_log=$temp/$arrangement-$name.log
    start_server "$temp/$arrangement-$name" "$port" --no-rate-limit --node "$name" --advertise "http://127.0.0.1:$port" \
        --cluster "postgresql://bench@127.0.0.1:$postgres_port/$arrangement?sslmode=disable" \
        --cluster-secret "$temp/secret" --allow-weak-engine --replicas 3
    ports[$arrangement]+=" $port"
    processes[$arrangement]+=" $server_pid"
}

# status ARRANGEMENT: what its first node that answers knows of it, on one line.
status() {
    local port
    for port in ${ports[$1]}; do
        "${load[@]}" --once --url "http://127.0.0.1:$port/_orrery/cluster" 2>"$temp/refused" | tr -d '\n' && return
    done
}

# owner_of ARRANGEMENT SPACE: the name of the node.
owner_of() {
    status "$1" | grep -o "\"id\":$2,\"owner\":\"[a-z]*\"" | cut -d '"' -f 6
}

# port_of ARRANGEMENT NAME, process_of ARRANGEMENT NAME: nodes are named a, b, c in their order.
port_of() {
    echo "${ports[$1]}" | awk -v at=$(($(printf %d "'$2") - 96)) '{ print $at }'
}
process_of() {
    echo "${processes[$1]}" | awk -v at=$(($(printf %d "'$2") - 96)) '{ print $at }'
}

# copies ARRANGEMENT SPACE: how many follow it, the owner included.
copies() {
    status "$1" | grep -o "\"id\":$2,.*" | sed 's/\]}.*//' | grep -o '"state":"following"' | wc -l
}

# await SECONDS WHAT COMMAND...
await() {
    local end=$((SECONDS + $1)) what=$2
    shift 2
    until "$@"; do
        [ "$SECONDS" -lt "$end" ] || {
            echo "bench: $what took too long: $(tail -3 "$temp"/*-*.log)" >&2
            exit 1
        }
        sleep 0.2
    done
}
has_copies() {
    [ "$(copies "$1" "$2")" = "$3" ]
}

containers() {
    create "http://127.0.0.1:$1/dbs" '{"id":"b"}'
    create "http://127.0.0.1:$1/dbs/b/colls" "$(policy c '')"
    create "http://127.0.0.1:$1/dbs/b/colls" "$(policy o '')"
    fill "http://127.0.0.1:$1/dbs/b/colls/c/docs" "$items"
    fill "http://127.0.0.1:$1/dbs/b/colls/o/docs" "$items" --orders
}
ITEMS_SPACE=65536 # of the first container, and so on
ORDERS_SPACE=65537
SEEDED_SPACE=65538

start_all() {
    local arrangement name count=0
    start_postgres_server "$(free_port)" 256MB
    start_standby "$(free_port)"
    (umask 077 && "$orrery" cluster secret >"$temp/secret" 2>"$temp/created")
    ports[alone]=" $(free_port)"
    start_server "$temp/alone" ${ports[alone]} --no-rate-limit
    processes[alone]=" $server_pid"
    containers ${ports[alone]}
    for arrangement in $clusters; do
        count=$((count + 1))
        pg -c "CREATE DATABASE $arrangement"
        node "$arrangement" a "$(free_port)"
        containers ${ports[$arrangement]}
        for name in $(echo b c | cut -d ' ' -f "1-$count" | head -c $((2 * count - 2))); do
            node "$arrangement" "$name" "$(free_port)"
        done
        await 120 "making copies" has_copies "$arrangement" $ITEMS_SPACE "$count"
        await 120 "making copies" has_copies "$arrangement" $ORDERS_SPACE "$count"
    done
    pg <<SQL
CREATE TABLE items (pk text, id text, doc jsonb, PRIMARY KEY (pk, id));
CREATE INDEX ON items USING gin (doc jsonb_path_ops);
SQL
    pgbench_variables=(-D "doc=$("${load[@]}" --print-item --seed 0 --first 0)")
    write_scripts
    measure_connect create.sql
    sleep 15 # until owners are spread
}

# cpu_of ARRANGEMENT: of all its nodes, in ms.
cpu_of() {
    local process sum=0
    for process in ${processes[$1]}; do
        sum=$(awk "BEGIN { print $sum + $(cpu_ms "$process") }")
    done
    echo "$sum"
}

# sample_arrangement NAME ARRANGEMENT NODE OPTION...: sends requests to a node; the CPU is that of all nodes,
# and engine_cpu_us_per_request that of the engine and its standby.
sample_arrangement() {
    local name=$1 arrangement=$2 at=$3 before engine line
    shift 3
    engine=$(postgres_cpu_ms)
    before=$(cpu_of "$arrangement")
    sample "$name" "$(process_of "$arrangement" "$at")" "$@" --connections "$connections" --warmup-ms 0
    line=$(tail -1 "$temp/rounds/$name.jsonl")
    sed -i '$d' "$temp/rounds/$name.jsonl"
    echo "$line" | awk -v ms="$(awk "BEGIN { print $(cpu_of "$arrangement") - $before }")" \
        -v engine="$(awk "BEGIN { print $(postgres_cpu_ms) - $engine }")" -v requests="$(number requests <<<"$line")" '{
        sub(/}$/, "")
        printf "%s,\"all_cpu_us_per_request\":%.3f,\"engine_cpu_us_per_request\":%.3f}\n", $0,
            ms * 1000 / requests, engine * 1000 / requests
    }' >>"$temp/rounds/$name.jsonl"
}

# sample_reads PREFIX ARRANGEMENT CONTAINER-NODE ORDERS-NODE
sample_reads() {
    local at=http://127.0.0.1:
    sample_arrangement "$1_read" "$2" "$3" read --items "$items" --url "$at$(port_of "$2" "$3")/dbs/b/colls/c/docs"
    sample_arrangement "$1_query" "$2" "$4" query --query key --items "$items" \
        --url "$at$(port_of "$2" "$4")/dbs/b/colls/o/docs"
}

# other_than NAME: another node of a cluster of two or more.
other_than() {
    [ "$1" = a ] && echo b || echo a
}

measure_round() {
    local arrangement owner orders
    sample_reads alone alone a a
    sample_arrangement alone_create alone a create --url "http://127.0.0.1:$(port_of alone a)/dbs/b/colls/c/docs"
    for arrangement in $clusters; do
        owner=$(owner_of "$arrangement" $ITEMS_SPACE)
        orders=$(owner_of "$arrangement" $ORDERS_SPACE)
        sample_reads "$arrangement" "$arrangement" "$owner" "$orders"
        sample_arrangement "${arrangement}_create" "$arrangement" "$owner" create \
            --url "http://127.0.0.1:$(port_of "$arrangement" "$owner")/dbs/b/colls/c/docs"
        [ "$arrangement" = one ] ||
            sample_reads "${arrangement}_forwarded" "$arrangement" "$(other_than "$owner")" "$(other_than "$orders")"
    done
    sample_postgres postgres_create create.sql
}

# take_over: kills the owner of the items of three nodes, and creates one through another node until that works.
take_over() {
    local owner other begun line
    owner=$(owner_of three $ITEMS_SPACE)
    other=$(other_than "$owner")
    stop "$(process_of three "$owner")" KILL
    begun=$(now_us)
    until line=$("${load[@]}" --json create --count 1 --connections 1 --seconds 60 --timeout-ms 30000 \
        --url "http://127.0.0.1:$(port_of three "$other")/dbs/b/colls/c/docs" 2>"$temp/refused") &&
        grep -q '"statuses":{"201":1}' <<<"$line"; do
        [ $(($(now_us) - begun)) -lt 60000000 ] || {
            echo "bench: nobody has taken over: $line" >&2
            exit 1
        }
        sleep 0.05
    done
    printf '{"seconds":%.2f}\n' "$(awk "BEGIN { print ($(now_us) - $begun) / 1e6 }")" >>"$temp/rounds/take_over.jsonl"
    again three "$owner"
    await 120 "making copies" has_copies three $ITEMS_SPACE 3
}

# again ARRANGEMENT NAME: starts a node that was killed, in its place.
again() {
    local port old
    port=$(port_of "$1" "$2")
    old=$(process_of "$1" "$2")
    local kept_ports=${ports[$1]} kept_processes=${processes[$1]}
    node "$1" "$2" "$port"
    ports[$1]=$kept_ports
    processes[$1]=${kept_processes/ $old/ $server_pid}
}

# A node with an empty folder beside one with many items: how long until it has all of them.
seed() {
    local begun bytes
    echo "== Seeding a node with $many items of 1 KB"
    server_pid=$(process_of one a)
    create "http://127.0.0.1:$(port_of one a)/dbs/b/colls" "$(policy s '')"
    fill "http://127.0.0.1:$(port_of one a)/dbs/b/colls/s/docs" "$many"
    settle "$server_pid"
    bytes=$(du -sb "$temp/one-a" | cut -f 1)
    begun=$(now_us)
    node one b "$(free_port)"
    await 900 "seeding" has_copies one $SEEDED_SPACE 2
    awk -v us=$(($(now_us) - begun)) -v bytes="$bytes" 'BEGIN {
        printf "{\"seconds\":%.2f,\"bytes\":%.0f,\"seconds_per_gb\":%.2f}\n", us / 1e6, bytes, us / 1e6 / (bytes / 1e9)
    }' >>"$temp/rounds/seed.jsonl"
}

print_line() {
    printf '%-26s %12.0f %10.0f %10.0f %12.1f %12.1f\n' "$2" "$(of "$1" requests_per_s)" "$(of "$1" p50)" "$(of "$1" p99)" \
        "$(of "$1" all_cpu_us_per_request)" "$(of "$1" engine_cpu_us_per_request)"
}

# print_round_ratio TEXT NAME NAME FIELD
print_round_ratio() {
    local value
    value=$(by_rounds "$2" "$3" "$4")
    printf '%-52s %8s\n' "$1" "$value"
    note "ratio_${2}_${3}_$4" "$value"
}

print_cluster() {
    local operation arrangement
    echo
    printf '%-26s %12s %10s %10s %12s %12s\n' median 'requests/s' 'P50 us' 'P99 us' 'CPU us' 'engine us'
    for operation in read query create; do
        for arrangement in alone $clusters two_forwarded three_forwarded; do
            [ -e "$temp/rounds/${arrangement}_$operation.jsonl" ] || continue
            print_line "${arrangement}_$operation" "$operation, ${arrangement/_/, }"
        done
    done
    printf '%-26s %12.0f %10.0f %10.0f %12s %12.1f\n' 'create, PostgreSQL' "$(of postgres_create requests_per_s)" \
        "$(of postgres_create p50)" "$(of postgres_create p99)" '' "$(of postgres_create server_cpu_us_per_request)"
    echo
    for operation in read query; do
        for arrangement in $clusters two_forwarded three_forwarded; do
            [ "$arrangement" = one_forwarded ] || print_round_ratio "$operation: CPU a request, ${arrangement/_/ } / alone" \
                "${arrangement}_$operation" "alone_$operation" all_cpu_us_per_request
        done
    done
    print_round_ratio 'create: requests/s, two nodes / PostgreSQL' two_create postgres_create requests_per_s
    echo
    printf 'An owner that died was replaced after %s s (median). ' "$(of take_over seconds)"
    printf 'A node was seeded with %s bytes in %s s: %s s for 1 GB.\n' "$(of seed bytes)" "$(of seed seconds)" "$(of seed seconds_per_gb)"
}

echo "== Starting PostgreSQL with a standby, a server alone, and clusters of one, two and three nodes"
start_all
echo "== $rounds rounds of $round_seconds s each, over $connections connections"
for i in $(seq "$rounds"); do
    measure_round
done
for i in $(seq "$rounds"); do
    take_over
done
seed
print_cluster
