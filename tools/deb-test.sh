#!/bin/bash
# deb-test.sh PACKAGE.deb - installs the Debian package in a bare Debian 12, uses it, upgrades it, removes
# it and purges it, and checks what is there after each step. Services are not started there, since nothing
# runs them: the server is started as the user of the service, with the service's own options.
#
# If no such machine can be made, the script prints the reason and looks at the package only.
set -euo pipefail

fail() {
    echo "deb-test.sh: $*" >&2
    exit 1
}

# ---- in the bare Debian: deb-test.sh --here PACKAGE.deb UPGRADE.deb ----

install_deb() {
    apt-get install -y -qq --no-install-recommends "$1" >/tmp/log 2>&1 || {
        cat /tmp/log
        fail "apt-get cannot install $1"
    }
    ! grep -i 'warning\|error' /tmp/log || fail "installing $1 is not quiet"
}

# expect PATH "USER:GROUP MODE": what belongs to whom.
expect() {
    local found
    found=$(stat -c '%U:%G %a' "$1") || fail "there is no $1"
    [ "$found" = "$2" ] || fail "$1 is $found, not $2"
}

gone() {
    local path
    for path; do
        [ ! -e "$path" ] || fail "$path is still there"
    done
}

# offline FUNCTION: with a network of its own, in which no other server has the port. There is no ip in a
# bare Debian, so perl switches the loopback interface on (SIOCSIFFLAGS, IFF_UP).
offline() {
    unshare --net "$0" --offline "$1"
}

server=
start() {
    # As the unit starts it.
    local command
    command=$(sed -n 's/^ExecStart=//p' /lib/systemd/system/orrery.service)
    # shellcheck disable=SC2086 # it is a command with its arguments
    setpriv --reuid orrery --regid orrery --clear-groups --no-new-privs --bounding-set=-all \
        env -i PATH=/usr/bin:/bin $command >/tmp/server.log 2>&1 &
    server=$!
    for _ in $(seq 300); do
        ! orrery health --quiet 2>/dev/null || return 0
        kill -0 $server 2>/dev/null || break
        sleep 0.1
    done
    cat /tmp/server.log
    fail 'the server does not answer'
}

stop() {
    kill -TERM $server
    wait $server || fail "the server ended with $?"
}

where=(--database shop --container places --key-file /etc/orrery/key)
query() {
    orrery export "${where[@]}" --quiet --query "$1"
}

check_installed() {
    [ "$(orrery version)" = "orrery $1" ] || fail "'orrery version' is not $1"
    expect /var/lib/orrery 'orrery:orrery 700'
    expect /etc/orrery/key 'root:orrery 640'
    expect /etc/orrery/orrery.conf 'root:root 644'
    expect /usr/bin/orrery 'root:root 755'
    getent passwd orrery | grep -q ':/var/lib/orrery:/usr/sbin/nologin$' || fail 'the user is not a system user'
    # Without -q: a reader that ends early is a failure of the writer, once the page is longer than a pipe.
    gzip -dc /usr/share/man/man1/orrery.1.gz | grep '^\.SS orrery serve$' >/dev/null || fail 'the manual page is missing'
    bash -c '. /usr/share/bash-completion/completions/orrery && complete -p orrery' >/dev/null
    dpkg-query -W -f '${Conffiles}' orrery | grep -q ' /etc/orrery/orrery.conf ' || fail 'the configuration is no conffile'
    [ -e /etc/systemd/system/multi-user.target.wants/orrery.service ] || fail 'the service is not enabled'
}

use() {
    start
    printf '%s\n' '{"id":"1","pk":"a","at":{"type":"Point","coordinates":[13.4,52.5]}}' >/tmp/items.jsonl
    orrery import "${where[@]}" --create --partition-key /pk --quiet /tmp/items.jsonl
    # GEOS, then PROJ, which are loaded when a query needs them.
    query "SELECT VALUE ST_WITHIN(c.at, {'type':'Polygon','coordinates':[[[13,52],[14,52],[14,53],[13,53],[13,52]]]}) FROM c" |
        grep -qx true || fail 'GEOS does not work'
    query "SELECT VALUE ROUND(ST_DISTANCE(c.at, {'type':'Point','coordinates':[13.4,52.6]}) / 1000) FROM c" |
        grep -qx 11 || fail 'PROJ does not work'
    grep -q 'no_new_privs=on .* seccomp=on' /tmp/server.log || fail 'the server has no sandbox'
    stop
    grep -q 'clean=true' /tmp/server.log || fail 'the server did not stop well'
    [ "$(stat -c %U /var/lib/orrery/store)" = orrery ] || fail 'the data belongs to somebody else'
}

still_has_data() {
    start
    [ "$(query 'SELECT VALUE c.id FROM c')" = '"1"' ] || fail 'the data is lost'
    stop
}

