#!/bin/sh
# check-hardening.sh PROGRAM [BUILD] - fails if a program was built without what makes a bug harder to use:
# CMakeLists.txt says what and why. What leaves no trace in a program is looked for in the commands that
# compiled it, in the configured folder BUILD.
set -eu

program=${1:?usage: check-hardening.sh PROGRAM [BUILD]}
build=${2:-}
failures=0

# want REASON TEXT PATTERN
want() {
    echo "$2" | grep -qE "$3" && return 0
    echo "$program: $1"
    failures=$((failures + 1))
}

head=$(readelf -hW "$program")
segments=$(readelf -lW "$program")
dynamic=$(readelf -dW "$program")
symbols=$(readelf -W --dyn-syms "$program")

want 'its addresses are known: no -pie' "$head" 'Type: +DYN'
want 'is a library, or no -pie' "$dynamic" '\(FLAGS_1\).*PIE'
want 'its stack can be executed: no -z noexecstack' "$segments" 'GNU_STACK .* RW +0x'
want 'has no part that becomes read-only: no -z relro' "$segments" 'GNU_RELRO'
want 'binds functions when they are first called: no -z now' "$dynamic" 'BIND_NOW|FLAGS_1.*NOW'
want 'does not check its stack: no -fstack-protector-strong' "$symbols" ' __stack_chk_fail'
want 'does not check the sizes of copies: no _FORTIFY_SOURCE' "$symbols" ' __[a-z]+_chk(@|$)'
case $head in
*X86-64*)
    want 'jumps anywhere: no -fcf-protection' "$(objdump -d --disassemble=main "$program")" 'endbr64'
    ;;
esac
# Two segments that can be written and executed at once would be as bad.
if echo "$segments" | grep -E '^ +LOAD' | grep -q ' RWE '; then
    echo "$program: has memory that can be both written and executed"
    failures=$((failures + 1))
fi

if [ -n "$build" ]; then
    missing=$(grep '"command":' "$build/compile_commands.json" | grep -E ' -c [^ ]*/src/[^ ]*\.(c|cc)"' |
        grep -vcE -e '-fstack-clash-protection' || true)
    [ "$missing" = 0 ] || {
        echo "$build: $missing files are compiled without -fstack-clash-protection"
        failures=$((failures + 1))
    }
fi
exit $((failures > 0))
