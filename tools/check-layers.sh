#!/bin/sh
# check-layers.sh [ROOT] - fails when a file under ROOT/src includes what src/layers.txt does not
# allow. Every finding is one line, as a compiler would print it.
set -eu

cd "${1:-$(dirname "$0")/..}"
[ -r src/layers.txt ] || {
    echo "check-layers.sh: there is no src/layers.txt in $(pwd)" >&2
    exit 2
}

find src -type f \( -name '*.[ch]' -o -name '*.cc' -o -name '*.def' \) | sort |
    # The list comes first on awk's command line, and its rules are read before any source file.
    xargs awk '
    function fail(text) {
        print text
        failures++
    }

    # The part of "http/http.h" before the first slash; the whole when there is none.
    function folder_of(path) {
        return substr(path, 1, match(path, /\//) ? RSTART - 1 : length(path))
    }

    # The innermost folder of the path that the list names: a room, or the layer itself.
    function room_of(path) {
        while (sub(/\/[^\/]*$/, "", path))
            if (path in is_layer)
                return path
        return ""
    }

    function read_rule(    name, i) {
        name = $2
        if (!sub(/:$/, "", name)) {
            fail(FILENAME ":" FNR ": expected \"" $1 " NAME: ...\"")
        } else if ($1 == "layer") {
            if (name in is_layer)
                fail(FILENAME ":" FNR ": " name " is listed twice")
            is_layer[name] = 1
            for (i = 3; i <= NF; i++) {
                if (!($i in is_layer || ($i ~ /\.h$/ && room_of($i) != "")) || $i == name)
                    fail(FILENAME ":" FNR ": " name " points up, to " $i)
                may_include[name, $i] = 1
            }
        } else if ($1 == "library") {
            is_library[name] = 1
            for (i = 3; i <= NF; i++)
                may_use[name, $i] = 1
        } else {
            fail(FILENAME ":" FNR ": expected \"layer\" or \"library\", found \"" $1 "\"")
        }
    }

    # An arrow to a layer leads to all of its rooms, but not from one of its own rooms to the others.
    function check_own(header, where,    target, top, is_within) {
        target = room_of(header)
        top = folder_of(header)
        is_within = top == folder_of(layer)
        if (target == "")
            fail(where "\"" header "\" does not begin with a folder of src/layers.txt")
        else if (target == layer)
            return
        else if (!((layer, target) in may_include) && !((layer, header) in may_include) &&
                 (is_within || !((layer, top) in may_include)))
            fail(where layer " may not include " header)
        else if (header ~ /_int\.h$/ && !is_within)
            fail(where header " is for " top " only")
    }

    # Library rules name folders at any depth, so the file is tested with each of its parents.
    function check_library(header, where,    prefix, best, parent) {
        for (prefix in is_library)
            if (index(header, prefix) == 1 && length(prefix) > length(best))
                best = prefix
        if (best == "")
            return
        parent = FILENAME
        while (sub(/\/[^\/]*$/, "", parent))
            if ((best, substr(parent, 5)) in may_use)
                return
        fail(where "<" header "> does not belong in this folder")
    }

    FNR == 1 && FILENAME != ARGV[1] {
        path = substr(FILENAME, 5)
        layer = room_of(path)
        if (layer == "")
            fail(FILENAME ":1: is in no folder of src/layers.txt")
    }
    FILENAME == ARGV[1] {
        if ($1 !~ /^#/ && NF > 0)
            read_rule()
        next
    }
    /^[ \t]*#[ \t]*include/ {
        line = $0
        where = FILENAME ":" FNR ": "
        if (match(line, /"[^"]*"/))
            check_own(substr(line, RSTART + 1, RLENGTH - 2), where)
        else if (match(line, /<[^>]*>/))
            check_library(substr(line, RSTART + 1, RLENGTH - 2), where)
        else
            fail(where "expected a name in quotes or angle brackets")
    }
    END { exit failures > 0 }
    ' src/layers.txt
