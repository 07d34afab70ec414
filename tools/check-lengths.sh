#!/bin/sh
# check-lengths.sh [ROOT] - fails when a file of ROOT has more than 800 lines, or a C function more than
# 80, from the first line of its signature to its closing brace.
#
# ROOT/tools/lengths.txt lists the exceptions with the lines that they have. The list only shrinks: an
# entry whose lines are not those of the list fails, and so does one that is no longer needed. A file
# is named by the end of its path, so that an entry remains true when a file moves to another folder.
set -eu

cd "${1:-$(dirname "$0")/..}"
list=tools/lengths.txt
[ -r $list ] || {
    echo "check-lengths.sh: there is no $list in $(pwd)" >&2
    exit 2
}

find src bench test tools -name node_modules -prune -o -type f \
    \( -name '*.[ch]' -o -name '*.cc' -o -name '*.def' -o -name '*.mjs' -o -name '*.sh' \) -print | sort |
    # One awk for all: the list comes first on its command line and is read before any source file.
    xargs -x -n 100000 -s 1000000 awk -v file_max=800 -v function_max=80 -v list=$list '
    function fail(text) {
        print text
        failures++
    }

    # "file PATH LINES" or "function PATH:NAME LINES"
    function read_entry() {
        if (NF != 3 || ($1 != "file" && $1 != "function") || $3 !~ /^[0-9]+$/)
            fail(FILENAME ":" FNR ": expected \"file PATH LINES\" or \"function PATH:NAME LINES\"")
        else if (($1, $2) in listed)
            fail(FILENAME ":" FNR ": " $2 " is listed twice")
        else {
            listed[$1, $2] = $3
            place[$1, $2] = FILENAME ":" FNR
        }
    }

    # The entry for this path, or this path and name: the longest end of it that is listed.
    function entry_of(kind, name) {
        while (!((kind, name) in listed) && sub(/^[^\/:]*\//, "", name))
            continue
        return (kind, name) in listed ? name : ""
    }

    function measure(kind, name, where, lines, max,    entry) {
        entry = entry_of(kind, name)
        if (entry == "" && lines > max)
            fail(where ": this " kind " has " lines " lines, and " max " are the limit")
        if (entry == "")
            return
        if (lines <= max)
            fail(place[kind, entry] ": " entry " has " lines " lines now and needs no exception")
        else if (lines > listed[kind, entry])
            fail(where ": this " kind " has grown from " listed[kind, entry] " to " lines " lines")
        else if (lines < listed[kind, entry])
            fail(place[kind, entry] ": " entry " has " lines " lines now; lower the number in the list")
        is_used[kind, entry] = 1
    }

    function end_file() {
        if (path != "")
            measure("file", path, path ":1", line_count, file_max)
    }

    # The last word before the first parenthesis of a signature.
    function name_of(signature) {
        sub(/\(.*/, "", signature)
        sub(/[ \t]*$/, "", signature)
        sub(/^.*[^A-Za-z0-9_]/, "", signature)
        return signature
    }

    FILENAME == list {
        if ($1 !~ /^#/ && NF > 0)
            read_entry()
        next
    }
    FNR == 1 {
        end_file()
        path = FILENAME
        signature = ""
        split("", begin)
    }
    { line_count = FNR }
    path !~ /\.(c|h|cc)$/ { next }

    # clang-format puts the brace of a function, and of nothing else in C, on a line of its own.
    /^ *\{$/ {
        indent = match($0, /\{/)
        if (signature ~ /\(/ && signature !~ /^ *(class|struct|union|namespace) /) {
            begin[indent] = signature_line
            name[indent] = name_of(signature)
        }
        signature = ""
        next
    }
    /^ *\};?$/ {
        indent = match($0, /\}/)
        if (indent in begin) {
            measure("function", path ":" name[indent], path ":" begin[indent], FNR - begin[indent] + 1, function_max)
            delete begin[indent]
        }
        signature = ""
        next
    }
    # Whatever looks like the begin of a signature may be one, until something else ends it.
    /^ *$/ || /[;{}]$/ || /^ *#/ || /\*\/$/ {
        signature = ""
        next
    }
    signature != "" || /^ *[A-Za-z_][^"]*\(/ {
        if (signature == "")
            signature_line = FNR
        signature = signature $0
    }

    END {
        end_file()
        for (key in listed) {
            if (!(key in is_used)) {
                split(key, part, SUBSEP)
                fail(place[key] ": there is no " part[1] " " part[2])
            }
        }
        exit failures > 0
    }
    ' $list
