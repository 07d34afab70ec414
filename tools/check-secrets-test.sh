#!/bin/sh
# check-secrets-test.sh - a check that never fails checks nothing: small trees, each with one secret, and the
# rule that check-secrets.sh must find it by. No secret stands here as it is, or the check would find it.
set -eu

check=$(cd "$(dirname "$0")" && pwd)/check-secrets.sh
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
failures=0

# repeat COUNT TEXT
repeat() {
    awk -v n="$1" -v text="$2" 'BEGIN { while (n-- > 0) printf "%s", text }'
}

plant() {
    rm -rf "$root"/*
    mkdir -p "$root/tools" "$root/src/x_fuzz_seeds" "$root/test/node_modules"
    echo "text $(repeat 43 k)= a key of the tests" >"$root/tools/secrets.txt"
    echo "const key = \"$(repeat 43 k)=\";" >"$root/test/key.mjs"
    echo "$(repeat 86 n)==" >"$root/test/node_modules/other.mjs" # not ours
    echo 'int main(void);' >"$root/src/main.c"
}

# expect WORDS: what the check must say about the tree; no WORDS, it must accept it.
expect() {
    if output=$("$check" "$root" 2>&1); then verdict=accepted; else verdict=refused; fi
    if [ -z "$1" ]; then
        [ $verdict = accepted ] && return
    elif [ $verdict = refused ] && echo "$output" | grep -q -e "$1"; then
        return
    fi
    echo "check-secrets-test.sh: expected '${1:-accepted}', found $verdict: $output" >&2
    failures=$((failures + 1))
}

# finds RULE TEXT: in an ordinary file, and in a seed.
finds() {
    for file in src/main.c src/x_fuzz_seeds/one; do
        plant
        printf 'before %s after\n' "$2" >>"$root/$file"
        expect "$file:.*($1)"
    done
    rules="$rules
$1"
}

rules=
plant
expect ''
finds private-key "-----BEGIN$(repeat 1 ' ')RSA PRIVATE KEY-----"
finds aws-key "AK$(repeat 1 IA)$(repeat 16 7)"
finds github-token "gh$(repeat 1 p_)$(repeat 36 a)"
finds npm-token "np$(repeat 1 m_)$(repeat 36 a)"
finds slack-token "xo$(repeat 1 xb-)$(repeat 12 1)"
finds web-token "ey$(repeat 1 J)$(repeat 10 a).ey$(repeat 1 J)$(repeat 10 b).$(repeat 20 c)"
finds url-password "https://admin:$(repeat 2 s3)@example.com/"
finds base64-64 "\"$(repeat 86 B)==\""
finds base64-32 "\"$(repeat 43 C)=\""
finds hex-32 "$(repeat 64 d)"

# Every rule of the check is tried here.
wanted=$(sed -n 's/^look \([a-z0-9-]*\) .*/\1/p' "$check")
for rule in $wanted; do
    echo "$rules" | grep -qx "$rule" || {
        echo "check-secrets-test.sh: the rule $rule is not tested" >&2
        failures=$((failures + 1))
    }
done

# The list of what may stand there.
plant
echo "file src/main.c hex-32 a fixture" >>"$root/tools/secrets.txt"
expect 'secrets.txt:2: nothing needs this entry'
echo "$(repeat 64 e)" >>"$root/src/main.c"
expect ''
echo "$(repeat 86 F)==" >>"$root/src/main.c" # only what its rule finds
expect '(base64-64)'
plant
echo "text $(repeat 43 g)=" >>"$root/tools/secrets.txt"
expect 'without a reason'

exit $((failures > 0))
