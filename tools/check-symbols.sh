#!/usr/bin/env bash
# check-symbols.sh [LIBCCC.A LIBCCC.SO] - the list of public functions, src/libccc.map, agrees with the headers (each is declared
# there, and nothing else is), with the man pages (each is mentioned) and with the libraries: the shared one exports just
# these, with the versions of the list; in the static one every global name begins with cc_, and those that do not begin with
# cc__ are these, but for the compiler's own references to a personality routine (DW.ref.). The same for libccc_tls, without its libraries. Without arguments only the texts are compared. Prints what differs and exits with 1.
set -u
export LC_ALL=C
static=${1:+$(realpath -e "$1")} || exit 1
shared=${2:+$(realpath -e "$2")} || exit 1
cd "$(dirname "$0")/.." || exit 1
status=0

# differ TEXT: lines of standard input are symbols that should not be there.
differ() {
    local lines
    lines=$(sed 's/^/  /')
    [[ -n $lines ]] || return 0
    printf '%s:\n%s\n' "$1" "$lines"
    status=1
}

# name@@version for each line of the list.
versions='/^[A-Z].* \{$/ { node = $1 } /^ +cc_[a-z0-9_]+;$/ { sub(/;/, "", $1); print $1 "@@" node }'
listed=$(awk "$versions" src/libccc.map | sort)
names=$(cut -d @ -f 1 <<<"$listed")

# Declarations are those with CC_API, or, where that is not known yet, with the attribute that it stands for.
declared_in() {
    local header
    for header; do
        sed -e 's/^#.*//' "$header" | awk 'BEGIN { RS = ";" }
            /CC_API|visibility\("default"\)/ { sub(/.*(CC_API|visibility\("default"\))/, ""); if (match($0, /cc_[a-z0-9_]+\(/)) print substr($0, RSTART, RLENGTH - 1) }'
    done | sort -u
}
mapfile -t headers < <(ls include/ccc/*.h | grep -v cc_tls.h)
declared=$(declared_in "${headers[@]}")
differ "These functions are in src/libccc.map and not declared in a public header" < <(comm -23 <(echo "$names") <(echo "$declared"))
differ "These public functions are not in src/libccc.map" < <(comm -13 <(echo "$names") <(echo "$declared"))
differ "No man page mentions" < <(comm -23 <(echo "$names") <(grep -ohE '\bcc_[a-z0-9_]+' docs/man/*.[37] | sort -u))
tls=$(awk "$versions" tls/libccc_tls.map | cut -d @ -f 1 | sort)
differ "tls/libccc_tls.map and cc_tls.h do not agree" < <(comm -3 <(echo "$tls") <(declared_in include/ccc/cc_tls.h))
differ "No man page mentions" < <(comm -23 <(echo "$tls") <(grep -ohE '\bcc_tls_[a-z0-9_]+' docs/man/*.[37] | sort -u))

if [[ -n $static && -n $shared ]]; then
    exported=$(nm --dynamic --defined-only --with-symbol-versions "$shared" | awk '$2 != "A" { print $3 }' | sort)
    differ "The shared library does not export" < <(comm -23 <(echo "$listed") <(echo "$exported"))
    differ "The shared library exports what is not in src/libccc.map" < <(comm -13 <(echo "$listed") <(echo "$exported"))
    global=$(nm --extern-only --defined-only "$static" 2>/dev/null | awk 'NF == 3 { print $3 }' | sort -u)
    differ "Global names of the static library that do not begin with cc_" < <(grep -vE '^(cc_|DW\.ref\.)' <<<"$global")
    differ "Global names of the static library that are neither in src/libccc.map nor begin with cc__" \
        < <(comm -13 <(echo "$names") <(grep '^cc_[^_]' <<<"$global"))
    differ "Functions that the static library does not have" < <(comm -23 <(echo "$names") <(echo "$global"))
fi
exit $status
