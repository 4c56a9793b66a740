#!/usr/bin/env bash
# cc-sim.sh PROGRAM [WORD] - tests cc-sim, and simulated programs that are started anew each time, so that their
# addresses differ; TAP. With WORD only the cases whose name contains it.
#
# TEST_SLOWDOWN above 4 makes it short, for sanitizers.
set -u
. "$(dirname "$0")/cases.sh"
program=$(realpath "$1")
word=${2:-}
build=$(dirname "$(dirname "$program")")
here=$(dirname "$(realpath "$0")")
seeds='1 2 3'
((${TEST_SLOWDOWN:-1} <= 4)) || seeds='1'
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
export LC_ALL=C TEST_WORKER_LIST=1
# Else each of the hundreds of programs sleeps for a second at its end, to catch late races.
export TSAN_OPTIONS=${TSAN_OPTIONS:+$TSAN_OPTIONS:}atexit_sleep_ms=0
unset CC_SIM_SEED

# script NAME: a program of some lines, from the standard input.
script() {
    { echo '#!/bin/sh' && cat; } >"$1" && chmod +x "$1"
}

# ---- cc-sim ----

case_the_lowest_seed_that_fails() {
    script odd <<'END' || return
[ "$CC_SIM_SEED" -lt 40 ] || [ "$CC_SIM_SEED" = 41 ] || { echo "this is $CC_SIM_SEED"; exit 7; }
END
    for jobs in 1 3 16; do
        ends 1 'seed 40 ends with status 7, and says:' -j "$jobs" ./odd && grep -qx '    this is 40' out.tmp &&
            grep -qx 'CC_SIM_SEED=40 ./odd replays it' out.tmp || return
    done
}

case_none_fails() {
    ends 0 '20 seeds, and none fails' --seeds 1..20 true && ends 0 '1 seeds, and none fails' -s 18446744073709551615 true
}

case_keeps_going() {
    script odd <<'END' || return
exit $((CC_SIM_SEED % 2))
END
    ends 1 'seed 19 ends with status 1, and says nothing' -k -s 1..20 ./odd && (($(grep -c 'ends with status 1' out.tmp) == 10))
}

case_signals_count() {
    ends 1 'ends by signal 11' -s 3 sh -c 'kill -SEGV $$' && grep -qF "CC_SIM_SEED=3 sh -c 'kill -SEGV \$\$' replays it" out.tmp
}

# What is printed for the replay is the command that was given, whatever is in its words.
case_a_command_that_a_shell_reads() {
    ends 1 "    [it's] [] [a b]" -s 1 sh -c 'printf "[%s] " "$@"; echo; exit 1' it "it's" '' 'a b' &&
        sh -c "$(sed -n 's/ replays it$//p' out.tmp)" | grep -qxF "[it's] [] [a b] "
}

case_status_127_is_a_failure() {
    ends 1 'seed 1 ends with status 127, and says:' -s 1..3 sh -c 'echo no; exit 127'
}

# The process that starts it may leave children to it: those are not runs.
case_children_of_others() {
    script slow <<'END' || return
sleep 1
exit 1
END
    timeout 60 sh -c 'sleep 0.2 & exec "$0" -j 1 -s 1 ./slow' "$program" >out.tmp 2>&1
    grep -q 'seed 1 ends with status 1' out.tmp || { cat out.tmp; return 1; }
}

case_hangs_count() {
    script hangs <<'END' || return
echo begins
exec sleep 1000
END
    ends 1 'seed 1 takes longer than 0.2 s, and says:' -t 0.2 -s 1..2 ./hangs && grep -qx '    begins' out.tmp
}

# Also where a shell has left SIGQUIT ignored.
# Within the time it has to have come to where it can be asked.
case_who_hangs_is_asked() {
    if nm "$build/examples/hangs/busy" | grep -q " [^w] __tsan_init"; then
        echo 'the race detector keeps signals back from a thread that only computes'
        return 77
    fi
    timeout 60 sh -c 'trap "" QUIT; exec "$0" -t 4 -s 1 "$1"' "$program" "$build/examples/hangs/busy" >out.tmp 2>&1
    grep -q 'seed 1 takes longer than 4 s, and says:' out.tmp && grep -q "fiber .* 'poller' runs on worker 0" out.tmp || { cat out.tmp; return 1; }
}

case_what_does_not_fail_again() {
    script once <<'END' || return
[ -e was_here ] || { : >was_here; exit 1; }
END
    ends 1 'does not replay it' -s 5 ./once
}

case_the_end_of_a_long_output() {
    ends 1 '    200000' -s 1 sh -c 'seq 200000; exit 1' && (($(wc -l <out.tmp) == 22))
}

