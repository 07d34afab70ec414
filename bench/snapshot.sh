# snapshot.sh - how long a database takes to go back to a snapshot; run.sh reads it.
#
# A database with many items is saved. Then some of them are changed, and it is restored, over and over:
# the time should follow what was changed, not what is there, and the folder should not grow. The client
# is the official SDK; the table has what the server measured, what the client waited, and the server's
# CPU, which other work of the machine does not change.
#
#   BENCH_ORDERS=100000    items of the database
#   BENCH_RESTORES=1000    of the last row

orders=${BENCH_ORDERS:-100000}
restores=${BENCH_RESTORES:-1000}

echo "== Starting a server with $orders orders"
port=$(free_port)
start_server "$temp/snapshot" "$port" --no-rate-limit
url=http://127.0.0.1:$port
create "$url/dbs" '{"id":"b"}'
create "$url/dbs/b/colls" '{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}'
"$load" --items batch --orders --items-first 0 --requests $((orders / 100)) --seconds 600 --connections 8 \
    --url "$url/dbs/b/colls/c/docs" >"$temp/fill"
settle "$server_pid"
echo "== Measuring restores"
node bench/snapshot.mjs --endpoint "$url" --pid "$server_pid" --data "$temp/snapshot" --items "$orders" --rounds $((rounds * 5)) --restores "$restores" --out "$temp/rounds/snapshot.jsonl"
settle "$server_pid"
echo "$(du -sm --apparent-size "$temp/snapshot" | cut -f1) MB on disk a minute later"
stop "$server_pid"
"$orrery" check --data "$temp/snapshot" | tail -n 1
