#!/usr/bin/env bash
# ccpigz_tiny.sh PROGRAM [WORD] - decompresses with parts, overlaps, pieces and chunks that are a few kilobytes (apps/CMakeLists.txt),
# with one to eight tasks, so that hand-overs are frequent. TAP. With WORD only the cases whose name contains it.
#
# Files of gzip and pigz must be restored exactly; truncated or damaged ones must be rejected, without a crash.
# TEST_SLOWDOWN above 4 takes fewer files, for sanitizers.
set -u
. "$(dirname "$0")/cases.sh"
program=$(realpath "$1")
word=${2:-}
files=24
((${TEST_SLOWDOWN:-1} > 4)) && files=5
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
export LC_ALL=C
export TSAN_OPTIONS=${TSAN_OPTIONS:+$TSAN_OPTIONS:}atexit_sleep_ms=0

# make_file N: something of every kind; each is different, and so is where its blocks begin.
make_file() {
    local n=$1
    {
        seq "$n" $((n + 9000 + n * 37)) | awk -v k="$n" '{ print $1 * (7919 + k) % 1000003, $1 % (3 + k) }'
        ((n % 3 == 0)) && head -c $((3000 * n + 17)) /dev/urandom
        ((n % 4 == 0)) && head -c $((5000 * n + 3)) /dev/zero
        awk -v k="$n" 'BEGIN { srand(k); for (i = 0; i < 6000; i++) printf "%c", 97 + int(rand() * (2 + k)) }'
    } >plain
}

# check FILE EXPECTED: from a file and from a pipe, with one worker to eight.
check() {
    local p
    for p in 1 2 3 4 8; do
        timeout 60 "$program" -p $p --cpus $p --split=always -dc "$1" | cmp - "$2" || { echo "$1, -p $p"; return 1; }
    done
    timeout 60 "$program" -p 4 --cpus 4 -d <"$1" | cmp - "$2" || { echo "$1, no split"; return 1; }
    cat "$1" | timeout 60 "$program" -p 4 --cpus 4 --split=always -d | cmp - "$2" || { echo "$1, a pipe"; return 1; }
}

case_valid_files() {
    local n level
    for ((n = 1; n <= files; n++)); do
        make_file "$n"
        for level in 1 6 9; do gzip -$level -c plain >x.gz && check x.gz plain || return 1; done
        pigz -p 3 -b 128 -c plain >x.gz && check x.gz plain || return 1
        "$program" -b 32 -c plain >x.gz && check x.gz plain || return 1
        "$program" --engine=zlib -b 32 -c plain >x.gz && check x.gz plain || return 1
    done
}

# The stream goes to several tasks at the end of a chunk, which may lie anywhere in a block's header: an extra field moves it
# on by less than a header has.
case_hand_over_in_a_header() {
    local n shift
    # With the least memory zlib begins a block every 127 symbols.
    ${CC:-gcc} -O1 -o short_blocks -x c - -lz <<'END' || return 1
#include <stdio.h>
#include <zlib.h>
static unsigned char in[1 << 22], out[1 << 23];
int main(void) {
    z_stream z = {0};
    size_t n = fread(in, 1, sizeof in, stdin);
    if (deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 1, Z_DEFAULT_STRATEGY) != Z_OK) return 1;
    z.next_in = in, z.avail_in = (uInt)n, z.next_out = out, z.avail_out = sizeof out;
    return deflate(&z, Z_FINISH) != Z_STREAM_END || fwrite(out, 1, z.total_out, stdout) != z.total_out;
}
END
    for ((n = 1; n <= 2; n++)); do
        make_file "$n"
        ./short_blocks <plain >x.gz
        for ((shift = 4; shift < 4100; shift += 97)); do
            {
                printf '\x1f\x8b\x08\x04\0\0\0\0\0\x03'
                printf "\\x$(printf %02x $((shift % 256)))\\x$(printf %02x $((shift / 256)))XX"
                printf "\\x$(printf %02x $(((shift - 4) % 256)))\\x$(printf %02x $(((shift - 4) / 256)))"
                head -c $((shift - 4)) /dev/zero
                tail -c +11 x.gz
            } >moved.gz
            timeout 60 "$program" -p 3 --cpus 3 --split=always -dc moved.gz | cmp - plain || { echo "$n, moved by $shift"; return 1; }
        done
    done
}

case_members_behind_each_other() {
    local n
    : >x.gz
    : >expected
    for ((n = 1; n <= files; n++)); do
        make_file "$n"
        if ((n % 2)); then gzip -c plain; else "$program" -b 32 -c plain; fi >>x.gz
        cat plain >>expected
    done
    check x.gz expected
}

