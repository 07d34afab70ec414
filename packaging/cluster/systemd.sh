#!/bin/bash
# systemd.sh - three nodes, a primary and its synchronous standby as services of this machine, all in orrery-cluster.target.
# Needs Debian's packages orrery and postgresql-15, and root; to be run once. For several machines, take its parts:
# docs/cluster.md.
set -euo pipefail
etc=/etc/orrery
units=/etc/systemd/system
engine_a=5441 # ports
engine_b=5442
node_port=8081 # of the first node; the others have the next ones

[ "$(id -u)" -eq 0 ] || {
    echo "systemd.sh: only root can make services" >&2
    exit 1
}
[ ! -e "$etc/cluster.secret" ] || {
    echo "systemd.sh: there is a cluster already: $etc/cluster.secret" >&2
    exit 1
}

# keep FILE: what it is given, for the user orrery alone.
keep() {
    install -o orrery -g orrery -m 0600 /dev/stdin "$1"
}
as_postgres() {
    (cd / && exec setpriv --reuid=postgres --regid=postgres --init-groups -- "$@")
}
sql() {
    as_postgres psql -XAtq -v ON_ERROR_STOP=1 -p $engine_a -c "$1" "${2:-postgres}"
}

echo "== A primary, 15/orrery_a, and its standby, 15/orrery_b"
pg_createcluster -p $engine_a 15 orrery_a --start
password=$(head -c 24 /dev/urandom | base64 | tr '+/' '-_')
sql "CREATE ROLE orrery LOGIN PASSWORD '$password'"
sql "GRANT pg_read_all_stats TO orrery" # to see whether the standby is there
sql "CREATE DATABASE orrery OWNER orrery"
pg_createcluster -p $engine_b 15 orrery_b
rm -rf /var/lib/postgresql/15/orrery_b
as_postgres pg_basebackup -D /var/lib/postgresql/15/orrery_b -X stream -R -d "port=$engine_a application_name=standby"
pg_ctlcluster 15 orrery_b start
# Only now: without its standby, the primary would acknowledge nothing.
sql "ALTER SYSTEM SET synchronous_standby_names = 'standby'"
sql "ALTER SYSTEM SET max_slot_wal_keep_size = '4GB'"
sql "SELECT pg_reload_conf()" >/dev/null

echo "== Nodes a, b and c"
orrery cluster secret 2>/dev/null | keep "$etc/cluster.secret"
echo "127.0.0.1:*:orrery:orrery:$password" | keep "$etc/pgpass"
wants="postgresql@15-orrery_a.service postgresql@15-orrery_b.service"
for name in a b c; do
    cat >"$etc/node-$name.conf" <<CONF
data = /var/lib/orrery-$name
key-file = $etc/key
port = $node_port
cluster = postgresql://orrery@127.0.0.1:$engine_a,127.0.0.1:$engine_b/orrery?passfile=$etc/pgpass
cluster-secret = $etc/cluster.secret
node = $name
advertise = http://127.0.0.1:$node_port
CONF
    wants+=" orrery-node@$name.service"
    node_port=$((node_port + 1))
done
# The unit of a server alone has all that a node's must have.
sed -e 's|^Description=.*|Description=Orrery, node %i of a cluster|' -e 's|/etc/orrery/orrery.conf|/etc/orrery/node-%i.conf|' \
    -e 's|^StateDirectory=.*|StateDirectory=orrery-%i|' -e 's|^After=.*|& postgresql.service|' \
    "${ORRERY_UNIT:-/lib/systemd/system/orrery.service}" >"$units/orrery-node@.service"
cat >"$units/orrery-cluster.target" <<UNIT
[Unit]
Description=Orrery, a cluster of three nodes and its engine
Wants=$wants

[Install]
WantedBy=multi-user.target
UNIT
systemctl daemon-reload
systemctl disable --now orrery.service # it has the first node's port
systemctl enable --now orrery-cluster.target
echo "The nodes are http://127.0.0.1:8081 to 8083: orrery cluster status --endpoint http://127.0.0.1:8081 --key-file $etc/key"
