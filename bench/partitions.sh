# partitions.sh - the same queries over 1, 5 and 10 physical partitions, merged by the server and by the
# official SDK; run.sh reads it.
#
# The same orders (src/load/order_text.h) are in a container of each size, all in one server and in memory. Every
# query is asked in three ways: over plain HTTP (orrery bench), through the SDK as it is, which takes what
# the server has merged, and through the SDK with a plan, from which it asks each partition and merges
# by itself. In a round, the containers are measured one right after the other. What one partition more
# costs that has nothing of what is asked for is told by a look-up over up to 25 of them.

. bench/orders.sh
sizes="1 5 10"
visits="1 5 10 25"
answers=10    # turns that are compared
printed=20000 # queries that the SDK is given; more than it asks within a round
need_disk 16
[ -e test/node_modules/@azure/cosmos/package.json ] || {
    echo "bench: the SDK is not there; 'make bench ARGS=--partitions' installs it, or 'npm ci' in test/" >&2
    exit 1
}
# Room for all the orders as in large.sh, and half as much again for the index.
cache_mb=$((many * 4 * 26 / 10 / 1000 + 256))
memory_mb=$(awk '/^MemTotal/ { print int($2 / 1024 * 0.6) }' /proc/meminfo)
[ "$cache_mb" -le "$memory_mb" ] || cache_mb=$memory_mb
note cache_mb "$cache_mb"

# Rows of the table: the query of orrery bench, results a page, and what it is.
rows="unique range pages sum group"
query_of() {
    case $1 in
    pages) echo range ;;
    *) echo "$1" ;;
    esac
}
page_of() {
    case $1 in
    pages) echo 10 ;;
    *) echo 100 ;;
    esac
}
about() {
    case $1 in
    unique) echo 'equality that one order meets' ;;
    range) echo 'TOP 100 of 1%, sorted, in one page' ;;
    pages) echo 'the same in ten pages' ;;
    sum) echo 'SUM of a product over 1%' ;;
    group) echo 'GROUP BY, ten groups' ;;
    esac
}

# ways of asking
ways="http sdk merge"
way_name() {
    case $1 in
    http) echo HTTP ;;
    sdk) echo SDK ;;
    merge) echo 'SDK, own merge' ;;
    esac
}

load_containers() {
    local size port
    port=$(free_port)
    start_server "$temp/partitions" "$port" --no-rate-limit --cache "${cache_mb}M"
    endpoint=http://127.0.0.1:$port
    url=$endpoint/dbs/b/colls
    create "$endpoint/dbs" '{"id":"b"}'
    for size in $visits; do
        echo "== $many orders over $size partitions"
        orders "$many" "$url/c$size" "$(policy "c$size" '')" --header "x-ms-offer-throughput: $((size * 6000))"
        "${load[@]}" --once --url "$url/c$size/pkranges" | grep -q "\"_count\":$size}" || {
            echo "bench: expected a container of $size partitions" >&2
            exit 1
        }
    done
    settle "$server_pid" 300
}

# The options by which orrery bench asks for a row: options_of ROW SEED
options_of() {
    echo "query --query $(query_of "$1") --items $many --seed $2 --page-size $(page_of "$1")"
}

# write_turns SEED COUNT: what the SDK asks in a round.
write_turns() {
    local row
    for row in $rows; do
        "${load[@]}" --print-queries $(options_of "$row" "$1") --count "$2" >"$temp/$row.turns"
    done
}

# sdk WAY ROW SIZE [OPTION...]
sdk() {
    local way=$1 row=$2 size=$3
    shift 3
    node bench/partitions.mjs --endpoint "$endpoint" --container "c$size" --page-size "$(page_of "$row")" \
        --merge "$([ "$way" = merge ] && echo client || echo server)" "$@" <"$temp/$row.turns"
}

# answers_of WAY ROW SIZE: a line for each of the first turns, with how many results there were and what
# their numbers add up to.
answers_of() {
    local turn
    [ "$1" = http ] || {
        sdk "$@" --answers
        return
    }
    for turn in $(seq 0 $((answers - 1))); do
        "${load[@]}" --once $(options_of "$2" 0) --turn "$turn" --url "$url/c$3/docs" >"$temp/answer"
        { grep -oE '"(_count|n|total)":[0-9.]+|"Documents":\[[0-9.]+' "$temp/answer" || true; } | tr '[' : |
            awk -F: -v turn="$turn" '$1 ~ /_count/ { count += $NF; next } { sum += $NF }
                END { printf "%d %d %.2f\n", turn, count, sum }'
    done
}

