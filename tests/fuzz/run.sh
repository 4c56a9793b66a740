#!/usr/bin/env bash
# run.sh [SECONDS [DIRECTORY]] - builds the fuzzers with clang and runs them in parallel for SECONDS (default: 4); TAP.
#
#   ccpigz_inflate   the decoder of ccpigz against zlib's. Its seeds are some files compressed by gzip
#   ccpigz_unpack    all of ccpigz's decompression, in tiny parts, against zlib
#   ops              programs of operations on one worker against a model (README.md), from the seeds in ops/seeds.txt
#   ops_workers      the same on three workers, against invariants
#
# Findings and the corpus stay in the directory (default: build/fuzz), and the path of a finding is printed.
set -u
cd "$(dirname "$0")/../.." || exit 1
seconds=${1:-4} out=${2:-build/fuzz}
mkdir -p "$out/seeds" "$out/unpack-seeds" "$out/ops-seeds" "$out/ops-corpus" "$out/ops_workers-corpus"
export ASAN_OPTIONS=quarantine_size_mb=16
clang=$(compgen -c clang | grep -xE 'clang(-[0-9]+)?' | sort -V | tail -n 1)
if [[ -z $clang ]] || ! echo 'int LLVMFuzzerTestOneInput(void) { return 0; }' |
    "$clang" -fsanitize=fuzzer,address,undefined -x c -o "$out/probe" - >"$out/build.log" 2>&1; then
    echo "# no fuzzer can be built here: ${clang:-no clang}"
    for i in 1 2 3 4; do echo "ok $i fuzzer # SKIP clang with its fuzzer is missing"; done
    echo "1..4"
    exit 77
fi

# ---- building ----

build_inflate() {
    "$clang" -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined -D_GNU_SOURCE -Iapps/ccpigz \
        -o "$out/ccpigz_inflate" tests/fuzz/ccpigz_inflate.c apps/ccpigz/decode.c apps/ccpigz/table.c -lz >"$out/inflate.log" 2>&1
}

build_unpack() {
    make -s -j "$(nproc)" -f tests/fuzz/ops/Makefile CC="$clang" OUT="$out" "$out/ccpigz_unpack" >"$out/unpack.log" 2>&1
}

build_ops() {
    make -s -j "$(nproc)" -f tests/fuzz/ops/Makefile CC="$clang" OUT="$out" "$out/ops" >"$out/ops.log" 2>&1
}

# ---- seeds ----

seed() { # seed NAME: a gzip file on stdin, of which the fuzzer wants the stream
    { printf '\0\0'; tail -c +11 | head -c -8; } >"$out/seeds/$1"
}

seeds_of_inflate() {
    seq 1 3000 | gzip -n | seed text
    head -c 3000 /dev/urandom | gzip -n | seed stored
    head -c 100000 /dev/zero | gzip -n | seed zeros
    printf 'hello, hello, hello' | gzip -n | seed fixed
    for level in 1 4 9; do head -c 20000 tools/test.sh | gzip -n -$level | seed "level$level"; done
}

seeds_of_unpack() {
    local mode name
    for mode in 000 002 006 014 020 036; do # octal: files
        for name in text zeros; do { printf "\\$mode"; if [[ $name == text ]]; then seq 1 9000; else head -c 50000 /dev/zero; fi | gzip -n; } >"$out/unpack-seeds/$name$mode"; done
        { printf "\\$mode"; seq 1 500 | gzip -n; head -c 9000 /dev/urandom | gzip -n; } >"$out/unpack-seeds/members$mode"
    done
    for mode in 001 003 007 017 021 027; do # recipes
        { printf "\\$mode"; head -c 40 tools/test.sh; } >"$out/unpack-seeds/recipe$mode"
        { printf "\\$mode"; printf '\101\177\142\377\143\176\341\175\046\177\107\376'; } >"$out/unpack-seeds/long$mode"
    done
}

seeds_of_ops() {
    local line number=0
    while read -r line; do
        # shellcheck disable=SC2059 # the line is the format
        printf "$line" >"$out/ops-seeds/$((number += 1))"
    done < <(sed -E '/^#/d; s/../\\x&/g' tests/fuzz/ops/seeds.txt)
}

# ---- running ----

run() { # run NAME PROGRAM ARGUMENTS...: in the background; its status in a file
    local name=$1
    shift
    {
        "$@" -max_total_time="$seconds" -artifact_prefix="$out/$name-" -print_final_stats=1 >"$out/$name.run" 2>&1 </dev/null
        echo $? >"$out/$name.status"
    } &
}

status=0 number=0
report() { # report NAME
    local name=$1
    number=$((number + 1))
    if [[ $(<"$out/$name.status") == 0 ]]; then
        grep 'number_of_executed_units' "$out/$name.run" | sed "s/^/# $name: /"
        echo "ok $number $name"
    else
        tail -n 60 "$out/$name.run" | sed 's/^/# /'
        echo "not ok $number $name"
        status=1
    fi
}

rm -f "$out"/*.status
seeds_of_ops
if build_ops; then
    run ops env OPS_WORKERS=1 "$out/ops" -max_len=600 -timeout=60 "$out/ops-corpus" "$out/ops-seeds"
    run ops_workers env OPS_WORKERS=3 "$out/ops" -max_len=600 -timeout=60 "$out/ops_workers-corpus" "$out/ops-seeds"
else
    cp "$out/ops.log" "$out/ops.run"
    cp "$out/ops.log" "$out/ops_workers.run"
    echo 1 | tee "$out/ops.status" >"$out/ops_workers.status"
fi
skip_inflate=''
if build_inflate; then
    seeds_of_inflate
    run ccpigz_inflate "$out/ccpigz_inflate" -max_len=65536 "$out/seeds"
    seeds_of_unpack
    if build_unpack; then
        run ccpigz_unpack "$out/ccpigz_unpack" -max_len=65536 -timeout=60 "$out/unpack-seeds"
    else
        cp "$out/unpack.log" "$out/ccpigz_unpack.run"
        echo 1 >"$out/ccpigz_unpack.status"
    fi
else
    skip_inflate='# SKIP zlib is missing'
fi
wait
report ops
report ops_workers
if [[ -n $skip_inflate ]]; then
    echo "ok 3 ccpigz_inflate $skip_inflate"
    echo "ok 4 ccpigz_unpack $skip_inflate"
else
    report ccpigz_inflate
    report ccpigz_unpack
fi
echo "1..4"
exit $status
