#!/usr/bin/env bash
# examples.sh EXAMPLES [WORD] - the programs of docs/surface.md, and the same by functions alone (examples/plain), in the
# simulator and under Ctrl-C; TAP. EXAMPLES: the build directory. With WORD only the cases whose name contains it.
set -u
. "$(dirname "$0")/cases.sh"
examples=$(realpath "$1")
word=${2:-}
source=$(realpath "$(dirname "$0")/../..")
seeds='1 2 3 4 5 6 7 8'
((${TEST_SLOWDOWN:-1} <= 4)) || seeds='1 2 3'
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
export LC_ALL=C
export TSAN_OPTIONS=${TSAN_OPTIONS:+$TSAN_OPTIONS:}atexit_sleep_ms=0
unset CC_SIM_SEED

# simulated NAME: with each seed, both programs print what they print without.
simulated() {
    local program seed
    for program in "$examples/$1" "$examples/plain/$1"; do
        for seed in $seeds; do
            CC_SIM_SEED=$seed timeout 300 "$source/tools/compare-output.sh" "$source/examples/$1.out" "$program" ||
                { echo "$program with seed $seed"; return 1; }
        done
    done
}

# until_true COMMAND...: succeeds within a minute.
until_true() {
    local i
    for ((i = 0; i < 600; i++)); do
        "$@" && return
        sleep 0.1
    done
    echo "for a minute not: $*"
    return 1
}
ended() { [[ ! -e /proc/$1 ]] || grep -q '^State:.*Z' "/proc/$1/status"; }

# interrupted PROGRAM: counts a file that would take very long, a single word; Ctrl-C comes when it has shown how far it is.
interrupted() {
    local pid status
    truncate -s 1T large.tmp || { echo "no large files here"; return 77; }
    : >err.tmp
    "$1" large.tmp >out.tmp 2>err.tmp &
    pid=$!
    if ! until_true grep -q ' of 1099511627776 bytes' err.tmp || ! kill -INT "$pid" || ! until_true ended "$pid"; then
        kill -KILL "$pid"
        cat out.tmp err.tmp
        return 1
    fi
    wait "$pid"
    status=$?
    ((status == 130)) && grep -qE "^interrupted after [01] words$" out.tmp && return
    echo "status $status, and: $(cat out.tmp)"
    return 1
}

case_word_count_simulated() { simulated word_count; }
case_rate_limiter_simulated() { simulated rate_limiter; }
case_pub_sub_simulated() { simulated pub_sub; }
case_parallel_sort_simulated() { simulated parallel_sort; }
case_net_echo_simulated() { simulated net_echo; }
case_word_count_interrupted() { interrupted "$examples/word_count"; }
case_plain_word_count_interrupted() { interrupted "$examples/plain/word_count"; }

run_cases "$word"
