# orders.sh - containers of orders (src/load/order_text.h), of which everything is indexed; queries.sh and
# partitions.sh read it.

. bench/items.sh
many=${BENCH_ITEMS:-1000000}
note items "$many"

# need_disk KB: what an order takes, all its copies together.
need_disk() {
    local free_kb
    free_kb=$(df -Pk "$temp" | awk 'NR == 2 { print $4 }')
    [ "$many" -ge 10000 ] && [ "$many" -le 100000000 ] && [ "$free_kb" -gt $((many * $1)) ] || {
        echo "bench: expected BENCH_ITEMS from 10000, and $1 KB of disk for each; found $many, and $free_kb KB in $temp" >&2
        exit 1
    }
}

# policy NAME MORE: the definition of a container.
policy() {
    printf '{"id":"%s","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}%s}' "$1" "$2"
}

# orders COUNT URL BODY [OPTION...]: makes a container of ours with COUNT orders; options are those of its
# creation.
orders() {
    local count=$1 url=$2 body=$3
    shift 3
    create "${url%/*}" "$body" "$@"
    fill "$url/docs" "$count" --orders
}

# read_all URL COUNT: brings all the orders of a container into memory, by one query with a thousand of
# them a page.
read_all() {
    "${load[@]}" --json query --query all --page-size 1000 --url "$1" --items "$2" --count 1 --seconds 3600 \
        --connections 1 >"$temp/read"
    awk -v pages="$(number pages_per_request <"$temp/read")" -v count="$2" 'BEGIN { exit !(pages * 1000 >= count) }' &&
        grep -q '"statuses":{"200":[0-9]*}' "$temp/read" || {
        echo "bench: not all of $2 orders were read: $(cat "$temp/read")" >&2
        exit 1
    }
}

# noted NAME: a number that was given to note before.
noted() {
    number "$1" <"$temp/notes"
}