# An extra field that looks like ours, or bgzip's, and tells a size that is not the member's.
extra() { # extra NAME HEX...: the header of x.gz with such a field, then the rest
    local name=$1 field
    shift
    field=$(printf '%s' "$@")
    printf '\x1f\x8b\x08\x04\0\0\0\0\0\x03'
    printf "\\x$(printf %02x $((4 + ${#field} / 2)))\\0"
    printf '%s' "$name"
    printf "\\x$(printf %02x $((${#field} / 2)))\\0"
    # shellcheck disable=SC2059 # the bytes are written as escapes
    printf "$(printf '%s' "$field" | sed 's/../\\x&/g')"
    tail -c +11 x.gz
}
le() { # le BYTES VALUE: in hexadecimal, the lowest byte first
    local i
    for ((i = 0; i < $1; i++)); do printf %02x $(($2 >> (8 * i) & 255)); done
}

case_wrong_hints() {
    local n size
    for n in 1 4 6; do
        make_file "$n"
        gzip -nc plain >x.gz
        size=$(($(stat -c %s x.gz) + 14))
        for told in 30 100 4000 $((size - 1)) $((size + 1)) $((size * 2)) 2000000 $((size)); do
            extra CP "$(le 4 $told)$(le 4 $(($(stat -c %s plain))))" >hint.gz
            gzip -dc hint.gz | cmp - plain || return 1
            check hint.gz plain || { echo "CP $told of $size"; return 1; }
            extra CP "$(le 4 $told)$(le 4 16000000)" >hint.gz
            check hint.gz plain || { echo "CP $told of $size, 16000000"; return 1; }
        done
        for told in 40 5000 65535; do
            extra BC "$(le 2 $told)" >hint.gz
            check hint.gz plain || { echo "BC $told of $size"; return 1; }
        done
        # The field takes the next member for a part of the first: a task finds that out. Others that tell their sizes have
        # been read by then, and have to be read again, also from a pipe.
        "$program" -b 32 -c plain >honest.gz
        { extra CP "$(le 4 $((2 * size - 14)))$(le 4 4000000)"; cat x.gz; } >lie.gz
        cat lie.gz honest.gz x.gz lie.gz honest.gz honest.gz lie.gz >hint.gz
        cat plain plain plain plain plain plain plain plain plain plain >expected
        check hint.gz expected || { echo "two in one"; return 1; }
        cat honest.gz hint.gz >behind.gz
        cat plain expected >more
        check behind.gz more || { echo "two in one, behind others"; return 1; }
        # Into a file, which is opened once.
        rm -f hint
        timeout 60 "$program" -p 3 --cpus 3 -dk hint.gz && cmp hint expected || { echo "two in one, a file"; return 1; }
    done
    # Zeros that are not compressed: at every size that the field may tell a member seems to end, and padding to follow.
    head -c 300000 /dev/zero >plain
    pigz -nc0 plain >x.gz
    for told in 100 70000 299000; do
        extra CP "$(le 4 $told)$(le 4 16000000)" >hint.gz
        check hint.gz plain || { echo "CP $told of zeros"; return 1; }
        cat honest.gz hint.gz honest.gz >behind.gz
        { gzip -dc honest.gz; cat plain; gzip -dc honest.gz; } >expected
        check behind.gz expected || { echo "CP $told of zeros, among others"; return 1; }
    done
}

case_cut_off_and_damaged() {
    local n size at status
    make_file 6
    gzip -c plain >long.gz
    size=$(stat -c %s long.gz)
    for ((n = 1; n <= 3 * files; n++)); do
        at=$((size * n / (3 * files + 1) + n % 7))
        head -c "$at" long.gz >x.gz
        timeout 60 "$program" -p 4 --cpus 4 --split=always -dc x.gz >out 2>err
        status=$?
        ((status == 1)) && grep -q 'unexpected end of file' err || { echo "cut at $at: status $status, $(cat err)"; return 1; }
        cp long.gz x.gz
        printf '\xa5\x5a\xff' | dd of=x.gz bs=1 seek="$at" conv=notrunc 2>/dev/null
        gzip -dc x.gz 2>/dev/null | cmp -s - plain && continue # the bytes were the same
        timeout 60 "$program" -p 4 --cpus 4 --split=always -dc x.gz >out 2>err
        status=$?
        ((status == 1)) || { echo "damaged at $at: status $status, $(cat err)"; return 1; }
    done
}

run_cases "$word"
