#!/bin/bash
# bare-debian.sh - a bare Debian 12 in a folder, as a new machine; to be sourced by scripts of bash.
#
#     . tools/bare-debian.sh NAME         # 'work' is a folder, removed at the end
#     can_make_root && make_root PACKAGE,... || say "no such machine: $reason"
#     take_settings                       # package sources, proxies, certificates of this machine
#     enter COMMAND...                    # in the root, in its folder /orrery, which must exist
#
# Mounts are made in a namespace of their own and end with the processes in it. The folder is below
# TMPDIR or /var/tmp.

release=bookworm
say() {
    echo "${0##*/}: $*"
}

work=$(mktemp -d "${TMPDIR:-/var/tmp}/orrery-$1.XXXXXX")
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

# make_root PACKAGE,...: with these packages besides the smallest set.
make_root() {
    local mirror
    mirror=$(sources | awk -v release=$release '$3 == release { print $2; exit }')
    proxy_of_apt
    apart debootstrap --variant=minbase --include="$1" $release "$root" "$mirror" \
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
