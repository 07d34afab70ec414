#!/bin/sh
# check-forbidden-test.sh - a check that never fails checks nothing: small trees, each with one forbidden thing,
# and the reason that check-forbidden.sh must give. The things are put together here from pieces.
set -eu

check=$(cd "$(dirname "$0")" && pwd)/check-forbidden.sh
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
failures=0
reasons=

plant() {
    rm -rf "$root"/*
    mkdir -p "$root/src/api" "$root/src/base" "$root/test"
    echo 'int fine(void); /* strcpy_s(x), my_system(y), a.system(z) and b->rand(c) are others */' >"$root/src/api/a.c"
    echo 'int main(void) { strcpy(a, b); }' >"$root/src/api/a_test.c" # tests may
    echo '{}' >"$root/test/package-lock.json"
    echo 'export const fine = 1;' >"$root/test/a.mjs"
}

# expect REASON FILE TEXT: the tree with TEXT in FILE must be refused with REASON; no REASON, accepted.
expect() {
    plant
    printf '%s\n' "$3" >>"$root/$2"
    if output=$("$check" "$root" 2>&1); then verdict=accepted; else verdict=refused; fi
    if [ -z "$1" ]; then
        [ $verdict = accepted ] && return
    elif [ $verdict = refused ] && echo "$output" | grep -qF -e "<- $1"; then
        reasons="$reasons
$1"
        return
    fi
    echo "check-forbidden-test.sh: expected '${1:-accepted}' for '$3', found $verdict: $output" >&2
    failures=$((failures + 1))
}

# calls REASON FILE NAME...: each of these functions, called.
calls() {
    reason=$1
    file=$2
    shift 2
    for name in "$@"; do
        expect "$reason" "$file" "    x = $name(y);"
    done
}

expect '' src/api/a.c ''
calls 'has no bound' src/api/a.c strcpy strcat stpcpy sprintf vsprintf gets getwd alloca scanf sscanf fscanf
calls 'may leave the text without an end' src/api/a.c strncpy strncat
calls 'hides errors; use slice_to_i64' src/api/a.c atoi atol atof
calls 'reaches a partition past its handle (catalog/partition_handle.h)' src/api/a.c partition_open handle_local
calls 'has hidden state' src/api/a.c strtok rand srand random drand48 localtime gmtime inet_ntoa setenv
calls 'gives its text to a shell' src/api/a.c system popen
calls 'starts whatever PATH has; name the program' src/api/a.c execvp execlp posix_spawnp
calls 'can be replaced by others; use mkdtemp' src/api/a.c tmpnam tempnam mktemp
calls 'is off in release; use ASSERT' src/api/a.c assert
calls 'a thread is joined by the code that starts it' src/api/a.c pthread_detach
calls 'may return NULL; use base/mem.h or an arena' src/api/a.c malloc calloc realloc strdup
expect 'clean-up is by AUTO' src/api/a.c "    go""to end;"
expect 'names that end in _t belong to the C library' src/api/a.c 'typedef int size_of_t;'
for word in TO""DO FIX""ME X""XX HA""CK; do
    expect 'is finished or left out' src/api/a.c "/* $word: later */"
done
expect 'ends with a space' test/a.mjs 'const a = 1; '
expect 'belongs to one machine' test/a.mjs "const path = \"/ho""me/me\";"
expect 'is not in Node 18, which Debian 12 has' test/a.mjs 'list.toSorted();'
expect 'is none of the packages of tools/packages.txt' test/a.mjs 'spawn("curl", []);'
expect 'names a registry' test/package-lock.json '"resolved": 1'
# In another folder some of them are right.
expect '' src/base/mem.c '    x = malloc(y);'

# Every rule of the check is tried here.
rules=$(sed -n "s/^forbid '\([^']*\)'.*/\1/p" "$check")
[ "$(echo "$rules" | wc -l)" -ge 19 ] || {
    echo "check-forbidden-test.sh: the rules of check-forbidden.sh are not recognised" >&2
    failures=$((failures + 1))
}
echo "$rules" >"$root/rules"
while read -r rule; do
    echo "$reasons" | grep -qxF -e "$rule" || {
        echo "check-forbidden-test.sh: the rule '$rule' is not tested" >&2
        failures=$((failures + 1))
    }
done <"$root/rules"

exit $((failures > 0))
