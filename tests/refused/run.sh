#!/usr/bin/env bash
# run.sh INCLUDE_DIR C_COMPILER [CXX_COMPILER] - the files in this folder hold what must not compile, numbered from 1;
# and with the number 0, nothing of it. Prints what was accepted, or refused, wrongly, and exits with 1.
set -u
here=$(cd "$(dirname "$0")" && pwd)
include=$1
bad=0

# accepted COMPILER NUMBER FILE OPTION...
accepted() {
    local compiler=$1 number=$2 file=$3
    shift 3
    "$compiler" "$@" -fsyntax-only -w -I"$include" -DREFUSED="$number" "$file" 2>/dev/null
}

check() { # COMPILER OPTION...
    local compiler=$1 file last number
    shift
    for file in "$here"/*.h; do
        last=$(grep -oE 'REFUSED == [0-9]+' "$file" | awk '{ print $3 }' | sort -n | tail -n 1)
        if ! accepted "$compiler" 0 "$file" "$@"; then
            echo "$compiler $*: $(basename "$file") does not compile at all"
            bad=1
        fi
        for ((number = 1; number <= last; number++)); do
            if accepted "$compiler" "$number" "$file" "$@"; then
                echo "$compiler $*: accepts number $number of $(basename "$file")"
                bad=1
            fi
        done
    done
}

check "$2" -x c -std=c11
[[ -z ${3:-} ]] || check "$3" -x c++ -std=c++17
exit "$bad"
