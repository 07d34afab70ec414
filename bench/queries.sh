# queries.sh - SQL over items of which everything is indexed, beside JSONB of PostgreSQL; run.sh reads it.
#
# Both servers hold the same orders (src/load/order_text.h), ours in one physical partition, and are asked the same
# (src/load/query_maker.h): in turn t of a round, the draws below give the parameters that orrery bench takes. Before
# anything is timed, the first turns are compared answer by answer. Both have everything in memory:
# ours gets --cache 6G and is asked for every order and then all queries beforehand; PostgreSQL gets
# shared_buffers of 1 GB and, as it counts on it, the page cache of the system for the rest, and is
# prewarmed. PostgreSQL is at its best: B-trees for what is sorted or counted, statistics for what is
# grouped, and plans that are made once (planning @> again looks at a hundred documents and took six times
# as long as running it). Rows with _btree say what an index for that one query brings it.
#
#   BENCH_ROWS="unique key"   only these queries, and neither growth nor creation

. bench/orders.sh
answers=10 # turns that are compared
need_disk 12

# Rows of the table, and the query of orrery bench for each.
rows=${BENCH_ROWS:-unique unique_btree key range count count_btree group tag scan}
is_whole=${BENCH_ROWS:+no}
is_whole=${is_whole:-yes}
query_of() {
    echo "${1%_btree}"
}

# draw WHICH BELOW: query_maker_draw() of src/load/query_maker.h.
draw() {
    echo "((hash_fnv1a(:t * 16 + $1, :seed) >> 16) & 1073741823) * $2 / 1073741824"
}

# script NAME SQL: reads the lines that set its variables. NAME.sql is what is measured, and
# NAME.check.sql keeps how many rows there were, and the sum of their column n if they have one.
script() {
    {
        printf '%s\n' '\set turn :turn + 1' '\set t :turn * :clients + :client_id'
        cat
    } >"$temp/$1.sql"
    {
        cat "$temp/$1.sql"
        printf "INSERT INTO answers SELECT '%s', :t, count(*), coalesce(sum((to_jsonb(q)->>'n')::bigint), 0)
    FROM (%s) AS q;\n" "$1" "$2"
    } >"$temp/$1.check.sql"
    printf '%s;\n' "$2" >>"$temp/$1.sql"
}

write_queries() {
    script unique "SELECT doc FROM items WHERE doc @> jsonb_build_object('orderNumber', 'ORD-' || :name::text)" <<SET
\set n $(draw 0 "$many")
\set name $(name_of :n)
SET
    script unique_btree "SELECT doc FROM items WHERE doc->>'orderNumber' = 'ORD-' || :name::text" <<SET
\set n $(draw 0 "$many")
\set name $(name_of :n)
SET
    script key "SELECT doc FROM items WHERE pk = 'c' || :name::text AND doc->>'status' = 'status-' || :status::text" <<SET
\set n $(draw 0 "$many")
\set name $(name_of '(:n / 100)')
\set status $(draw 1 10)
SET
    script range "SELECT doc FROM items WHERE (doc->>'total')::float8 >= :low::float8
    AND (doc->>'total')::float8 < :high::float8 ORDER BY (doc->>'total')::float8 LIMIT 100" <<SET
\set low $(draw 0 99000)
\set high :low + 1000
SET
    script count "SELECT count(*) AS n FROM items
    WHERE doc @> jsonb_build_object('category', 'category-' || :category::text)" <<SET
\set category $(draw 0 100)
SET
    script count_btree "SELECT count(*) AS n FROM items WHERE doc->>'category' = 'category-' || :category::text" <<SET
\set category $(draw 0 100)
SET
    script group "SELECT doc->>'status' AS status, count(*) AS n FROM items GROUP BY doc->>'status'" </dev/null
    script tag "SELECT doc FROM items
    WHERE doc @> jsonb_build_object('tags', jsonb_build_array('tag-' || :tag::text)) LIMIT 100" <<SET
\set tag 100 + $(draw 0 900)
SET
    script scan "SELECT doc FROM items WHERE (doc->>'quantity')::float8 * (doc->>'price')::float8 > :product::float8
    AND length(doc->>'note') > 719" <<SET
\set product 97000 + $(draw 0 1300)
SET
    echo 'SELECT 1;' >"$temp/connect.sql"
    echo 'INSERT INTO items SELECT id, pk, doc::jsonb FROM fresh WHERE n = (SELECT nextval('"'fresh_n'"'));' \
        >"$temp/insert.sql"
}

