#!/usr/bin/env bash
# check-long.sh - the long profile: what verifies for hours what the test matrix verifies for minutes.
#
#   tools/check-long.sh                        all parts, in full: most of a day on two cores
#   PARTS="stress explore" tools/check-long.sh some of them
#   BUDGET=40 tools/check-long.sh              all of them, with amounts that fit into about so many minutes
#
#   models      the protocol models and their mutants
#   explore     every scenario of the schedule explorer: DFS, a million schedules at random, a million by PCT
#   stress      the stress programs; at least 10^9 channel operations and 10^5 starts and shutdowns, whatever the budget
#   faults      every place and every call that fails, limits, signals
#   programs    a million fibers, deadlocks, overflows, forks
#   builds      the battery without optimisation, with all of it, position-independent, and optimised at link time
#   cpus        overflows and migration on the other CPUs, under qemu
#   sanitizers  the stress programs, and the planted errors, under both
#   fuzz        the fuzzers
#   traces      what the test programs record, read by `go tool trace`
#   mutate      bugs that are put into the runtime, for the tests to find
#
# Each program's output stays in build/check-long/; so does the table, as results.tsv: part, what, done, passed, failed,
# skipped, seconds.
set -u
cd "$(dirname "$0")/.." || exit 1

all_parts=(models explore stress faults programs builds cpus sanitizers fuzz traces mutate)
read -r -a parts <<<"${PARTS:-${all_parts[*]}}"
budget=${BUDGET:-} # minutes; empty: no limit
jobs=${JOBS:-$(nproc)}
out=build/check-long
mkdir -p "$out"
table=$out/results.tsv
: >"$table"
failed_rows=0

for part in "${parts[@]}"; do
    [[ " ${all_parts[*]} " == *" $part "* ]] && continue
    echo "There is no part '$part'; the parts are: ${all_parts[*]}." >&2
    exit 2
done

# ---- time ----

# Of a budget, in percent. The others take what they take: a minute or two.
declare -A share=([explore]=35 [stress]=30 [programs]=15 [sanitizers]=15 [fuzz]=5)
# Seconds that the whole of it takes on two cores (measured, to the half hour).
declare -A whole=([stress]=21600 [programs]=7200)

# seconds_for PART: what it may take; nothing without a budget. Parts that are not asked for leave their share to the rest.
seconds_for() {
    local part total=0
    [[ -n $budget ]] || return 0
    for part in "${parts[@]}"; do total=$((total + ${share[$part]:-0})); done
    ((total > 0)) || total=100
    echo $((budget * 60 * ${share[$1]:-0} / total))
}

# slowdown_for PART: by what the amounts of a part have to be divided.
slowdown_for() {
    local seconds
    seconds=$(seconds_for "$1")
    [[ -n $seconds ]] || { echo 1; return; }
    awk -v whole="${whole[$1]}" -v have="$seconds" 'BEGIN { n = whole / have; print n < 1 ? 1 : int(n + 0.5) }'
}

at_most() { echo $(($1 < $2 ? $1 : $2)); }

# ---- rows ----

# row PART WHAT DONE PASSED FAILED SKIPPED SECONDS
row() {
    printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$@" >>"$table"
    (($5 == 0)) || failed_rows=$((failed_rows + 1))
    printf '%(%H:%M:%S)T  %-10s %-34s %s passed, %s failed%s, %s s%s\n' -1 "$1" "$2" "$4" "$5" \
        "$( (($6 == 0)) || echo ", $6 skipped")" "$7" "${3:+: $3}"
}

# What the log says was done, in one line: sums of "# counted N WHAT", the largest of "most WHAT", and what the searches
# say at their end.
sum_counts() {
    awk '/^# counted [0-9]+ / { n = $3; $1 = $2 = $3 = ""; sub(/^ +/, ""); if (!($0 in sum)) order[++k] = $0
             sum[$0] = /^most / ? (n > sum[$0] ? n : sum[$0]) : sum[$0] + n; next }
         /^# [0-9]+ (states|schedules|scenarios)/ { sub(/^# /, ""); text = text (text ? ", " : "") $0 }
         END { for (i = 1; i <= k; i++) text = text (text ? ", " : "") sum[order[i]] " " order[i]; print text }' "$1"
}

