#!/bin/bash
# postgres-pair.sh - two PostgreSQL servers, "a" and its synchronous standby "b", for tests.
#
#   start FOLDER [PID]       makes FOLDER and both servers in it; both end when process PID has ended
#   url FOLDER               the URL of both, for a client that wants the one that takes writes
#   port FOLDER SERVER       the port of one on 127.0.0.1
#   stop FOLDER SERVER       in order
#   kill FOLDER SERVER       kill -9 of all its processes
#   pause FOLDER SERVER      stops all its processes where they are (SIGSTOP)
#   resume FOLDER SERVER     they go on
#   run FOLDER SERVER        starts a server that was stopped or killed
#   promote FOLDER SERVER    the standby takes writes, on a new timeline, and waits for no standby
#   standby FOLDER SERVER    makes the server anew, as the synchronous standby of the other one
#   save FOLDER SERVER       copies the server's files while it is stopped
#   restore FOLDER SERVER    puts that copy in place of the server, which waits for no standby then
#   sql FOLDER SERVER SQL [DATABASE]   prints what the server answers
#   dump FOLDER SERVER       pg_dump of all, into nothing
#   end FOLDER               ends both and removes FOLDER
#
# They listen on 127.0.0.1 and on a socket in FOLDER, trust everybody, and have a certificate for
# "localhost" of FOLDER/tls/ca.crt; FOLDER/tls/other.crt is of another authority. What a process
# has written survives its crash; that of the machine it need not (fsync is off).
set -euo pipefail

