#!/bin/sh
# check-names-test.sh - a check that never fails checks nothing: small trees, each with one fault,
# and the words that check-names.sh must say about it.
set -eu

check=$(cd "$(dirname "$0")" && pwd)/check-names.sh
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
failures=0

# A tree that is right; each case below adds a line to one file of it.
plant() {
    rm -rf "$root"/*
    mkdir -p "$root/src/query/sql" "$root/src/json" "$root/docs" "$root/test" "$root/tools"
    echo 'epoll_wait  Linux' >"$root/tools/names.txt"
    cat >"$root/src/query/sql/parser.c" <<'END'
/* parser.c - see parser_int.h, which has PARSER_DEPTH_MAX and parser_run(). */
#include "query/sql/parser_int.h"

static const char *path = "/*"; // json.h
static int parse_list(ParserState *state); /* of epoll_wait,
   * and parse_list() */
static const char quote = '"', *metric = "orrery_requests_total /* still text";
END
    echo 'enum { PARSER_DEPTH_MAX = 10 }; void parser_run(ParserState *); /* `parser.c` */' >"$root/src/query/sql/parser_int.h"
    echo '/* A gone function: "c.h" is here. */ int json_parse(void);' >"$root/src/json/json.h"
    echo 'int c;' >"$root/src/json/c.h"
    echo 'test("connects", () => startServer());' >"$root/test/connect.test.mjs"
    for document in ARCHITECTURE.md CONTRIBUTING.md README.md docs/locks.md src/query/README.md test/README.md; do
        echo '# Title' >"$root/$document"
    done
}

# expect WORDS FILE LINE: the tree with LINE in FILE must be refused with WORDS; no WORDS, accepted.
expect() {
    plant
    printf '%s\n' "$3" >>"$root/$2"
    if output=$("$check" "$root" 2>&1); then verdict=accepted; else verdict=refused; fi
    if [ -z "$1" ]; then
        [ $verdict = accepted ] && return
    else
        [ $verdict = refused ] && echo "$output" | grep -qF "$1" && return
    fi
    echo "check-names-test: '$3' in $2 was $verdict: $output" >&2
    failures=$((failures + 1))
}

# Files, in code font or not.
expect '' ARCHITECTURE.md 'See `parser.c`, sql/parser.c, (src/query/sql/parser_int.h), query/sql/parser.c.'
expect '' src/query/README.md '| `parser.c`, sql/parser_int.h | json/json.h |'
expect '' test/README.md '`connect.test.mjs`, `_test.c`, *.mjs, c.b.c, e.g. and `x.y.z`'
expect 'ARCHITECTURE.md:2: there is no file gone.c' ARCHITECTURE.md 'See `gone.c`.'
expect 'ARCHITECTURE.md:2: there is no file query/parser.c' ARCHITECTURE.md 'See query/parser.c.'
expect 'there is no file src/gone.h' docs/locks.md '| a | src/gone.h |'
expect 'there is no file json.h in src/query; name the folder' src/query/README.md 'See `json.h`.'
expect 'there is no file gone.test.mjs' test/README.md '`gone.test.mjs`'
expect 'there is no file gone.sh' CONTRIBUTING.md '`tools/x`, gone.sh'

# Words in code font.
expect '' ARCHITECTURE.md '`parse_list`, `parser_run()`, `PARSER_DEPTH_MAX`, `ParserState.state`, `json_parse(x, y)`'
expect '' ARCHITECTURE.md '`parser.c: parse_list`, `connect`, `orrery_requests_total`, `startServer`, `epoll_wait`'
expect '' ARCHITECTURE.md 'no_code_font, `--gone-option`, `SELECT gone_name FROM c`, `{"gone_a":1}`, `gone`, `/gone_path`'
expect '' README.md '`gone_name` and `gone.c`: about the program, not about its code'
expect 'ARCHITECTURE.md:2: there is no gone_name in the code' ARCHITECTURE.md 'a `gone_name` b'
expect 'there is no gone_two' ARCHITECTURE.md '`parse_list` and `gone_two`'
expect 'there is no gone in' src/query/README.md '`gone()`'
expect 'there is no GONE_MAX' docs/locks.md '`GONE_MAX`'
expect 'there is no GoneType' docs/locks.md '`GoneType`'
expect 'there is no gone_member' docs/locks.md '`ParserState.gone_member`'
expect 'there is no gone_call' docs/locks.md '`parser.c: gone_call`'

# Blocks of examples.
expect '' ARCHITECTURE.md '```
See `gone.c`.
```'
expect 'ARCHITECTURE.md:4: there is no file gone.c' ARCHITECTURE.md '```
```
See `gone.c`.'

# Comments. What stands only in a comment is no word of the code.
expect '' src/json/json.h '/* parse_list(), parser.c, sql/parser.c */'
expect '' src/json/json.h 'int gone_name; /* is gone_name */'
expect 'src/json/json.h:2: there is no gone_name in the code' src/json/json.h '/* gone_name() */'
expect 'src/json/json.h:3: there is no gone_name' src/json/json.h '/* see
 * gone_name */'
expect 'there is no GONE_MAX' src/json/json.h 'int a; // GONE_MAX'
expect 'there is no file gone.c' src/json/json.h '/* gone.c */'
expect '' src/json/json.h '/* DEPTH_MAX --> PARSER_DEPTH_MAX */'

expect '' src/json/c.h ''
rm "$root/tools/names.txt"
if "$check" "$root" >/dev/null 2>&1; then
    echo 'check-names-test: a tree without tools/names.txt was accepted' >&2
    failures=$((failures + 1))
fi

[ $failures -eq 0 ] && echo "check-names-test: all cases pass"