# tap PART WHAT COMMAND...: a program that speaks TAP; its verdicts are shown as they come, for it may take an hour.
tap() {
    local part=$1 what=$2 log=$out/$1-${2//[\/ ]/_}.log start=$SECONDS status ok bad skip
    shift 2
    printf '%(%H:%M:%S)T  %-10s %s ...\n' -1 "$part" "$what"
    "$@" 2>&1 </dev/null | tee "$log" | grep --line-buffered -E '^(not ok|ok) [0-9]|^# (counted|[a-z_0-9]+:) ' | sed -u 's/^/            /'
    status=${PIPESTATUS[0]}
    read -r ok bad skip < <(awk '/^ok [0-9]+ .*# SKIP/ { s++; next } /^ok [0-9]/ { o++ } /^not ok/ { b++ } END { print o + 0, b + 0, s + 0 }' "$log")
    # 77: all were skipped. An end that no case accounts for is a failure of its own.
    ((status == 0 || status == 77 || bad > 0)) || bad=1
    row "$part" "$what" "$(sum_counts "$log")" "$ok" "$bad" "$skip" $((SECONDS - start))
}

# stage PART WHAT ARGUMENTS...: some of the matrix, by tools/test.sh.
stage() {
    local part=$1 what=$2 log=$out/$1-${2//[\/ ]/_}.log start=$SECONDS
    shift 2
    printf '%(%H:%M:%S)T  %-10s %s ...\n' -1 "$part" "$what"
    tools/test.sh "$@" 2>&1 </dev/null | tee "$log" | grep --line-buffered -E 'passed|FAILED|not ok' | sed -u 's/^/         /'
    local last
    last=$(tail -n 1 "$log")
    [[ $last =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed(,\ ([0-9]+)\ skipped)?$ ]] || BASH_REMATCH=("" 0 1 "" 0)
    row "$part" "$what" "" "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}" "${BASH_REMATCH[4]:-0}" $((SECONDS - start))
}

# build PRESET TARGET...: 0 when they are there; else it is a row of its own.
build() {
    local preset=$1 log=$out/build-$1.log start=$SECONDS target
    shift
    local targets=()
    for target in "$@"; do targets+=(--target "$target"); done
    cmake --preset "$preset" >"$log" 2>&1 && cmake --build --preset "$preset" -j "$jobs" "${targets[@]}" >>"$log" 2>&1 && return 0
    grep -E -A 4 'error:|undefined reference|CMake Error' "$log" | head -n 30
    row build "$preset" "" 0 1 0 $((SECONDS - start))
    return 1
}

# programs GROUP: name and path of each in the release build.
programs() {
    awk -F '\t' -v group="$1" '$1 == group { print $2, $3 }' build/release/tests/programs.txt
}

# ---- parts ----

part_models() {
    tap models "protocol models" tests/model/run.sh "$out/models"
}

part_explore() {
    EXPLORE_SECONDS=$(seconds_for explore) tap explore "schedule explorer" tests/explore/run.sh long
    tap explore "the explorer's mutants" tests/explore/run.sh mutants
}

part_stress() {
    build release all || return
    local name program slowdown divisor
    slowdown=$(slowdown_for stress)
    while read -r -u 3 name program; do
        divisor=$slowdown
        case $name in
        stress/chan_traffic) divisor=$(at_most "$slowdown" 2) ;; # 10^9 operations
        stress/start_stop) divisor=$(at_most "$slowdown" 5) ;;   # 10^5 cycles with fibers of every kind, and as many empty ones
        stress/deadlock) continue ;;                             # among the programs
        esac
        TEST_LONG=1 TEST_TIMEOUT=60 TEST_SLOWDOWN=$divisor tap stress "$name" "$program"
    done 3< <(programs stress)
}

