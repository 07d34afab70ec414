#!/bin/sh
# check-secrets.sh [ROOT] - fails if a file of ROOT holds something that looks like a secret: a private key, a
# token, a key in base64 or hexadecimal. Every finding is one line, with the name of the rule and the first
# characters of what was found.
#
# ROOT/tools/secrets.txt lists what may stand there, with the reason:
#
#   text TEXT REASON        these very characters, wherever they are
#   file PATH RULE REASON   whatever this rule finds in this file
#
# An entry that nothing needs any more is an error too.
set -eu

cd "${1:-$(dirname "$0")/..}"
allowed=tools/secrets.txt
[ -r $allowed ] || {
    echo "check-secrets.sh: there is no $allowed in $(pwd)" >&2
    exit 2
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Without git (a release archive) all files are searched that no build makes.
if [ "$(git rev-parse --show-toplevel 2>/dev/null)" = "$(pwd -P)" ]; then
    git ls-files --cached --others --exclude-standard >"$work/files"
else
    find . \( -name .git -o -path ./build -o -path ./data -o -name node_modules \) -prune -o \
        -type f -print | sed 's|^\./||' >"$work/files"
fi
grep -vxF $allowed "$work/files" >"$work/searched" || true

# look RULE PATTERN: writes "file:line:RULE:text". In seeds of fuzz targets too, which are arbitrary bytes.
look() {
    tr '\n' '\0' <"$work/searched" | xargs -0 grep -aHonsE -e "$2" |
        sed "s|^\([^:]*:[0-9]*\):|\1:$1:|" >>"$work/found" || true
}

: >"$work/found"
look private-key '-----BEGIN [A-Z ]*PRIVATE KEY'
look aws-key '\b(AKIA|ASIA)[0-9A-Z]{16}\b'
look github-token '\b(gh[pousr]_[A-Za-z0-9]{36}|github_pat_[A-Za-z0-9_]{40})'
look npm-token '\bnpm_[A-Za-z0-9]{36}\b'
look slack-token '\bxox[abprs]-[A-Za-z0-9-]{10}'
look web-token '\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{2,}\.[A-Za-z0-9_-]{16,}'
look url-password '\b[a-z][a-z0-9+]*://[A-Za-z0-9_.-]+:[^]@/ "$<{}*`'"'"'[]{3,}@[A-Za-z0-9]'
# 64 bytes, as account keys have, and 32 bytes, as signatures and other keys have.
look base64-64 '(^|[^A-Za-z0-9+/=_-])[A-Za-z0-9+/]{86}=='
look base64-32 '(^|[^A-Za-z0-9+/=_-])[A-Za-z0-9+/]{43}='
look hex-32 '\b[0-9a-f]{64}\b'

awk -v list=$allowed '
    FILENAME == list {
        if ($1 == "text" && NF >= 3) { line[$2] = FNR; text[$2] = 1 }
        else if ($1 == "file" && NF >= 4) { line[$2 ":" $3] = FNR; file[$2 ":" $3] = 1 }
        else if (NF > 0 && $1 !~ /^#/) { print list ":" FNR ": neither text nor file, or without a reason"; bad = 1 }
        next
    }
    {
        split($0, part, ":")
        found = substr($0, length(part[1] part[2] part[3]) + 4)
        known = part[1] ":" part[3]
        if (known in file) { used[known] = 1; next }
        for (one in text)
            if (index(found, one) > 0) { used[one] = 1; next }
        printf "%s:%s: looks like a secret (%s): %s...\n", part[1], part[2], part[3], substr(found, 1, 12)
        bad = 1
    }
    END {
        for (one in line)
            if (!(one in used)) { print list ":" line[one] ": nothing needs this entry"; bad = 1 }
        exit bad
    }' $allowed "$work/found"
