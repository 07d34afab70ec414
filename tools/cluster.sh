#!/bin/bash
# cluster.sh SERVER FOLDER [NODES] - a cluster of several nodes and its engine on this machine, to look at: PostgreSQL with
# a synchronous standby, and nodes a, b, c... on ports 8081 and up. Ctrl-C ends all of it; FOLDER stays, and is used
# again next time. See docs/cluster.md for clusters that are to be kept.
set -euo pipefail
[ $# -ge 2 ] || {
    echo "usage: cluster.sh SERVER FOLDER [NODES]" >&2
    exit 2
}
server=$(realpath "$1")
mkdir -p "$2"
folder=$(realpath "$2")
nodes=${3:-3}
pair=$(dirname "$(realpath "$0")")/../test/postgres-pair.sh
first=${PORT:-8081}

chmod 711 "$folder" # the engine runs as another user if this one is root
if [ -e "$folder/engine/b.port" ]; then
    "$pair" run "$folder/engine" a
    "$pair" run "$folder/engine" b
else
    "$pair" start "$folder/engine"
fi
[ -s "$folder/secret" ] || (umask 077 && "$server" cluster secret >"$folder/secret" 2>/dev/null)
url=$("$pair" url "$folder/engine")

pids=
end() {
    trap - EXIT INT TERM
    [ -z "$pids" ] || kill $pids 2>/dev/null || true
    wait || true
    "$pair" stop "$folder/engine" a
    "$pair" stop "$folder/engine" b
}
trap end EXIT
trap 'exit 0' INT TERM

for ((i = 0; i < nodes; i++)); do
    name=$(printf "\\x$(printf %x $((97 + i)))")
    port=$((first + i))
    "$server" serve --data "$folder/$name" --port "$port" --cluster "$url" --cluster-secret "$folder/secret" \
        --node "$name" --advertise "http://127.0.0.1:$port" >"$folder/$name.out" 2>"$folder/$name.log" &
    pids="$pids $!"
done
for ((i = 0; i < nodes; i++)); do
    until "$server" health --quiet --endpoint "http://127.0.0.1:$((first + i))" 2>/dev/null; do
        kill -0 $pids 2>/dev/null || {
            cat "$folder"/*.log >&2
            exit 1
        }
        sleep 0.2
    done
done
echo
"$server" cluster status --endpoint "http://127.0.0.1:$first"
cat <<END

Logs and data are in $folder. Each node answers everything, with the development key:
  http://127.0.0.1:$first/ to http://127.0.0.1:$((first + nodes - 1))/   explorer: http://127.0.0.1:$first/_explorer/
Look again: $server cluster status --endpoint http://127.0.0.1:$first
Kill a node, and see who takes over: kill -9 ${pids##* }
Press Ctrl-C to end all of them.
END
wait