# The libraries that are loaded when they are needed are there: all of them, since what needs an identity
# provider or a script is not tried here.
check_libraries() {
    local library
    for library in $(cat /orrery/libraries); do
        ldconfig -p | grep -q "$library " || fail "no package brings $library"
    done
}

run_here() {
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    install_deb "$1"
    check_installed "$3"
    check_libraries
    offline use

    echo '# a line of the administrator' >>/etc/orrery/orrery.conf
    local key
    key=$(cat /etc/orrery/key)
    install_deb "$2"
    [ "$(dpkg-query -W -f '${Version}' orrery)" = "$3+upgrade" ] || fail 'the upgrade was not installed'
    check_installed "$3"
    [ "$(cat /etc/orrery/key)" = "$key" ] || fail 'an upgrade changed the key'
    grep -q '^# a line of the administrator' /etc/orrery/orrery.conf || fail 'an upgrade changed the configuration'
    offline still_has_data

    apt-get remove -y -qq orrery >/dev/null
    gone /usr/bin/orrery /lib/systemd/system/orrery.service /usr/share/man/man1/orrery.1.gz
    expect /var/lib/orrery 'orrery:orrery 700'
    expect /etc/orrery/key 'root:orrery 640'
    expect /etc/orrery/orrery.conf 'root:root 644'
    install_deb "$2"
    offline still_has_data

    apt-get purge -y -qq orrery >/dev/null
    gone /usr/bin/orrery /var/lib/orrery /etc/orrery /etc/systemd/system/multi-user.target.wants/orrery.service \
        /usr/share/doc/orrery
    getent passwd orrery >/dev/null || fail 'the user is gone'
    echo 'deb-test.sh: installed, used, upgraded, removed and purged'
}

if [ "${1:-}" = --offline ]; then
    perl -e 'socket(S, 2, 2, 0) && ioctl(S, 0x8914, my $request = pack("a16 s x64", "lo", 1)) or die $!'
    "$2"
    exit
fi
if [ "${1:-}" = --here ]; then
    shift
    run_here "$@"
    exit
fi

# ---- the package ----

[ $# -eq 1 ] || fail 'usage: deb-test.sh PACKAGE.deb'
cd "$(dirname "$0")/.."
package=$(realpath "$1")
. tools/bare-debian.sh deb-test

# Fails for an exposure above 2.0 of 10.
check_unit() {
    command -v systemd-analyze >/dev/null || return 0
    systemd-analyze security --offline=true --threshold=20 packaging/orrery.service >"$work/unit" 2>&1 || {
        grep -v '✓' "$work/unit"
        fail 'the unit gives its service too many rights'
    }
    tail -n 1 "$work/unit"
}

check_contents() {
    dpkg-deb -c "$package" >"$work/contents"
    for path in ./usr/bin/orrery ./lib/systemd/system/orrery.service ./etc/orrery/orrery.conf \
        ./usr/share/man/man1/orrery.1.gz ./usr/share/bash-completion/completions/orrery \
        ./usr/share/doc/orrery/copyright ./usr/share/doc/orrery/changelog.gz; do
        grep -q " $path\$" "$work/contents" || fail "the package has no $path"
    done
    ! awk '$2 != "root/root"' "$work/contents" | grep . || fail 'not everything in the package belongs to root'
    dpkg-deb --fsys-tarfile "$package" | tar -xO ./usr/share/man/man1/orrery.1.gz | gzip -dc |
        groff -man -ww -Tutf8 2>"$work/page" >/dev/null
    [ ! -s "$work/page" ] || fail "groff does not like the manual page: $(head -n 3 "$work/page")"
    ! command -v lintian >/dev/null || lintian --fail-on error,warning "$package"
}

# The same package as a later version.
make_upgrade() {
    dpkg-deb -R "$package" "$work/upgrade"
    sed -i 's/^Version: .*/&+upgrade/' "$work/upgrade/DEBIAN/control"
    dpkg-deb --root-owner-group -b "$work/upgrade" "$1" >/dev/null
}

version=$(dpkg-deb -f "$package" Version)
check_contents
check_unit
if can_make_root && say "making a bare Debian 12 ($release)" && make_root ca-certificates; then
    take_settings
    mkdir "$root/orrery"
    cp tools/deb-test.sh "$root/orrery"
    cp "$package" "$root/orrery/orrery.deb"
    make_upgrade "$root/orrery/upgrade.deb"
    grep -rhoE '^#define [A-Z]+_LIBRARY +"lib[^"]+"' src | sed 's/.*"\(.*\)"/\1/' >"$root/orrery/libraries"
    enter ./deb-test.sh --here ./orrery.deb ./upgrade.deb "$version"
else
    say "cannot make a bare Debian 12: $reason; only the contents of the package were checked"
fi
