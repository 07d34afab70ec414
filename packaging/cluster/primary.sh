#!/bin/bash
# primary.sh - runs once, when the primary's data is made: lets the standby copy it, and waits for it from then on.
set -euo pipefail
echo "host replication orrery all scram-sha-256" >>"$PGDATA/pg_hba.conf"
psql -v ON_ERROR_STOP=1 -U orrery -d orrery -c "ALTER SYSTEM SET synchronous_standby_names = 'standby'"