case_bad_arguments() {
    ends 2 'no range of seeds' -s 0..3 true && ends 2 'no range of seeds' -s 3..1 true && ends 2 'not a number' -s x true &&
        ends 2 'too large' -s 18446744073709551616 true && ends 2 '--jobs takes' -j 0 true && ends 2 '--timeout takes' -t 0 true &&
        ends 2 'usage:' && ends 2 'usage:' --what true && ends 2 'cannot run ./nowhere' ./nowhere && ends 0 'usage:' --help
}

# ---- simulated programs ----

case_a_race_is_found_and_replayed() {
    local command
    ends 1 ' replays it' -s 1..1000 "$build/examples/sim/vending" || return
    command=$(sed -n 's/^\(CC_SIM_SEED=.*\) replays it$/\1/p' out.tmp)
    for ((i = 0; i < 20; i++)); do
        sh -c "$command" >again.tmp 2>&1 && { echo "'$command' has not failed"; return 1; }
        grep -q '2 sold, -1 left' again.tmp || return
    done
}

# What the library says at the end names the arguments, too, as a shell reads them.
case_the_librarys_own_command() {
    local command seed
    for seed in {1..100}; do # until one fails
        CC_SIM_SEED=$seed "$build/examples/sim/vending" -x 'a b' "it's" >again.tmp 2>&1 || break
    done
    command=$(sed -n "s/^ccc: this was a simulation: CC_SIM_SEED=$seed \\(.*\\) replays it\$/\\1/p" again.tmp)
    [[ $command == "$build/examples/sim/vending -x 'a b' 'it'\\''s'" ]] || { cat again.tmp; return 1; }
}

# Those that start threads, or print what is not simulated, have no .out or are left out.
case_examples_print_the_same() {
    local name expected seed
    for expected in "$here"/../../examples/*.out; do
        name=$(basename "$expected" .out)
        ! grep -qE 'pthread_create|thrd_create' "${expected%.out}.c" || continue
        # Sockets, processes, signals and watched files are not simulated.
        ! grep -qE 'cc_(listen|process|signal|watch)_|cc_listen|cc_pipe|cc_socketpair|cc_fd_(read|accept|wait)' "${expected%.out}.c" || continue
        for seed in $seeds; do
            CC_SIM_SEED=$seed timeout 120 "$build/examples/$name" >out.tmp 2>err.tmp </dev/null && cmp out.tmp "$expected" ||
                { echo "$name with seed $seed ends with $?:"; cat out.tmp err.tmp; return 1; }
            CC_SIM_SEED=$seed timeout 120 "$build/examples/$name" >again.tmp 2>&1 </dev/null
            cat err.tmp >>out.tmp
            cmp <(sort out.tmp) <(sort again.tmp) || return
        done
    done
}

# course NAME SEED: the order and times of parks, wakes and joins; in a separate process, whose addresses differ.
course() {
    CC_TRACE=park,wake,join,timer,spawn CC_SIM_SEED=$2 timeout 120 "$build/examples/$1" 2>&1 </dev/null >/dev/null |
        sed -e 's/thread [0-9]*/thread/'
}

case_the_same_course_at_other_addresses() {
    local name seed before=''
    for name in worker_pool fan_in graceful_server deadline_tree; do
        for seed in $seeds 4 5 6 7 8; do
            course "$name" "$seed" >out.tmp
            course "$name" "$seed" >again.tmp
            (($(wc -l <out.tmp) > 20)) || { echo "$name says too little"; return 1; }
            cmp out.tmp again.tmp || { diff out.tmp again.tmp | head; return 1; }
            [[ $(md5sum <out.tmp) != "$before" ]] || { echo "$name: two seeds, one course"; return 1; }
            before=$(md5sum <out.tmp)
        done
    done
}

case_threads_are_refused() {
    CC_SIM_SEED=1 "$build/examples/threads" >out.tmp 2>&1 && return 1
    grep -q 'a second thread of the program uses the library' out.tmp
}

# Programs of the suite, or cases of them, that need no threads of their own: simulated they hold as well.
case_the_suite_simulated() {
    local name program word seed lock
    local names=(chan/arguments chan/many_waiters chan/handle chan/programs nursery/block nursery/exits nursery/panic)
    for lock in mutex rwlock cond sem wait_group once event barrier; do names+=("lock/$lock alone"); done
    for name in "${names[@]}"; do
        read -r program word <<<"$name"
        for seed in $seeds; do
            CC_SIM_SEED=$seed timeout 300 "$build/tests/unit/$program" ${word:+"$word"} >out.tmp 2>&1 </dev/null ||
                { echo "$name with seed $seed:"; cat out.tmp; return 1; }
        done
    done
}

# ---- run them ----

run_cases "$word"
