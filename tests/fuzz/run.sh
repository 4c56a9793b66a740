#!/usr/bin/env bash
# run.sh [SECONDS [DIRECTORY]] - builds the fuzzers with clang and runs each for so long (default: 5); TAP.
#
# The seeds are what gzip and ccpigz make of some files, so that the fuzzer starts with streams of every kind. A finding
# stays in the directory (default: build/fuzz), and its path is printed.
set -u
cd "$(dirname "$0")/../.." || exit 1
seconds=${1:-5} out=${2:-build/fuzz}
mkdir -p "$out/seeds"
clang=$(compgen -c clang | grep -xE 'clang(-[0-9]+)?' | sort -V | tail -n 1)
if [[ -z $clang ]] || ! "$clang" -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined -D_GNU_SOURCE -Iapps/ccpigz \
    -o "$out/ccpigz_inflate" tests/fuzz/ccpigz_inflate.c apps/ccpigz/decode.c apps/ccpigz/table.c -lz >"$out/build.log" 2>&1; then
    echo "# no fuzzer could be built here: ${clang:-no clang}"
    echo "ok 1 ccpigz_inflate # SKIP clang with its fuzzer, or zlib, is missing"
    echo "1..1"
    exit 77
fi

seed() { # seed NAME: a gzip file on stdin, of which the fuzzer wants the stream
    { printf '\0\0'; tail -c +11 | head -c -8; } >"$out/seeds/$1"
}
seq 1 3000 | gzip -n | seed text
head -c 3000 /dev/urandom | gzip -n | seed stored
head -c 100000 /dev/zero | gzip -n | seed zeros
printf 'hello, hello, hello' | gzip -n | seed fixed
for level in 1 4 9; do head -c 20000 tools/test.sh | gzip -n -$level | seed "level$level"; done

if "$out/ccpigz_inflate" -max_total_time="$seconds" -max_len=65536 -artifact_prefix="$out/" -print_final_stats=1 "$out/seeds" \
    >"$out/ccpigz_inflate.log" 2>&1; then
    grep 'number_of_executed_units' "$out/ccpigz_inflate.log" | sed 's/^/# /'
    echo "ok 1 ccpigz_inflate"
    status=0
else
    tail -n 40 "$out/ccpigz_inflate.log" | sed 's/^/# /'
    echo "not ok 1 ccpigz_inflate"
    status=1
fi
echo "1..1"
exit $status