# with_connections COUNT SEED: what the next calls of pgbench use.
with_connections() {
    connections=$1
    pgbench_variables=(-D turn=-1 -D "seed=$2" -D "clients=$1")
}

none=',"indexingPolicy":{"indexingMode":"none","automatic":false}'

# start_orrery FOLDER
start_orrery() {
    port=$(free_port)
    start_server "$temp/$1" "$port" --no-rate-limit --cache 6G
    url=http://127.0.0.1:$port/dbs/b
}

# disk_of FOLDER: after a start, which leaves no more log than it has to, and at rest.
disk_of() {
    stop "$server_pid"
    start_orrery "$1"
    settle "$server_pid" 300
    note "orrery_$1_disk_bytes" "$(du -s --block-size=1 "$temp/$1" | cut -f1)"
}

load_orrery() {
    local begin
    [ "$is_whole" = no ] || {
        echo "== Orrery: $many orders without an index"
        start_orrery bare
        create "${url%/*}" '{"id":"b"}'
        orders "$many" "$url/colls/c" "$(policy c "$none")"
        disk_of bare
        stop "$server_pid"
        rm -rf "$temp/bare"
    }

    echo "== Orrery: $many orders, everything indexed"
    start_orrery full
    create "${url%/*}" '{"id":"b"}'
    begin=$(now_us)
    orders "$many" "$url/colls/c" "$(policy c '')"
    note orrery_load_us $(($(now_us) - begin))
    disk_of full
    orders $((many / 100)) "$url/colls/c1" "$(policy c1 '')"
    orders $((many / 10)) "$url/colls/c10" "$(policy c10 '')"
    "${load[@]}" --once --url "$url/colls/c/pkranges" | grep -q '"_count":1}'
}

# table NAME COUNT
table() {
    pg -c "CREATE TABLE $1 (id text, pk text, doc jsonb, PRIMARY KEY (pk, id))"
    "${load[@]}" --orders --print-copy --first 0 --items "$2" | pg -c "COPY $1 FROM STDIN"
    pg -c "SET maintenance_work_mem = '512MB'" -c "CREATE INDEX ${1}_gin ON $1 USING gin (doc jsonb_path_ops)" \
        -c "CREATE INDEX ${1}_order_number ON $1 ((doc->>'orderNumber'))"
}

