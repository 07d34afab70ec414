#!/bin/sh
# check-layers-test.sh - a check that never fails checks nothing: small trees, each with one fault,
# and the words that check-layers.sh must say about it.
set -eu

check=$(cd "$(dirname "$0")" && pwd)/check-layers.sh
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
failures=0

# A tree that is right; each case below changes one file of it.
plant() {
    rm -rf "$root/src"
    mkdir -p "$root/src/base" "$root/src/json" "$root/src/store/rocksdb" "$root/src/http" "$root/src/api" \
        "$root/src/query/sql" "$root/src/query/page"
    cat >"$root/src/layers.txt" <<'EOF'
# A comment.
layer base:
layer json: base
layer store: base
layer query/sql: base
layer query/page: query/sql json base
layer query: query/page query/sql json base
layer http: base
layer api: query store json base http/http.h
library rocksdb/: store/rocksdb
library openssl/: http
library openssl/hmac: http api
EOF
    echo '#include <string.h>' >"$root/src/base/slice.h"
    echo '#include "base/slice.h"' >"$root/src/json/json.h"
    echo '#include "json/json.h"' >"$root/src/json/tree_int.h"
    echo '#include "json/tree_int.h"' >"$root/src/json/tree.c"
    echo '#include <rocksdb/c.h>' >"$root/src/store/rocksdb/engine.c"
    echo '#include <openssl/ssl.h>' >"$root/src/http/tls.c"
    echo '#include "base/slice.h"' >"$root/src/query/sql/parser_int.h"
    echo '#include "query/sql/parser_int.h"' >"$root/src/query/page/page.h"
    echo '#include "query/page/page.h"' >"$root/src/query/query.c"
    echo '#include "query/page/page.h"' >"$root/src/api/query.c"
    echo '#include "http/http.h"' >"$root/src/api/api.c"
    echo '#include <openssl/hmac.h>' >"$root/src/api/sign.c"
}

# expect WORDS FILE LINE: the tree with LINE in FILE must be refused with WORDS; no WORDS, accepted.
expect() {
    plant
    echo "$3" >>"$root/$2"
    if output=$("$check" "$root" 2>&1); then verdict=accepted; else verdict=refused; fi
    if [ -z "$1" ]; then
        [ $verdict = accepted ] && return
    else
        [ $verdict = refused ] && echo "$output" | grep -qF "$1" && return
    fi
    echo "check-layers-test: '$3' in $2 was $verdict: $output" >&2
    failures=$((failures + 1))
}

expect '' src/json/tree.c '#include "base/slice.h"'
expect '' src/json/tree.c '/* see "store/store.h" */'
expect 'src/json/tree.c:2: json may not include store/store.h' src/json/tree.c '#include "store/store.h"'
expect 'base may not include json/json.h' src/base/slice.h '  #  include "json/json.h"'
expect 'json may not include api/api.h' src/json/tree_test.c '#include "api/api.h"'
expect 'api may not include http/loop.h' src/api/api.c '#include "http/loop.h"'
expect 'json/tree_int.h is for json only' src/api/api.c '#include "json/tree_int.h"'
expect 'query/sql may not include query/page/page.h' src/query/sql/lexer.c '#include "query/page/page.h"'
expect 'query/sql may not include query/query.h' src/query/sql/lexer.c '#include "query/query.h"'
expect 'query/sql may not include json/json.h' src/query/sql/lexer.c '#include "json/json.h"'
expect 'query/sql/parser_int.h is for query only' src/api/api.c '#include "query/sql/parser_int.h"'
expect 'does not begin with a folder' src/json/tree.c '#include "tree_int.h"'
expect 'does not begin with a folder' src/json/tree.c '#include "../base/slice.h"'
expect 'expected a name in quotes' src/json/tree.c '#include HEADER'
expect '<rocksdb/c.h> does not belong' src/store/store.c '#include <rocksdb/c.h>'
expect '<rocksdb/c.h> does not belong' src/api/api.c '#include <rocksdb/c.h>'
expect '<openssl/ssl.h> does not belong' src/api/api.c '#include <openssl/ssl.h>'
expect 'is in no folder' src/main.c 'int main(void);'
expect 'is in no folder' src/other.c '#include "base/slice.h"'
expect 'base is listed twice' src/layers.txt 'layer base: json'
expect 'index points up, to index' src/layers.txt 'layer index: index'
expect 'script points up, to admin' src/layers.txt 'layer script: admin'
expect 'script points up, to query/plan' src/layers.txt 'layer script: query/plan'
expect 'expected "layer" or "library"' src/layers.txt 'lair base:'

[ $failures -eq 0 ] && echo "check-layers-test: all cases pass"