# expect_same WAY ROW SIZE: as over plain HTTP and one partition.
expect_same() {
    answers_of "$@" >"$temp/answers"
    diff "$temp/$2.answers" "$temp/answers" >&2 || {
        echo "bench: $2 over $3 partitions ($(way_name "$1")) has other answers than over one" >&2
        exit 1
    }
}

# In all ways and sizes the answers are the same, except for the order of orders with the same total.
compare_answers() {
    local row size way
    echo "== Comparing the answers to $answers turns of each query"
    write_turns 0 "$answers"
    for row in $rows; do
        answers_of http "$row" 1 >"$temp/$row.answers"
        awk '{ sum += $2 } END { exit sum == 0 }' "$temp/$row.answers" || {
            echo "bench: $row finds nothing" >&2
            exit 1
        }
        note "${row}_results" "$(awk '{ sum += $2 } END { print sum / NR }' "$temp/$row.answers")"
        for size in $sizes; do
            for way in $ways; do
                expect_same "$way" "$row" "$size"
            done
        done
    done
    for size in $visits; do
        expect_same http unique "$size"
    done
}

warm() {
    local size row
    echo "== Asking everything beforehand"
    for size in $visits; do
        read_all "$url/c$size/docs" "$many"
        for row in $rows; do
            "${load[@]}" --json $(options_of "$row" 99) --url "$url/c$size/docs" --connections 8 --seconds "$round_seconds" \
                --drain >"$temp/warmed"
        done
    done
}

# ask NAME ROW SIZE SEED CONNECTIONS: a round over plain HTTP.
ask() {
    sample "$1" "$server_pid" $(options_of "$2" "$4") --url "$url/c$3/docs" --connections "$5" --warmup-ms 0 --drain
}

measure() {
    local round count row way size
    echo "== Queries over 1 and 8 connections: $rounds rounds of $round_seconds s each"
    for round in $(seq "$rounds"); do
        write_turns "$round" "$printed"
        for count in 1 8; do
            for row in $rows; do
                for way in $ways; do
                    for size in $sizes; do
                        if [ "$way" = http ]; then
                            ask "http_${row}_${size}_$count" "$row" "$size" "$round" "$count"
                        else
                            sdk "$way" "$row" "$size" --connections "$count" --seconds "$round_seconds" \
                                --pid "$server_pid" >>"$temp/rounds/${way}_${row}_${size}_$count.jsonl"
                        fi
                    done
                done
            done
        done
        for size in $visits; do
            ask "visit_$size" unique "$size" "$round" 8
        done
    done
}

# print_sizes TEXT NAME FIELD CONNECTIONS: the medians for each size, and their ratio to the first.
print_sizes() {
    local size value one=
    printf '%-48s' "$1"
    for size in $sizes; do
        value=$(of "$2_${size}_$4" "$3")
        one=${one:-$value}
        printf ' %11.1f' "$value"
    done
    for size in ${sizes#* }; do
        value=$(ratio "$(of "$2_${size}_$4" "$3")" "$one")
        printf ' %8s' "$value"
        note "ratio_$2_$3_$size" "$value"
    done
    echo
}

# print_ways TEXT ROW FIELD CONNECTIONS
print_ways() {
    local way
    for way in $ways; do
        print_sizes "  $1: $(way_name "$way")" "${way}_$2" "$3" "$4"
    done
}

# What a query costs more with more partitions, none of which has anything more of it.
print_visits() {
    local size all one= more
    echo 'unique: CPU us, 8 at a time: HTTP'
    printf '  %-20s %12s %30s\n' partitions 'a query' 'each partition but the first'
    for size in $visits; do
        all=$(of "visit_$size" server_cpu_us_per_request)
        one=${one:-$all}
        more=-
        [ "$size" = 1 ] || {
            more=$(awk -v all="$all" -v one="$one" -v size="$size" 'BEGIN { printf "%.2f", (all - one) / (size - 1) }')
            note "visit_cpu_us_$size" "$more"
        }
        printf '  %-20s %12.1f %30s\n' "$size" "$all" "$more"
    done
}

print_partitions() {
    local row
    echo
    printf '%-48s %11s %11s %11s %8s %8s\n' "median of the rounds, $many orders, partitions:" 1 5 10 5/1 10/1
    for row in $rows; do
        echo "$row: $(about "$row") ($(noted "${row}_results") rows)"
        print_ways 'first page, P50 us' "$row" first_page_p50_us 1
        print_ways 'last page, P50 us' "$row" p50 1
        print_ways 'CPU us a query, 8 at a time' "$row" server_cpu_us_per_request 8
        print_ways 'queries/s, 8 at a time' "$row" requests_per_s 8
    done
    print_visits
}

load_containers
compare_answers
warm
measure
stop "$server_pid"
print_partitions