bin=$(echo /usr/lib/postgresql/*/bin | tr ' ' '\n' | tail -1)
[ -x "$bin/initdb" ] || {
    echo "postgres-pair.sh: there is no PostgreSQL server in /usr/lib/postgresql" >&2
    exit 2
}

usage() {
    sed -n '3,18s/^# //p' "$0" >&2
    exit 2
}

[ $# -ge 2 ] || usage
command=$1
folder=$2
server=${3:-}

# The server refuses to run as root.
as_owner() {
    if [ "$(id -u)" -eq 0 ]; then
        setpriv --reuid=postgres --regid=postgres --init-groups -- env HOME="$folder" LC_ALL=C "$@"
    else
        env LC_ALL=C "$@"
    fi
}

other() {
    [ "$1" = a ] && echo b || echo a
}

port() {
    cat "$folder/$1.port"
}

sql() {
    as_owner env PGOPTIONS='-c client_min_messages=warning' "$bin/psql" -XAtq -h 127.0.0.1 -p "$(port "$1")" -U postgres -d "${3:-postgres}" -c "$2"
}

is_running() {
    as_owner "$bin/pg_ctl" -D "$folder/$1" status >/dev/null 2>&1
}

# run SERVER - on the port that it has, or on a free one if it is new.
run() {
    for try in 1 2 3 4 5 6 7 8; do
        [ -e "$folder/$1.port" ] || echo $((20000 + RANDOM % 12000)) | as_owner tee "$folder/$1.port" >/dev/null
        if as_owner "$bin/pg_ctl" -D "$folder/$1" -l "$folder/$1.log" -w -t 120 \
            -o "-p $(port "$1")" start >/dev/null 2>&1; then
            return
        fi
        # Somebody else may have the port; a server that others know keeps it.
        [ ! -e "$folder/$1.known" ] && rm -f "$folder/$1.port"
        sleep 0.2
    done
    echo "postgres-pair.sh: server $1 does not start:" >&2
    tail -20 "$folder/$1.log" >&2
    exit 1
}

wait_for() {
    for try in $(seq 600); do
        [ "$(sql "$1" "$2" 2>/dev/null || true)" = "$3" ] && return
        sleep 0.1
    done
    echo "postgres-pair.sh: server $1 did not come to \"$2\" = $3" >&2
    exit 1
}

stop() {
    is_running "$1" || return 0
    kill -CONT $(processes_of "$1")
    as_owner "$bin/pg_ctl" -D "$folder/$1" -m "$2" -w -t 120 stop >/dev/null
}

# has_ended PID - a process that nobody has taken note of yet has ended, too.
has_ended() {
    case $(ps -o state= -p "$1") in '' | Z) true ;; *) false ;; esac
}

# processes_of SERVER - the first one, and all others.
processes_of() {
    main=$(head -1 "$folder/$1/postmaster.pid")
    echo "$main" $(ps -o pid= --ppid "$main")
}

# crash SERVER - what it has not written when this begins, it does not write any more. Its first process is stopped
# first, as it would tell the others to end, or start new ones.
crash() {
    is_running "$1" || return 0
    kill -STOP "$(head -1 "$folder/$1/postmaster.pid")"
    all=$(processes_of "$1")
    kill -KILL $all 2>/dev/null || true # some may have ended
    for one in $all; do
        until has_ended "$one"; do sleep 0.01; done
    done
    # Where nobody takes note of it, the file would look like that of a server that runs.
    as_owner rm -f "$folder/$1/postmaster.pid"
}

make_certificates() {
    mkdir "$folder/tls"
    (
        cd "$folder/tls"
        for name in ca other; do
            openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj "/CN=$name" \
                -keyout "$name.key" -out "$name.crt" 2>/dev/null
        done
        openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=localhost \
            -keyout server.key -out server.csr 2>/dev/null
        echo "subjectAltName=DNS:localhost" >names
        openssl x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 30 \
            -extfile names -out server.crt 2>/dev/null
        chmod 600 server.key
    )
}

write_settings() {
    as_owner tee -a "$folder/a/postgresql.conf" >/dev/null <<END
listen_addresses = '127.0.0.1'
unix_socket_directories = '$folder'
fsync = off
shared_buffers = 64MB
max_connections = 60
max_wal_size = 2GB
wal_keep_size = 256MB
synchronous_commit = on
ssl = on
ssl_cert_file = '$folder/tls/server.crt'
ssl_key_file = '$folder/tls/server.key'
END
}

make_standby() {
    main=$(other "$1")
    stop "$1" immediate
    rm -rf "${folder:?}/$1"
    as_owner "$bin/pg_basebackup" -h 127.0.0.1 -p "$(port "$main")" -U postgres -D "$folder/$1" -c fast --no-sync -X stream
    as_owner rm -f "$folder/$1/postgresql.auto.conf"
    as_owner tee "$folder/$1/postgresql.auto.conf" >/dev/null <<END
primary_conninfo = 'host=127.0.0.1 port=$(port "$main") user=postgres application_name=$1'
END
    as_owner touch "$folder/$1/standby.signal"
    run "$1"
    as_owner touch "$folder/$1.known"
    sql "$main" "ALTER SYSTEM SET synchronous_standby_names = '$1'"
    sql "$main" "SELECT pg_reload_conf()" >/dev/null
    wait_for "$main" "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync' AND state = 'streaming'" 1
}

end() {
    for one in a b; do
        [ ! -d "$folder/$one" ] || stop "$one" immediate || true
    done
    rm -rf "${folder:?}"
}

start() {
    mkdir -p "$folder"
    make_certificates
    [ "$(id -u)" -ne 0 ] || chown -R postgres:postgres "$folder"
    as_owner "$bin/initdb" -D "$folder/a" -U postgres -A trust --no-sync --locale=C.UTF-8 >"$folder/initdb.log" 2>&1 ||
        { cat "$folder/initdb.log" >&2 && exit 1; }
    write_settings
    run a
    as_owner touch "$folder/a.known"
    make_standby b
}

case $command in
    start)
        # Servers outlive a test that is killed, also in the middle of this.
        if [ -n "$server" ]; then
            (tail --pid="$server" -f /dev/null && "$0" end "$folder") >/dev/null 2>&1 </dev/null &
        fi
        start
        ;;
    url) echo "postgresql://postgres@127.0.0.1:$(port a),127.0.0.1:$(port b)/postgres" ;;
    port) port "$server" ;;
    stop) stop "$server" fast ;;
    kill) crash "$server" ;;
    pause)
        kill -STOP "$(head -1 "$folder/$server/postmaster.pid")" # so that it starts none meanwhile
        kill -STOP $(processes_of "$server")
        ;;
    resume) kill -CONT $(processes_of "$server") ;;
    run) run "$server" ;;
    promote)
        as_owner "$bin/pg_ctl" -D "$folder/$server" -w -t 120 promote >/dev/null
        sql "$server" "ALTER SYSTEM SET synchronous_standby_names = ''"
        sql "$server" "SELECT pg_reload_conf()" >/dev/null
        ;;
    standby) make_standby "$server" ;;
    save)
        stop "$server" fast
        as_owner cp -a "$folder/$server" "$folder/$server.saved"
        run "$server"
        ;;
    restore)
        stop "$server" immediate
        as_owner rm -rf "${folder:?}/$server"
        as_owner cp -a "$folder/$server.saved" "$folder/$server"
        run "$server"
        sql "$server" "ALTER SYSTEM SET synchronous_standby_names = ''"
        sql "$server" "SELECT pg_reload_conf()" >/dev/null
        ;;
    sql) sql "$server" "${4:?}" "${5:-}" ;;
    dump) as_owner "$bin/pg_dumpall" -h 127.0.0.1 -p "$(port "$server")" -U postgres >/dev/null ;;
    end) end ;;
    *) usage ;;
esac