part_faults() {
    build release all || return
    local name program
    while read -r -u 3 name program; do
        [[ $name == fault/* || $name == unit/rt/limits || $name == unit/rt/signals ]] || continue
        TEST_LONG=1 TEST_TIMEOUT=10 TEST_SLOWDOWN=$([[ -n $budget ]] && echo 10 || echo 1) tap faults "$name" "$program"
    done 3< <(programs unit)
}

part_programs() {
    build release all || return
    local tests=build/release/tests slowdown
    slowdown=$(slowdown_for programs)
    export TEST_LONG=1 TEST_TIMEOUT=20
    tap programs "a million fibers" $tests/programs/memory a_million_parked
    tap programs "stack overflows" $tests/programs/overflow named
    TEST_SLOWDOWN=$slowdown tap programs deadlocks $tests/stress/deadlock
    # A thousand for each number of workers at least.
    TEST_SLOWDOWN=$(at_most "$slowdown" 10) tap programs "fork and exec" $tests/programs/fork_exec fork_and_exec
    # A minute for each way to take the signal, and number of workers.
    TEST_WORKER_LIST=$([[ -n $budget ]] && echo 4) tap programs "SIGALRM at 1 kHz" $tests/programs/signals
    tap programs "a third fiber" $tests/stress/fairness beside_two
    tap programs "select is fair" $tests/unit/select/order fair
    tap programs "timers are not early" $tests/unit/timer/sleep never_early
    unset TEST_LONG TEST_TIMEOUT
}

# The battery, and what a thread-local address that is kept across a switch would break.
part_builds() {
    local name flags options dir log program
    while IFS='|' read -r -u 3 name flags options; do
        dir=build/flags-$name log=$out/build-flags-$name.log
        local programs=(battery/cap0 battery/cap1 battery/cap3 battery/cap64 battery/cap200 programs/tls_migration programs/errno_kept)
        # shellcheck disable=SC2086 # options are words
        if ! { cmake -S . -B "$dir" -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_C_FLAGS_RELWITHDEBINFO="$flags -g -DNDEBUG" \
            -DCC_BUILD_EXAMPLES=OFF -DCC_BUILD_APPS=OFF $options &&
            cmake --build "$dir" -j "$jobs" $(printf -- '--target test_%s ' "${programs[@]//\//_}"); } >"$log" 2>&1; then
            row builds "$flags $options" "" 0 1 0 0
            grep -E -A 4 'error:|undefined reference|CMake Error' "$log" | head -n 30
            continue
        fi
        for program in "${programs[@]}"; do
            TEST_WORKER_LIST=1,4 TEST_SLOWDOWN=2 tap builds "$name ${program#*/}" "$dir/tests/$program"
        done
    done 3<<'END'
O0|-O0|
O3|-O3|
O2-pic|-O2 -fPIC|-DCMAKE_POSITION_INDEPENDENT_CODE=ON
O3-lto|-O3|-DCMAKE_INTERPROCEDURAL_OPTIMIZATION=ON
END
}

part_cpus() {
    local cpu emulator
    for cpu in aarch64 riscv64; do
        [[ $cpu != "$(uname -m)" ]] || continue
        build "$cpu" test_programs_overflow test_programs_tls_migration test_unit_arch_context || continue
        emulator=$(<"build/$cpu/tests/emulator.txt")
        export TEST_TIMEOUT=20 TEST_WORKER_LIST=1,4
        # shellcheck disable=SC2086 # an emulator with its options
        {
            TEST_LONG=1 tap cpus "$cpu stack overflows" $emulator build/$cpu/tests/programs/overflow named
            TEST_SLOWDOWN=10 tap cpus "$cpu migration" $emulator build/$cpu/tests/programs/tls_migration
            TEST_SLOWDOWN=10 tap cpus "$cpu context switch" $emulator build/$cpu/tests/unit/arch/context
        }
        unset TEST_TIMEOUT TEST_WORKER_LIST
    done
}

part_sanitizers() {
    local slowdown=1
    [[ -z $budget ]] || slowdown=$((30 * 60 / ($(seconds_for sanitizers) + 1) * 5 + 1))
    stage sanitizers "planted races" -p 'programs/planted*' tsan
    stage sanitizers "planted memory errors" -p 'programs/planted*' asan
    TEST_SLOWDOWN=$slowdown stage sanitizers "stress, race detector" -p 'stress/*' tsan
    TEST_SLOWDOWN=$slowdown stage sanitizers "stress, addresses and leaks" -p 'stress/*' asan
}

part_fuzz() {
    local seconds
    seconds=$(seconds_for fuzz)
    tap fuzz fuzzers tests/fuzz/run.sh "${seconds:-3600}" "$out/fuzz"
}

part_traces() {
    build release all || return
    local log=$out/traces.log start=$SECONDS status files refused
    TEST_SLOWDOWN=$([[ -n $budget ]] && echo 10 || echo 1) tools/check-traces.sh >"$log" 2>&1 </dev/null
    status=$?
    read -r files refused < <(awk '/ refused$/ { print $1, $(NF - 1) }' "$log")
    row traces "recorded by the test programs" "$(tail -n 1 "$log")" $((${files:-0} - ${refused:-0})) "${refused:-$((status != 77))}" \
        $((status == 77)) $((SECONDS - start))
}

part_mutate() {
    local log=$out/mutate.log start=$SECONDS caught all
    printf '%(%H:%M:%S)T  %-10s %s ...\n' -1 mutate "bugs for the tests to find"
    tests/mutate/run.sh 2>&1 </dev/null | tee "$log" | sed -u 's/^/            /'
    read -r caught _ all _ < <(grep -E '^[0-9]+ of [0-9]+ caught' "$log" | tail -n 1)
    row mutate "bugs for the tests to find" "" "${caught:-0}" $((${all:-1} - ${caught:-0})) 0 $((SECONDS - start))
}

# ---- all of them, and the table ----

trap 'exit 130' INT
begin=$SECONDS
for part in "${parts[@]}"; do "part_$part"; done

echo
awk -F '\t' '
    NR == 1 { printf "%-11s %-30s %7s %7s %8s  %s\n", "part", "what", "passed", "failed", "time", "done" }
    { skip = $6 == 0 ? "" : ($3 == "" ? "" : ", ") $6 " skipped"
      printf "%-11s %-30s %7d %7d %6d s  %s%s\n", $1, $2, $4, $5, $7, $3, skip
      passed += $4; failed += $5; skipped += $6 }
    END { printf "\n%d passed, %d failed%s\n", passed, failed, skipped == 0 ? "" : ", " skipped " skipped" }' "$table"
echo "$((SECONDS - begin)) s; $table has it for programs."
((failed_rows == 0))
