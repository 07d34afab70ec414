#!/bin/sh
# deps.sh PURPOSE... - installs the Debian packages that the purposes need and that are missing.
#
# The list is packages.txt. Nothing missing is the usual case, so that is quick and silent: apt is
# only started when it has something to do. Elsewhere than on Debian the names are printed and
# the build goes on, since CMake says more about a missing library than this script could.
set -eu

list=$(dirname "$0")/packages.txt
[ $# -gt 0 ] || {
    echo "usage: deps.sh PURPOSE...   (the purposes are in $list)" >&2
    exit 2
}

# A typing error in a purpose would otherwise install nothing, without a word.
wanted=$(awk -v purposes="$*" '
    BEGIN { count = split(purposes, want, " ") }
    /^#/ || NF == 0 { next }
    { for (i = 1; i <= count; i++) if ($2 == want[i]) { print $1; seen[i] = 1 } }
    END {
        for (i = 1; i <= count; i++) if (!seen[i]) {
            print "deps.sh: no package is for \"" want[i] "\"" > "/dev/stderr"
            exit 2
        }
    }' "$list")

# An own Node.js serves as well as Debian's, and Debian's npm would replace it.
own_node() {
    command -v node >/dev/null && command -v npm >/dev/null || return 1
    major=$(node --version | sed 's/^v//; s/\..*//')
    [ "$major" -ge 18 ]
}

is_for_node() {
    [ "$1" = nodejs ] || [ "$1" = npm ]
}

if ! command -v dpkg-query >/dev/null; then
    echo "deps.sh: not a Debian system; make sure that you have what these packages hold:" $wanted >&2
    exit 0
fi

# One call for all packages; it fails when one is unknown, and says nothing about that one.
installed=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' $wanted 2>/dev/null |
    awk '$2 == "installed" { print $1 }') || true

missing=
for package in $wanted; do
    case "
$installed
" in
    *"
$package
"*) continue ;;
    esac
    if is_for_node "$package" && own_node; then
        continue
    fi
    missing="$missing $package"
done
[ -n "$missing" ] || exit 0

as_root=
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || {
        echo "deps.sh: these packages are missing:$missing" >&2
        echo "deps.sh: installing them needs root or sudo; ask someone who has it to run" >&2
        echo "    apt-get install --no-install-recommends$missing" >&2
        exit 1
    }
    as_root=sudo
fi

echo "Installing Debian packages:$missing"
$as_root apt-get update -qq
$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing
