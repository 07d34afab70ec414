#!/bin/bash
# fresh.sh [COMMAND...] - runs make commands in a fresh clone on a new machine. A COMMAND is what follows
# `make`; the default is: run test. `run` ends when the server answers.
#
# The new machine is a bare Debian 12 in a folder, with git, make and certificates, and a clone of
# what is committed here. From this machine it gets the package sources, npm's settings, proxies and
# certificates, and nothing else: only packages of tools/packages.txt are installed. If no such machine
# can be made, the script prints the reason and runs the commands on this one, in a clone as well.
#
# tools/bare-debian.sh makes the machine; its folder grows to about 4 GB.
set -euo pipefail

say() {
    echo "fresh.sh: $*"
}

# ---- in the clone: fresh.sh --here COMMAND... ----

# Whether the server at this port says that it is well; there is no curl here.
answers() {
    local line
    exec 3<>"/dev/tcp/127.0.0.1/$1" || return 1
    printf 'GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n' >&3
    read -r line <&3 || line=
    exec 3>&-
    [[ $line = *' 200 '* ]]
}

run_until_it_answers() {
    local log port='' args=''
    log=$(mktemp)
    if (exec 3<>/dev/tcp/127.0.0.1/8081) 2>/dev/null; then
        say "port 8081 is taken on this machine, so \`make run\` gets another one"
        args='--port 0'
    fi
    set -m # a process group of its own, which gets a Ctrl-C as a terminal's would
    make run ARGS="$args" >"$log" 2>&1 </dev/null &
    local job=$!
    set +m
    while kill -0 $job 2>/dev/null; do
        port=$(sed -n 's/.* server\.ready port=\([0-9]*\).*/\1/p' "$log")
        if [ -n "$port" ] && answers "$port" 2>/dev/null; then
            break
        fi
        port=
        sleep 0.2
    done
    kill -INT -- -$job 2>/dev/null || true
    wait $job || true
    grep -v '^\(Selecting\|Preparing\|Unpacking\|Setting up\|Processing\)' "$log" | tail -n 40
    rm -f "$log"
    [ -n "$port" ] || {
        say "\`make run\` ended without a server that answers"
        return 1
    }
}

run_here() {
    local times='' command begin failed=
    for command; do
        echo "### make $command"
        begin=$SECONDS
        if [ "$command" = run ]; then
            run_until_it_answers || failed=yes
        else
            # shellcheck disable=SC2086 # a command may have variables of make after it
            make $command </dev/null || failed=yes
        fi
        times+=$(printf '%5d s  make %s%s' $((SECONDS - begin)) "$command" "${failed:+: FAILED}")$'\n'
        [ -z "$failed" ] || break
    done
    printf '\n### Times of fresh.sh\n%s' "$times"
    [ -z "$failed" ]
}

if [ "${1:-}" = --here ]; then
    shift
    run_here "$@"
    exit
fi

# ---- the machine ----

cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- run test
. tools/bare-debian.sh fresh

clone() {
    # The files may belong to another user, if root runs this in that user's clone.
    printf '[safe]\n\tdirectory = *\n' >"$work/gitconfig"
    export GIT_CONFIG_GLOBAL=$work/gitconfig
    git clone --quiet --no-local . "$1" || {
        say 'there is no repository here that could be cloned' >&2
        exit 2
    }
    [ -z "$(git status --porcelain)" ] || say 'what is not committed is not tested'
    unset GIT_CONFIG_GLOBAL
}

if can_make_root && say "making a bare Debian 12 ($release)" && make_root git,make,ca-certificates; then
    take_settings
    say "made in $SECONDS s"
    clone "$root/orrery"
    enter tools/fresh.sh --here "$@"
else
    say "cannot make a bare Debian 12: $reason; running on this machine instead"
    clone "$work/orrery"
    (cd "$work/orrery" && exec tools/fresh.sh --here "$@")
fi
