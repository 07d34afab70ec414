#!/bin/sh
# check-hardening-test.sh - shows that check-hardening.sh takes a good program, and none in which something is
# missing.
set -eu

check=$(cd "$(dirname "$0")" && pwd)/check-hardening.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

cat >program.c <<'END'
#include <stdio.h>
#include <string.h>
int main(int argc, char **argv)
{
    char text[16];
    memcpy(text, argv[0], (size_t)argc);
    text[argc] = '\0';
    return printf("%s\n", text) < 0;
}
END

compile='-O2 -D_FORTIFY_SOURCE=2 -fPIE -fstack-protector-strong'
link='-pie -Wl,-z,relro,-z,now,-z,noexecstack'
# The option exists for x86-64 only.
cf=
if echo | cc -fcf-protection=full -xc -c -o /dev/null - 2>/dev/null; then
    cf=-fcf-protection=full
fi

build() {
    # shellcheck disable=SC2086 # these are lists of options
    cc -w $1 -c program.c -o program.o && cc $2 program.o -o program
}

# fails WITH COMPILE LINK: the check must say WITH.
fails() {
    build "$2" "$3"
    if "$check" program >out || ! grep -q -e "$1" out; then
        echo "check-hardening-test.sh: it does not find what is missing: $1" >&2
        cat out >&2
        exit 1
    fi
}

build "$compile $cf" "$link"
"$check" program >out || {
    echo "check-hardening-test.sh: a good program is refused:" >&2
    cat out >&2
    exit 1
}
fails 'no -pie' '-O2 -D_FORTIFY_SOURCE=2 -fno-pie -fstack-protector-strong' '-no-pie -Wl,-z,relro,-z,now'
fails 'noexecstack' "$compile" '-pie -Wl,-z,relro,-z,now,-z,execstack'
fails 'relro' "$compile" '-pie -Wl,-z,norelro,-z,now,-z,noexecstack'
fails 'no -z now' "$compile" '-pie -Wl,-z,relro,-z,lazy,-z,noexecstack'
fails 'fstack-protector' '-O2 -D_FORTIFY_SOURCE=2 -fPIE -fno-stack-protector' "$link"
fails 'FORTIFY' '-O2 -U_FORTIFY_SOURCE -fPIE -fstack-protector-strong' "$link"
[ -z "$cf" ] || fails 'fcf-protection' "$compile -fcf-protection=none" "$link"

build "$compile $cf" "$link"
mkdir folder
printf '%s\n' '"command": "cc -O2 -o a.o -c /x/src/a.c",' >folder/compile_commands.json
if "$check" program folder >out || ! grep -q stack-clash out; then
    echo "check-hardening-test.sh: it does not find files without -fstack-clash-protection" >&2
    exit 1
fi
