#!/bin/sh
# check-forbidden.sh [ROOT] - fails if a file of ROOT contains something forbidden; the reasons are below.
set -eu

cd "${1:-$(dirname "$0")/..}"
failures=0

# Without git (a release archive) all files are searched that no build makes. Seeds of fuzz targets are
# arbitrary bytes, and this file contains the patterns themselves.
if [ "$(git rev-parse --show-toplevel 2>/dev/null)" = "$(pwd -P)" ]; then
    everything=$(git ls-files --cached --others --exclude-standard)
else
    everything=$(find . \( -name .git -o -path ./build -o -path ./data -o -name node_modules \) -prune -o \
        -type f -print | sed 's|^\./||')
fi
everything=$(echo "$everything" | grep -v -e '_seeds/' -e '^tools/check-forbidden' | sort)
code=$(echo "$everything" | grep -E '^(src|bench)/.*\.(c|h|cc|def)$' || true)
# Tests may use what is not safe with hostile input.
product=$(echo "$code" | grep -v -E '(_test\.c|_fuzz\.c|/testing_int\.h)$' || true)

scripts=$(echo "$everything" | grep -E '\.m?js$' || true)
newer='[.](toSorted|toReversed|toSpliced|isWellFormed|toWellFormed|isSubsetOf|isSupersetOf|isDisjointFrom)[(]'
newer=$newer'|[.]with[(]-?[0-9a-z]+,|\b(Object|Map)[.]groupBy\b|\bPromise[.](withResolvers|try)\b|\bArray[.]fromAsync\b'
newer=$newer'|\bimport[.]meta[.](dirname|filename)\b|\bAbortSignal[.]any\b|\bnew (File|WebSocket|CustomEvent)[(]'
newer=$newer'|\bcrc32\b.*"node:zlib"|\b(styleText|globSync|loadEnvFile)[(]| with \{ *type:'

# forbid REASON FILES PATTERN
forbid() {
    # -s: a file that git knows may have been removed.
    found=$(echo "$2" | xargs grep -HInsE "$3") || true
    [ -n "$found" ] || return 0
    printf '%s\n' "$found" | sed "s|\$|    <- $1|"
    failures=$((failures + 1))
}

# A pattern for calls of these functions, not of others that end like them.
calls() {
    echo "(^|[^A-Za-z0-9_>.])($1)[(]"
}

forbid 'has no bound' "$product" \
    "$(calls 'strcpy|strcat|stpcpy|wcscpy|wcscat|sprintf|vsprintf|gets|getwd|alloca|v?[fs]?scanf')"
forbid 'may leave the text without an end' "$product" "$(calls 'strncpy|strncat|stpncpy')"
forbid 'hides errors; use slice_to_i64' "$product" "$(calls 'atoi|atol|atoll|atof')"
forbid 'reaches a partition past its handle (catalog/partition_handle.h)' \
    "$(echo "$product" | grep -E '^src/(api|query)/' | grep -v testing)" \
    "$(calls 'handle_local|partition_(open|get|locate|submit|purge|drop|lsn|usage|maintain|(scan|view)_open)')"
forbid 'has hidden state' "$product" \
    "$(calls 'strtok|rand|srand|random|[dlm]rand48|localtime|gmtime|ctime|asctime|gethostbyname|inet_ntoa|setenv|putenv')"
forbid 'gives its text to a shell' "$product" "$(calls 'system|popen|wordexp')"
forbid 'starts whatever PATH has; name the program' "$product" "$(calls 'execl?vpe?|execlpe?|execvpe?|posix_spawnp')"
forbid 'can be replaced by others; use mkdtemp' "$code" "$(calls 'tmpnam|tempnam|mktemp')"
forbid 'is off in release; use ASSERT' "$product" "$(calls 'assert')"
forbid 'a thread is joined by the code that starts it' "$product" "$(calls 'pthread_detach')"
forbid 'may return NULL; use base/mem.h or an arena' "$(echo "$product" | grep -v '^src/base/')" \
    "$(calls 'malloc|calloc|realloc|strdup|strndup')"
forbid 'clean-up is by AUTO' "$code" '^[[:space:]]*goto '
forbid 'names that end in _t belong to the C library' "$code" '^(typedef .*|\}) [A-Za-z_0-9]+_t;'
forbid 'is finished or left out' "$everything" '\b(TODO|FIXME|XXX|HACK)\b'
forbid 'ends with a space' "$(echo "$everything" | grep -v '^LICENSE$')" '[[:blank:]]$'
forbid 'belongs to one machine' "$everything" '(^|[^A-Za-z0-9_.])/(home|root|work|Users)/[A-Za-z]'
forbid 'is not in Node 18, which Debian 12 has' "$scripts" "$newer"
forbid 'is none of the packages of tools/packages.txt' "$scripts" \
    '(spawn|exec|execFile)(Sync)?[(]["'\''`](curl|wget|jq|nc|ncat|socat|python3?|perl|expect)\b'
forbid 'names a registry' test/package-lock.json '"resolved"|https?://'

exit $((failures > 0))
