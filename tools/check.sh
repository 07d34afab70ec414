#!/bin/sh
# check.sh BUILD - what `make check` does: the look of the code, forbidden things, secrets, lengths of files and
# functions, names that documents use, texts of the explorer, static analysis.
# BUILD is a configured build folder, whose compile_commands.json says how each file is compiled.
# All checks run even if one fails, so that one run shows everything.
set -u

cd "$(dirname "$0")/.." || exit 2
build=${1:?usage: check.sh BUILD}
jobs=$(nproc)
failed=

# stage WORDS COMMAND...
stage() {
    echo "== Checking $1"
    begin=$(date +%s)
    name=$1
    shift
    "$@" || failed="$failed
  $name"
    seconds=$(($(date +%s) - begin))
    [ $seconds -lt 5 ] || echo "   took $seconds s"
}

sources() {
    find src bench -type f \( "$@" \) | sort
}

look() {
    sources -name '*.[ch]' -o -name '*.cc' | xargs -P "$jobs" -n 20 clang-format --dry-run -Werror
}

# Reads names of files. What clang-tidy says about warnings in system headers tells nothing. It is taken out
# for each file by itself, because the lines of two that run at the same time may be mixed.
tidy_each() {
    xargs -P "$jobs" -n 1 sh -c '
        found=$(clang-tidy --quiet -p "$@" 2>&1 | grep -v "warnings\{0,1\} generated\.$")
        [ -z "$found" ] || { printf "%s\n" "$found" && exit 1; }' tidy "$build" "$@"
}

# The analyzer takes most of the time, and learns nothing from the assertions of a test.
tidy() {
    files=$(sed -n 's/^ *"file": "\(.*\)",*$/\1/p' "$build/compile_commands.json" | sort -u)
    tests='(_test|_fuzz)\.c$'
    status=0
    echo "$files" | grep -vE "$tests" | tidy_each || status=1
    echo "$files" | grep -E "$tests" |
        tidy_each --checks='-clang-analyzer-*,-cert-*,-misc-redundant-expression' || status=1
    return $status
}

forbidden() {
    tools/check-forbidden-test.sh && tools/check-forbidden.sh
}

secrets() {
    tools/check-secrets-test.sh && tools/check-secrets.sh
}

lengths() {
    tools/check-lengths-test.sh && tools/check-lengths.sh
}

# A capital word and another word in quotes: a sentence, which belongs to texts.ts (rule E5 of the explorer).
sentences() {
    ! grep -rnE "[\"\`][A-Z][a-z]+ [a-z]+[^\"\`]*[\"\`]" explorer/src --include='*.ts*' --exclude=texts.ts
}

names() {
    tools/check-names-test.sh && tools/check-names.sh
}

stage "the look of the code (clang-format)" look
stage "for forbidden things" forbidden
stage "for secrets" secrets
stage "the lengths of files and functions" lengths
stage "names in documents and comments" names
stage "texts of the explorer outside texts.ts" sentences
stage "with static analysis (clang-tidy)" tidy

[ -z "$failed" ] || {
    echo "Not clean:$failed" >&2
    exit 1
}
echo "== All checks pass"
