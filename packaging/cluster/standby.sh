#!/bin/bash
# standby.sh - copies the primary the first time, and follows it.
set -euo pipefail
until [ -s "$PGDATA/PG_VERSION" ]; do
    rm -rf "${PGDATA:?}"/*
    pg_basebackup -h db1 -U orrery -D "$PGDATA" -X stream -R \
        -d "host=db1 user=orrery application_name=standby" || sleep 2
done
chmod 700 "$PGDATA"
exec postgres
