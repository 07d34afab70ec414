#!/bin/sh
# check-names.sh [ROOT] - fails when a document or a comment of ROOT names a file, function, type or
# constant that does not exist. Every finding is one line, as a compiler would print it.
#
# The documents are ARCHITECTURE.md, CONTRIBUTING.md, those in docs, and every README.md but the one of
# ROOT, which is about the program and not about its code. These are looked for:
#
#   file.c, folder/file.h   in code font or not: a file whose path ends so. In a README of src a name without
#                           a folder must be in the folder of that README or below.
#   some_name, SOME_NAME,   in code font: a word of the code, outside of comments. `some_name(x)` is looked
#   SomeName, name()        for without its parentheses, both words of `Struct.member`, and `slice_test` may
#                           also be the file slice_test.c.
#
# In comments of C and C++, files and words with underscores are looked for; a drawing of states may leave
# out the first word of a constant (CATCHING_UP for MOVE_CATCHING_UP). Nothing else is: options,
# paths of URLs, SQL, JSON, blocks between lines of ```. Words that belong to others, such as functions
# of the kernel, are in ROOT/tools/names.txt.
set -eu

cd "${1:-$(dirname "$0")/..}"
others=tools/names.txt
[ -r $others ] || {
    echo "check-names.sh: there is no $others in $(pwd)" >&2
    exit 2
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

find . \( -name .git -o -name node_modules -o -path ./build -o -path ./data \) -prune -o -type f -print |
    sed 's|^\./||' | sort >"$work/files"

# Words of the code, and comments with their places. Text in quotes counts as code, since names of metrics
# and properties stand there. It may hold what looks like a comment ("/*"), so it is stepped over.
: >"$work/comments"
grep -E '\.([ch]|cc|def|mjs|js|ts|tsx|css|py|sh|json)$|(^|/)(CMakeLists\.txt|Makefile)$' "$work/files" |
    xargs -x -n 100000 -s 1000000 awk -v comments="$work/comments" '
    function note_comment(text) {
        print FILENAME ":" FNR ": " text >comments
    }

    # Takes the comments out of a line.
    function code_of(line,    code, token) {
        code = ""
        while (line != "") {
            if (in_comment && !match(line, /\*\//)) {
                note_comment(line)
                break
            } else if (in_comment) {
                note_comment(substr(line, 1, RSTART - 1))
                line = substr(line, RSTART + 2)
                in_comment = 0
            } else if (match(line, /"([^"\\]|\\.)*"|\047([^\047\\]|\\.)*\047|\/\*|\/\//)) {
                token = substr(line, RSTART, RLENGTH)
                code = code substr(line, 1, RSTART - 1)
                line = substr(line, RSTART + RLENGTH)
                if (token == "//") {
                    note_comment(line)
                    break
                }
                in_comment = token == "/*"
                if (!in_comment)
                    code = code token
            } else {
                code = code line
                break
            }
        }
        return code
    }

    FNR == 1 {
        in_comment = 0
        is_c = FILENAME ~ /\.([ch]|cc|def)$/
    }
    {
        text = is_c && (in_comment || /\/[*\/]/) ? code_of($0) : $0
        gsub(/[^A-Za-z0-9_]+/, " ", text)
        count = split(text, word, " ")
        for (i = 1; i <= count; i++)
            if (!(word[i] in seen)) {
                seen[word[i]] = 1
                print word[i]
            }
    }' >"$work/words"

grep -E '^(ARCHITECTURE|CONTRIBUTING)\.md$|^docs/.*\.md$|/README\.md$' "$work/files" |
    xargs -x -n 100000 -s 1000000 awk -v files="$work/files" -v words="$work/words" -v others=$others \
        -v comments="$work/comments" '
    function fail(text) {
        print where text
        failures++
    }

    # Notes every end of a path: "src/query/sql/parser.c", "query/sql/parser.c", ..., "parser.c".
    function note_file(path,    end, folder, stem) {
        end = path
        do {
            ends[end] = 1
        } while (sub(/^[^\/]*\//, "", end))
        folder = path
        while (sub(/\/[^\/]*$/, "", folder))
            within[folder, end] = 1
        stem = end
        sub(/\..*$/, "", stem)
        is_word[stem] = 1
    }

    function check_file(name, folder) {
        if (!(name in ends))
            fail("there is no file " name)
        else if (name !~ /\// && folder ~ /^src\// && !((folder, name) in within))
            fail("there is no file " name " in " folder "; name the folder if it is in another")
    }

    # Every word of a line that looks like a file. "_test.c" and "*.mjs" do not: they stand for many.
    function check_files(line, folder,    word, count, i) {
        gsub(/[^A-Za-z0-9_.\/*-]+/, " ", line)
        count = split(line, word, " ")
        for (i = 1; i <= count; i++) {
            sub(/[.]$/, "", word[i])
            sub(/^[.]\//, "", word[i])
            if (word[i] ~ /^[a-z][a-zA-Z0-9_\/-]*(\.test)?\.(c|h|cc|def|mjs|sh)$/)
                check_file(word[i], folder)
        }
    }

    function check_word(word) {
        if (!(word in is_word))
            fail("there is no " word " in the code")
    }

    function check_span(text) {
        sub(/^[a-z0-9_\/]+\.(c|h|cc): /, "", text) # api.c: on_request
        if (match(text, /^[A-Za-z_][A-Za-z0-9_]*\(/))
            check_word(substr(text, 1, RLENGTH - 1))
        else if (text ~ /^[A-Z][A-Za-z0-9]*\.[a-z][a-z0-9_]*$/) {
            check_word(substr(text, 1, index(text, ".") - 1))
            check_word(substr(text, index(text, ".") + 1))
        } else if (text ~ /^[A-Za-z][A-Za-z0-9]*(_[A-Za-z0-9]+)+$/ || text ~ /^[A-Z][a-z0-9]+([A-Z][a-z0-9]+)+$/)
            check_word(text)
    }

    FILENAME == files { note_file($0); next }
    FILENAME == words {
        is_word[$0] = 1
        if ($0 ~ /^[A-Z][A-Z0-9]*_/)
            is_member[substr($0, index($0, "_") + 1)] = 1
        next
    }
    FILENAME == others { if ($1 !~ /^#/ && NF > 0) is_word[$1] = 1; next }

    FILENAME == comments {
        match($0, /: /)
        where = substr($0, 1, RSTART + 1)
        text = substr($0, RSTART + 2)
        check_files(text, "")
        gsub(/[^A-Za-z0-9_]+/, " ", text)
        count = split(text, word, " ")
        for (i = 1; i <= count; i++)
            if (word[i] ~ /^([a-z][a-z0-9]*(_[a-z0-9]+)+|[A-Z][A-Z0-9]*(_[A-Z0-9]+)+)$/ &&
                !(word[i] in is_member))
                check_word(word[i])
        next
    }

    FNR == 1 {
        in_block = 0
        folder = FILENAME
        sub(/\/*[^\/]*$/, "", folder)
    }
    /^ *```/ { in_block = !in_block; next }
    in_block { next }
    {
        where = FILENAME ":" FNR ": "
        check_files($0, folder)
        rest = $0
        while (match(rest, /`[^`]+`/)) {
            span = substr(rest, RSTART + 1, RLENGTH - 2)
            rest = substr(rest, RSTART + RLENGTH)
            check_span(span)
        }
    }
    END { exit failures > 0 }
    ' "$work/files" "$work/words" $others "$work/comments"
