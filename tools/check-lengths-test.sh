#!/bin/sh
# check-lengths-test.sh - a check that never fails checks nothing: small trees, each with one fault,
# and the words that check-lengths.sh must say about it.
set -eu

check=$(cd "$(dirname "$0")" && pwd)/check-lengths.sh
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
failures=0

# lines COUNT: as many statements.
lines() {
    i=0
    while [ $i -lt "$1" ]; do
        echo "    step($i);"
        i=$((i + 1))
    done
}

# A C function of that many lines, its signature on two of them.
make_function() {
    printf 'static Status %s(int count,\n                   Error *err)\n{\n' "$1"
    lines $(($2 - 4))
    printf '}\n\n'
}

# A tree that is right; each case below changes one file of it.
plant() {
    rm -rf "$root/src" "$root/tools"
    mkdir -p "$root/src/query/sql" "$root/src/api" "$root/bench" "$root/test/node_modules" "$root/tools"
    printf '# A comment.\n\nfunction parser.c:parse_long 90\nfile api/big.c 900\n' >"$root/tools/lengths.txt"
    { make_function parse_short 80 && make_function parse_long 90; } >"$root/src/query/sql/parser.c"
    lines 900 >"$root/src/api/big.c"
    lines 800 >"$root/test/most.test.mjs"
    lines 2000 >"$root/test/node_modules/other.mjs"
    cat >"$root/src/api/api.h" <<'END'
#define LIST(X) \
    X(one)

typedef struct Api {
    int (*call)(int);
} Api;

static const Api rows[] = {
    {NULL},
};
END
    lines 100 >>"$root/src/api/api.h" # no function
}

# expect WORDS COMMAND: after COMMAND, run in the tree, it must be refused with WORDS; no WORDS, accepted.
expect() {
    plant
    (cd "$root" && eval "$2")
    if output=$("$check" "$root" 2>&1); then verdict=accepted; else verdict=refused; fi
    if [ -z "$1" ]; then
        [ $verdict = accepted ] && return
    else
        [ $verdict = refused ] && echo "$output" | grep -qF "$1" && return
    fi
    echo "check-lengths-test: '$2' was $verdict: $output" >&2
    failures=$((failures + 1))
}

expect '' true
expect '' 'mv src/query/sql/parser.c src/query/parser.c'
expect 'src/api/new.c:1: this function has 81 lines' 'make_function too_long 81 >src/api/new.c'
expect 'src/api/new.c:3: this function has 81 lines' '{ echo "int a;"; echo; make_function too_long 81; } >src/api/new.c'
expect 'bench/load.h:1: this function has 100 lines' 'make_function too_long 100 >bench/load.h'
expect 'src/api/new.c:1: this file has 801 lines' 'lines 801 >src/api/new.c'
expect 'test/most.test.mjs:1: this file has 801 lines' 'echo >>test/most.test.mjs'
expect 'this function has grown from 90 to 91 lines' 'sed -i "s/step(80);/&\n/" src/query/sql/parser.c'
expect 'this file has grown from 900 to 901 lines' 'echo >>src/api/big.c'
expect 'parser.c:parse_long has 89 lines now; lower the number' 'sed -i "/step(81)/d" src/query/sql/parser.c'
expect 'api/big.c has 800 lines now and needs no exception' 'lines 800 >src/api/big.c'
expect 'lengths.txt:3: there is no function parser.c:parse_long' 'sed -i s/parse_long/parse_other/ src/query/sql/parser.c'
expect 'this function has 90 lines, and 80' 'sed -i s/parse_long/parse_other/ src/query/sql/parser.c'
expect 'there is no file api/big.c' 'rm src/api/big.c'
expect 'this file has 900 lines' 'cp src/api/big.c src/query/big.c'
expect 'is listed twice' 'echo "file api/big.c 900" >>tools/lengths.txt'
expect 'expected "file PATH LINES"' 'echo "file big.c" >>tools/lengths.txt'
expect 'there is no tools/lengths.txt' 'rm tools/lengths.txt'

[ $failures -eq 0 ] && echo "check-lengths-test: all cases pass"
