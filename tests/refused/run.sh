#!/usr/bin/env bash
# run.sh INCLUDE_DIR C_COMPILER [CXX_COMPILER] - the files in this folder contain cases that must not compile, numbered
# from 1; number 0 is none of them. Prints cases that were wrongly accepted or rejected, and exits with 1. 32-bit code
# and C libraries other than glibc are rejected with a message.
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

# told WHAT COMMAND...: the command fails and says what the library needs.
told() {
    local what=$1
    shift
    if "$@" >"$work/said" 2>&1 || ! grep -q 'libccc needs 64-bit Linux with glibc' "$work/said"; then
        echo "$what: not refused with a sentence:" && cat "$work/said"
        bad=1
    fi
}

check_system() { # COMPILER
    if [[ $("$1" -dumpmachine) == x86_64-* ]]; then
        told "32-bit code" "$1" -m32 -fsyntax-only -I"$include" -x c - <<<'#include <ccc/ccc.h>'
    fi
    mkdir "$work/include"
    : >"$work/include/features.h" # of a C library that is not glibc
    told "another C library" "$1" -fsyntax-only -I"$work/include" -I"$include/../src" -x c - <<<'#include "base/attr.h"'
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
check_system "$2"
check "$2" -x c -std=c11
[[ -z ${3:-} ]] || check "$3" -x c++ -std=c++17
exit "$bad"
