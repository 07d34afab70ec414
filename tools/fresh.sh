#!/bin/bash
# fresh.sh [COMMAND...] - runs make commands in a fresh clone on a new machine. A COMMAND is what follows
# `make`; the default is: run test. `run` ends when the server answers.
#
# The new machine is a bare Debian 12 in a folder, with git, make and certificates, and a clone of
# what is committed here. From this machine it gets the package sources, npm's settings, proxies and
# certificates, and nothing else: only packages of tools/packages.txt are installed. If no such machine
# can be made, the script prints the reason and runs the commands on this one, in a clone as well.
#
# Mounts are made in a namespace of their own and end with the processes in it. The folder, below
# TMPDIR or /var/tmp, is removed at the end; it grows to about 4 GB.
set -euo pipefail

release=bookworm
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
work=$(mktemp -d "${TMPDIR:-/var/tmp}/orrery-fresh.XXXXXX")
root=$work/root
child=
reason=

clean_up() {
    # unshare ignores polite signals; the first process of its namespace, and all others in it, go with it.
    [ -z "$child" ] || kill -KILL "$child" 2>/dev/null || true
    wait 2>/dev/null || true
    rm -rf --one-file-system "$work"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# apart COMMAND...: with mounts and processes of its own. In the background, so that traps are run.
apart() {
    unshare --mount --propagation private --pid --fork --kill-child -- "$@" &
    child=$!
    local status=0
    wait $child || status=$?
    child=
    return $status
}

# deb URI RELEASE COMPONENT, of Debian's own repositories that this machine uses.
sources() {
    apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) $(COMPONENT)' 'Identifier: Packages' 2>/dev/null |
        grep -E " $release(-updates|-security)? " | sort -u
}

can_make_root() {
    if [ "$(id -u)" -ne 0 ]; then
        reason='that needs root'
    elif ! command -v debootstrap >/dev/null; then
        reason='debootstrap is not installed'
    elif ! apart true 2>"$work/log"; then
        reason="mounting is not permitted: $(cat "$work/log")"
    elif [ -z "$(sources | awk -v release=$release '$3 == release')" ]; then
        reason="this machine has no package sources of Debian 12 ($release)"
    fi
    [ -z "$reason" ]
}

# apt may know of a proxy that nothing else knows.
proxy_of_apt() {
    local proxy
    eval "$(apt-config shell proxy Acquire::http::Proxy)"
    [ -z "${proxy:-}" ] || [ -n "${http_proxy:-}" ] || export http_proxy=$proxy
}

make_root() {
    local mirror
    mirror=$(sources | awk -v release=$release '$3 == release { print $2; exit }')
    proxy_of_apt
    apart debootstrap --variant=minbase --include=git,make,ca-certificates $release "$root" "$mirror" \
        >"$work/log" 2>&1 </dev/null || {
        tail -n 20 "$work/log"
        reason='debootstrap failed'
        return 1
    }
}

# take PATH...: what this machine has there, links followed.
take() {
    local path
    for path; do
        [ -e "$path" ] || continue
        mkdir -p "$root${path%/*}"
        cp -rLT "$path" "$root$path"
    done
}

take_settings() {
    take /etc/resolv.conf /etc/hosts
    sources >"$root/etc/apt/sources.list"
    apt-config dump | grep '^Acquire::' | grep -v '^Acquire::IndexTargets' >"$root/etc/apt/apt.conf.d/90host"
    take /etc/apt/auth.conf /etc/apt/auth.conf.d /etc/apt/trusted.gpg /etc/apt/trusted.gpg.d /etc/apt/keyrings
    echo force-unsafe-io >"$root/etc/dpkg/dpkg.cfg.d/unsafe-io" # it is thrown away anyway
    local file npm_global
    take /usr/local/share/ca-certificates /etc/ssl/certs/ca-certificates.crt /etc/npmrc
    [ ! -f ~/.npmrc ] || cp ~/.npmrc "$root/root/.npmrc"
    # Debian's npm keeps what is for all users in /etc/npmrc, others elsewhere.
    if npm_global=$(npm config get globalconfig 2>/dev/null) && [ -f "$npm_global" ]; then
        cp "$npm_global" "$root/etc/npmrc"
    fi
    for file in "${NODE_EXTRA_CA_CERTS:-}" "${SSL_CERT_FILE:-}" "${GIT_SSL_CAINFO:-}" \
        $(cat "$root/root/.npmrc" "$root/etc/npmrc" 2>/dev/null | sed -n 's/^cafile *= *"\{0,1\}\([^"]*\).*/\1/p'); do
        [ -z "$file" ] || take "$file"
    done
}

# Settings of this machine that are in the environment, one NAME=VALUE each, ended by zeros.
environment() {
    env -0 | grep -ziE '^(https?_proxy|all_proxy|no_proxy|npm_config_[a-z_]*|NODE_EXTRA_CA_CERTS|SSL_CERT_(FILE|DIR)|GIT_SSL_CAINFO|CI|TERM)=' ||
        true
}

# enter COMMAND...: in the root, in /orrery.
enter() {
    local settings
    mapfile -d '' settings < <(environment)
    # The root must be a mount, or no namespace could be made in it; pivot_root leaves nothing of
    # this machine within reach.
    apart bash -euc '
        root=$1
        shift
        mount --bind "$root" "$root"
        mount -t proc proc "$root/proc"
        mount -t sysfs -o ro sysfs "$root/sys"
        mount -t tmpfs -o mode=755 dev "$root/dev"
        for device in null zero full random urandom tty; do
            : >"$root/dev/$device"
            mount --bind "/dev/$device" "$root/dev/$device"
        done
        mkdir "$root/dev/pts" "$root/dev/shm" "$root/old"
        mount -t devpts -o newinstance,ptmxmode=0666,mode=0620 devpts "$root/dev/pts"
        mount -t tmpfs -o mode=1777 shm "$root/dev/shm"
        ln -s pts/ptmx "$root/dev/ptmx"
        ln -s /proc/self/fd "$root/dev/fd"
        cd "$root"
        pivot_root . old
        exec chroot . bash -euc "umount -l /old && rmdir /old && cd /orrery && exec \"\$@\"" bash "$@"' \
        bash "$root" env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        "${settings[@]}" "$@"
}

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

if can_make_root && say "making a bare Debian 12 ($release)" && make_root; then
    take_settings
    say "made in $SECONDS s"
    clone "$root/orrery"
    enter tools/fresh.sh --here "$@"
else
    say "cannot make a bare Debian 12: $reason; running on this machine instead"
    clone "$work/orrery"
    (cd "$work/orrery" && exec tools/fresh.sh --here "$@")
fi