load_postgres() {
    local begin size
    echo "== PostgreSQL: $many orders"
    start_postgres_server "$(free_port)" 1GB -c plan_cache_mode=force_generic_plan
    begin=$(now_us)
    table items "$many"
    note postgres_load_us $(($(now_us) - begin))
    pg -c "SET maintenance_work_mem = '512MB'" -c "CREATE INDEX items_total ON items (((doc->>'total')::float8))" \
        -c "CREATE INDEX items_category ON items ((doc->>'category'))" \
        -c "CREATE STATISTICS items_status ON (doc->>'status') FROM items"
    table items1 $((many / 100))
    table items10 $((many / 10))
    pg -c 'VACUUM ANALYZE' -c CHECKPOINT -c 'CREATE TABLE answers (name text, turn bigint, rows bigint, n bigint)'
    pg -c 'CREATE EXTENSION pg_prewarm' -c "SELECT pg_prewarm(oid) FROM pg_class
        WHERE relkind IN ('r', 'i') AND relname LIKE 'items%' ORDER BY relkind DESC" >"$temp/created"
    for size in "bare pg_table_size('items') + pg_relation_size('items_pkey')" \
        "full pg_table_size('items') + pg_relation_size('items_pkey') + pg_relation_size('items_gin')" \
        "btree pg_total_relation_size('items')"; do
        note "postgres_${size%% *}_disk_bytes" "$(pg -At -c "SELECT ${size#* }")"
    done
}

# Both sides' answers to the first turns, as lines of row, turn, rows and sum of n.
compare_answers() {
    local row turn
    echo "== Comparing the answers of both to $answers turns of each query"
    with_connections 1 0
    for row in $rows; do
        pgbench_run -t "$answers" -f "$temp/$row.check.sql" >"$temp/created" 2>&1 || {
            cat "$temp/created" >&2
            exit 1
        }
        for turn in $(seq 0 $((answers - 1))); do
            "${load[@]}" --once query --query "$(query_of "$row")" --turn "$turn" --seed 0 --items "$many" \
                --url "$url/colls/c/docs" >"$temp/answer"
            echo "$row $turn $(sum_of _count) $(sum_of n)"
        done
    done >"$temp/answers_orrery"
    pg -At -F ' ' -c 'SELECT name, turn, rows, n FROM answers' | sort >"$temp/answers_postgres"
    sort "$temp/answers_orrery" | diff - "$temp/answers_postgres" >&2 || {
        echo "bench: the two give different answers (Orrery's are marked with <)" >&2
        exit 1
    }
    for row in $rows; do
        note "${row}_results" "$(results_of "$row")"
    done
    # What a query of few results finds among few items may be nothing; the others find something.
    awk '$1 != "scan" { found[$1] += $3 } END { for (row in found) if (found[row] == 0) exit 1 }' "$temp/answers_postgres"
}
sum_of() {
    { grep -o "\"$1\":[0-9]*" "$temp/answer" || true; } | awk -F: '{ sum += $2 } END { print sum + 0 }'
}
results_of() {
    awk -v row="$1" '$1 == row { sum += $3; count++ } END { print sum / count }' "$temp/answers_postgres"
}

# ask NAME QUERY CONTAINER COUNT SEED: a round of ours.
ask() {
    sample "orrery_$1" "$server_pid" query --query "$2" --url "$url/colls/$3/docs" --items "$4" --seed "$5" \
        --connections "$connections" --warmup-ms 0 --drain
}

# What pg_prewarm is to PostgreSQL: every order is read once, by a query, and the index by the others
# again and again.
warm_orrery() {
    local row
    echo "== Asking Orrery everything beforehand"
    read_all "$url/colls/c1/docs" $((many / 100))
    read_all "$url/colls/c10/docs" $((many / 10))
    read_all "$url/colls/c/docs" "$many"
    for row in scan unique key range tag; do
        "${load[@]}" --json query --query "$row" --url "$url/colls/c/docs" --items "$many" --seed 99 --connections 8 \
            --pid "$server_pid" --seconds 6 --drain >"$temp/warmed"
    done
}

measure_queries() {
    local round row count
    pgbench_sampling=1
    echo "== Queries over 1 and 8 connections: $rounds rounds of $round_seconds s each"
    for round in $(seq "$rounds"); do
        for count in 1 8; do
            with_connections "$count" "$round"
            measure_connect connect.sql
            for row in $rows; do
                ask "${row}_$count" "$(query_of "$row")" c "$many" "$round"
                sample_postgres "postgres_${row}_$count" "$row.sql"
            done
        done
    done
}

# The same query over 1%, 10% and all of the orders.
measure_growth() {
    local round part name
    echo "== The same query over $((many / 100)), $((many / 10)) and $many orders"
    for part in 1 10; do
        for name in unique unique_btree; do
            sed "s/items/items$part/; s/\* $many \//* $((many * part / 100)) \//" "$temp/$name.sql" >"$temp/$name$part.sql"
        done
    done
    cp "$temp/unique.sql" "$temp/unique100.sql"
    cp "$temp/unique_btree.sql" "$temp/unique_btree100.sql"
    for round in $(seq "$rounds"); do
        with_connections 1 "$round"
        measure_connect connect.sql
        for part in 1 10 100; do
            ask "growth_$part" unique "c${part/100/}" $((many * part / 100)) "$round"
            sample_postgres "postgres_growth_$part" "unique$part.sql"
            sample_postgres "postgres_growth_btree_$part" "unique_btree$part.sql"
        done
    done
}

# New orders, into what was measured, with the index on everything but without those of PostgreSQL that
# serve one query each. The text of its orders waits in a table: pgbench cannot make them.
measure_creation() {
    local round fresh=$(((round_seconds + 1) * rounds * 20000))
    echo "== Creating orders over 32 connections"
    pg -c 'DROP INDEX items_total, items_category, items_order_number' -c 'CREATE SEQUENCE fresh_n' \
        -c 'CREATE UNLOGGED TABLE fresh (n serial PRIMARY KEY, id text, pk text, doc text)'
    "${load[@]}" --orders --print-copy --first "$many" --items "$fresh" | pg -c 'COPY fresh (id, pk, doc) FROM STDIN'
    pg -c 'VACUUM ANALYZE fresh' -c CHECKPOINT
    with_connections 32 0
    measure_connect connect.sql
    for round in $(seq "$rounds"); do
        sample orrery_create "$server_pid" create --orders --first $((many + round * 50000000)) \
            --url "$url/colls/c/docs" --connections "$connections"
        sample_postgres postgres_create insert.sql
    done
    [ "$(pg -At -c "SELECT last_value <= $fresh FROM fresh_n")" = t ] || {
        echo "bench: PostgreSQL took all $fresh orders that were prepared for it" >&2
        exit 1
    }
}

# print_pair TEXT FIELD OURS THEIRS: the medians of those rounds, and of the rounds' ratios.
print_pair() {
    local ours theirs value
    ours=$(of "orrery_$3" "$2")
    theirs=$(of "postgres_$4" "$2")
    value=$(by_rounds "orrery_$3" "postgres_$4" "$2")
    printf '%-44s %14.1f %14.1f %8s\n' "$1" "$ours" "$theirs" "$value"
    note "ratio_${4}_$2" "$value"
}

# print_disk TEXT OURS THEIRS
print_disk() {
    awk -v text="$1" -v a="$(noted "orrery_$2_disk_bytes")" -v b="$(noted "postgres_$3_disk_bytes")" -v count="$many" \
        'BEGIN { printf "%-44s %14.0f %14.0f %8.2f\n", text, a / count, b / count, a / b }'
}

print_queries() {
    local row part
    echo
    printf '%-44s %14s %14s %8s\n' "median of the rounds, $many orders" Orrery PostgreSQL ratio
    for row in $rows; do
        echo "$row ($(results_of "$row") rows)"
        print_pair '  P50 us, 1 connection' p50 "${row}_1" "${row}_1"
        print_pair '  P99 us, 1 connection' p99 "${row}_1" "${row}_1"
        print_pair '  CPU us a query, 8 connections' server_cpu_us_per_request "${row}_8" "${row}_8"
        print_pair '  queries/s, 8 connections' requests_per_s "${row}_8" "${row}_8"
    done
    [ "$is_whole" = yes ] || return 0
    echo 'create, 32 connections'
    print_pair '  orders/s' requests_per_s create create
    print_pair '  CPU us an order' server_cpu_us_per_request create create
    print_pair '  P50 us' p50 create create
    print_pair '  P99 us' p99 create create
    echo 'unique: P50 us, 1 connection'
    for part in 1 10 100; do
        print_pair "  $((many * part / 100)) orders" p50 "growth_$part" "growth_$part"
        print_pair "  $((many * part / 100)) orders, B-tree" p50 "growth_$part" "growth_btree_$part"
    done
    echo 'bytes an order on disk'
    print_disk '  with no index but the key' bare bare
    print_disk '  with everything indexed' full full
    print_disk '  and B-trees for the queries in PostgreSQL' full btree
}

load_orrery
load_postgres
write_queries
compare_answers
warm_orrery
measure_queries
[ "$is_whole" = no ] || {
    measure_growth
    measure_creation
}
stop "$server_pid"
stop "$postgres_pid" INT
print_queries
