#!/usr/bin/env bash
# test.sh - the test matrix: builds each stage, runs its programs, several at a time, adds up the verdicts.
#
#   tools/test.sh                      every stage of the matrix
#   tools/test.sh tsan asan            some stages
#   tools/test.sh -p 'unit/sched/*'    only programs whose name matches; builds no more than that, if they are few
#   tools/test.sh -c joins             only cases whose name contains the word
#   tools/test.sh -v                   a line for each program
#
# Output of every program stays in build/log/STAGE/. A build takes up to 4 GB, all of them 30; with CI set, or if there is not so
# much room, each is removed after the last stage that uses it. TEST_SLOWDOWN, TEST_WORKER_LIST and TEST_TIMEOUT, when
# set outside, win over the stage's own. The last line is "N passed, N failed[, N skipped]".
set -u
cd "$(dirname "$0")/.." || exit 1

matrix=(includes headers models explore fuzz release installed recipes symmetric valgrind small noinspect debug asan tsan ucontext clang aarch64 riscv64)
jobs=${JOBS:-$(nproc)}
at_once=$((jobs + 2)) # programs, most of which wait for some of their time, and the build of a later stage
# Ten builds of two hundred programs each: ninja saves a fifth of the work. A build that exists keeps what made it.
export PYTHONPATH=$PWD/build/python${PYTHONPATH:+:$PYTHONPATH} # modules that tools/deps.sh has put there
command -v ninja >/dev/null && export CMAKE_GENERATOR=${CMAKE_GENERATOR:-Ninja}

# The one place to tune. For each stage:
#   preset    which build directory
#   groups    which programs: apps stress programs battery unit harness examples gdb; those that take long come first
#   only      patterns of names, where what a stage changes concerns no others
#   slowdown  divisor of loop counts      workers  numbers of workers, empty: all of them
#   stress    a further divisor for that group, which would otherwise take most of the time
#   without   variables of the environment that take something away from the library, or say what it runs on
#   patience  factor on timeouts          limit    seconds after which a program as a whole is stopped
choose_stage() {
    preset=$1 groups="stress programs battery unit harness examples" slowdown=1 workers="" patience=1 limit=600 launcher=()
    stress=3 only=('*') without=()
    case $1 in
    release) groups="apps $groups gdb" stress=1 ;;
    small) groups="stress battery unit" slowdown=5 workers=1,4 ;;
    noinspect) # that it runs, and what it says; the tests that need no inspection pass as they do in debug
        groups="programs battery unit" slowdown=10 workers=1,4
        only=(unit/inspect/missing unit/task/join unit/nursery/cancel unit/panic/defer unit/rt/restart battery/cap3 programs/errno_kept)
        ;;
    symmetric) # as on a system without membarrier: whatever has a light and a heavy side
        preset=release groups="stress battery unit" slowdown=10 workers=1,4 without=(CC_MEMBARRIER=0)
        only=('unit/'{chan,lock,nursery,rt,sched,select,sync,task,wait}'/*' 'battery/*' 'stress/*')
        ;;
    debug) groups+=" gdb" slowdown=2 workers=1,2,8 ;;
    ucontext) # whatever switches, ends or unwinds a stack
        groups="programs battery unit" slowdown=4 workers=1,4
        only=('unit/'{arch,fiber,panic,sched,select,task,timer,wait}'/*' 'fault/*' battery/cap{0,3} 'programs/*')
        ;;
    asan) groups="apps $groups" slowdown=5 workers=1,8 patience=2 ;;
    tsan) groups="apps $groups" slowdown=10 workers=1,8 patience=3 ;;
    aarch64 | riscv64) # whatever knows the CPU or the kernel's side of it; an emulator is no test of memory orders
        groups="programs battery unit" slowdown=20 workers=1,4 patience=4 without=(TEST_EMULATED=1)
        only=('unit/'{arch,fiber,inspect,os,panic,rt,sched,sync,task,timer}'/*' battery/cap3 'programs/*')
        ;;
    clang)
        groups="programs battery unit examples" slowdown=10 workers=1,4
        only=('unit/*' battery/cap{0,3} 'programs/*' 'examples/*')
        ;;
    valgrind) # whatever allocates and frees
        preset=release groups="programs battery unit" slowdown=200 workers=4 patience=10
        only=('unit/'{chan,fiber,nursery,panic,rt,select,task,timer,wait}'/*' 'fault/*' battery/cap3 programs/{memory,signals,sim})
        # Without fair-sched a thread that spins keeps the one lock that valgrind runs all threads under.
        # Memory that is only "possibly lost" is mostly the stack of a thread that still lives.
        # Most of the time goes into translating code that runs once: blocks are not joined, and inlined calls not looked up.
        launcher=(valgrind -q --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite
            --show-leak-kinds=definite --fair-sched=yes --vex-guest-chase=no --read-inline-info=no)
        ;;
    includes | headers | models | explore | fuzz | installed | recipes) preset=release groups="" ;;
    *) return 1 ;;
    esac
}

# ---- arguments ----

program_pattern='*' case_filter='' verbose=0
while getopts p:c:v option; do
    case $option in
    p) program_pattern=$OPTARG ;;
    c) case_filter=$OPTARG ;;
    v) verbose=1 ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
stages=("$@")
((${#stages[@]} > 0)) || stages=("${matrix[@]}")
for stage in "${stages[@]}"; do
    if ! choose_stage "$stage"; then
        echo "There is no stage '$stage'; the stages are: ${matrix[*]}." >&2
        exit 2
    fi
done

# ---- counting ----

passed=0 failed=0 skipped=0
stress_seconds=0 # that programs of this group ran, one after another
failures=() # lines to repeat at the end
table=()    # one row for each stage

seconds_since() {
    awk -v from="$1" -v to="$EPOCHREALTIME" 'BEGIN { printf "%.1f", to - from }'
}

# note_failure STAGE WHAT LOG: one failure that is no TAP line. Two compilers at work write errors anywhere in
# the log, so these come first; a log without any has the reason at its end.
note_failure() {
    failed=$((failed + 1))
    failures+=("$1: $2")
    echo "   FAILED $2"
    { grep -E -A 4 'error:|undefined reference|CMake Error' "$3" || tail -n 40 "$3"; } | head -n 60 | sed 's/^/      /'
}

# check STAGE WHAT LOG COMMAND...: a command that is one case by itself.
check() {
    local stage=$1 what=$2 log=$3
    shift 3
    if "$@" >"$log" 2>&1; then
        passed=$((passed + 1))
    else
        note_failure "$stage" "$what" "$log"
    fi
}

# count_tap STAGE PROGRAM LOG STATUS: adds a program's TAP lines and shows what failed.
count_tap() {
    local stage=$1 name=$2 log=$3 status=$4 ok bad skip complete line
    read -r ok bad skip complete < <(awk '
        /^1\.\.[0-9]/ { sub(/^1\.\./, ""); planned = $1 + 0; has_plan = 1; next }
        /^ok [0-9]+ .*# SKIP/ { skip++; next }
        /^ok [0-9]+/ { ok++ }
        /^not ok [0-9]+/ { bad++ }
        END { print ok + 0, bad + 0, skip + 0, (has_plan && planned == ok + bad + skip) }' "$log")
    passed=$((passed + ok)) failed=$((failed + bad)) skipped=$((skipped + skip))
    # Prints what was skipped, each reason once.
    ((skip == 0)) || sed -n 's/^ok [0-9]* .*# SKIP \(.*\)/\1/p' "$log" | sort | uniq -c | while read -r count line; do
        echo "   skipped in $name, $count: $line"
    done
    if ((bad > 0)); then
        while IFS= read -r line; do
            failures+=("$stage: $name: ${line#not ok }")
        done < <(grep '^not ok [0-9]' "$log")
        # Each failed case with its comments, cut at 80 lines; a tool's own reports have no mark and stay.
        awk '/^ok [0-9]+/ { show = 0 } /^not ok [0-9]+/ { show = 80 }
             show > 0 || !/^(# |ok |1\.\.)/ { print "      " $0; if (--show == 0) print "      # ... the rest is in the log" }
            ' "$log"
    fi
    # 1 says that cases failed, 77 that all were skipped; anything else is the program's own end.
    if ((!complete || (status != 0 && status != 77 && !(status == 1 && bad > 0)))); then
        local how="ended with status $status"
        ((status != 124)) || how="was stopped after $limit s" # what timeout returns
        note_failure "$stage" "$name: $how, $((ok + bad + skip)) cases had ended" "$log"
    fi
}

# ---- a stage ----

# chosen NAME: does this stage run it?
chosen() {
    local pattern
    # shellcheck disable=SC2053 # the right side is a pattern
    for pattern in "${only[@]}"; do [[ $1 == $pattern ]] && return; done
    return 1
}

# What the chosen programs are built by; nothing: everything that there is. That is what tests of apps need, which run examples
# and other tests. And make, other than ninja, takes seconds for each target: for more than a few it builds all.
targets_of() {
    local group name program compared targets=()
    while IFS=$'\t' read -r group name program compared; do
        # shellcheck disable=SC2053 # the right side is a pattern
        [[ " $groups " == *" $group "* && $name == $program_pattern ]] && chosen "$name" || continue
        case $group in
        harness) targets+=(test_selftest) ;;
        examples) targets+=("${name//\//_}") ;;
        apps) return ;;
        *) targets+=("test_${name//\//_}") ;;
        esac
    done <"build/$preset/tests/programs.txt"
    [[ ! -e build/$preset/build.ninja ]] && ((${#targets[@]} > 8)) || echo "${targets[@]}"
}

build_stage() {
    local log=$1 what=(--preset "$preset" -j "$jobs") targets=()
    cmake --preset "$preset" >"$log" 2>&1 || return
    [[ $stage == headers ]] && targets=(check-headers)
    if [[ $stage == installed ]]; then
        targets=(ccc_static ccc_shared ccc_posix apps)
        ! grep -q 'TLS: OpenSSL' "$log" || targets+=(ccc_tls_static ccc_tls_shared)
    fi
    if [[ $stage == recipes ]]; then
        targets=(ccc_static examples_proxy)
        ! grep -q 'TLS: OpenSSL' "$log" || targets+=(examples_tls_https_server examples_tls_https_get)
    fi
    [[ -z $groups ]] || read -r -a targets < <(targets_of)
    ((${#targets[@]} == 0)) || what+=(--target "${targets[@]}")
    cmake --build "${what[@]}" >>"$log" 2>&1
}

# build_ahead STAGE LATER...: while the programs of a stage run, builds the next stage that needs another build and has
# none yet. The subshell is one of the jobs that run_stage waits for at its end.
declare -A ahead=()
build_ahead() {
    local here=$preset next=
    for next in "${@:2}"; do
        choose_stage "$next"
        [[ $preset == "$here" || -z $groups || $next == "$(uname -m)" || -n ${ahead[$next]:-} ]] || break
        next=
    done
    choose_stage "$1"
    [[ -n $next ]] || return 0
    ahead[$next]=1
    rm -rf "build/log/$next"
    mkdir -p "build/log/$next"
    {
        stage=$next
        choose_stage "$next"
        build_stage "build/log/$next/build.log"
        echo $? >"build/log/$next/build.status"
    } &
}

# build_or_wait STAGE LOG_DIR
build_or_wait() {
    if [[ -n ${ahead[$1]:-} ]]; then
        return "$(<"$2/build.status")"
    fi
    build_stage "$2/build.log"
}

# in_background NAME COMMAND...: once fewer than `at_once` are at work; leaves log, status and seconds. Most programs wait
# for much of their time, and whatever they judge has to hold on a busy machine too.
in_background() {
    local log=build/log/$stage/${1//\//_}.log
    shift
    while (($(jobs -pr | wc -l) >= at_once)); do wait -n; done
    {
        begin=$EPOCHREALTIME
        "$@" >"$log" 2>&1 </dev/null
        echo "$? $(seconds_since "$begin")" >"$log.end"
    } 2>/dev/null & # or bash reports a crash by itself
}

# start_check NAME COMMAND..., start_tap NAME COMMAND...: a command that is one case by itself, or prints TAP.
started=() # "check NAME" or "tap NAME"
start_check() {
    started+=("check $1")
    in_background "$@"
}
start_tap() {
    started+=("tap $1")
    in_background "$@"
}

# start_program GROUP NAME PROGRAM COMPARED
start_program() {
    local bounded=(timeout --foreground -k 10 "$limit") filter=()
    [[ -z $case_filter ]] || filter=("$case_filter")
    case $1 in
    harness) start_check "$2" "$4" $emulator "$3" ;;
    examples) start_check "$2" "${bounded[@]}" tools/compare-output.sh "$4" $emulator "$3" ;;
    gdb) start_tap "$2" "${bounded[@]}" "$4" "$3" "${filter[@]}" ;;
    *) start_tap "$2" "${bounded[@]}" $emulator "${launcher[@]}" "$3" "${filter[@]}" ;;
    esac
}

# end_started KIND NAME: counts what in_background has left behind.
end_started() {
    local log=build/log/$stage/${2//\//_}.log before=$passed status seconds
    read -r status seconds <"$log.end"
    [[ $2 != stress/* ]] || stress_seconds=$(awk -v sum="$stress_seconds" -v one="$seconds" 'BEGIN { print sum + one }')
    if [[ $1 == tap ]]; then
        count_tap "$stage" "$2" "$log" "$status"
    elif ((status == 0)); then
        passed=$((passed + 1))
    else
        note_failure "$stage" "$2" "$log"
    fi
    if ((verbose || ${seconds%.*} >= 20)); then
        printf '   %-40s %5d passed %8s s\n' "$2" $((passed - before)) "$seconds"
    fi
}

# run_stage STAGE LATER...
run_stage() {
    local stage=$1 start=$EPOCHREALTIME before=("$passed" "$failed" "$skipped") group
    local group_of name program compared log=build/log/$1
    choose_stage "$stage"
    [[ -n ${ahead[$stage]:-} ]] || rm -rf "$log"
    mkdir -p "$log"
    echo "== $stage"

    if [[ $stage == includes ]]; then
        check "$stage" "include directions" "$log/includes.log" tools/check-includes.sh
        check "$stage" "patches of seeded bugs" "$log/bugs.log" tests/mutate/rebase.sh --check
        check "$stage" "rebasing of such patches" "$log/rebase.log" tests/mutate/rebase_test.sh
        check "$stage" "settings and the man pages" "$log/settings.log" tools/check-settings.sh
        check "$stage" "list of public functions" "$log/symbols.log" tools/check-symbols.sh
        check "$stage" "formatting" "$log/format.log" tools/check-format.sh
        check "$stage" "names that pages mention" "$log/names.log" tools/check-names.sh
        check "$stage" "numbered rules" "$log/rules.log" tools/check-rules.sh
        check "$stage" "the checks of pages" "$log/pages.log" tools/pages_test.sh
        check "$stage" "README and examples" "$log/readme.log" tools/check-readme.sh
        check "$stage" "docs/hangs.md and examples" "$log/hangs.log" tools/check-readme.sh docs/hangs.md
        check "$stage" "docs/simulation.md and examples" "$log/simulation.log" tools/check-readme.sh docs/simulation.md
        check "$stage" "docs/surface.md and examples" "$log/surface.log" tools/check-readme.sh docs/surface.md
        check "$stage" "docs/tracing.md and examples" "$log/tracing.log" tools/check-readme.sh docs/tracing.md
        check "$stage" "docs/misuse.md and tests" "$log/misuse.log" tools/check-misuse.sh
        check "$stage" "examples by functions alone" "$log/plain.log" tools/check-plain.sh
        if command -v python3 >/dev/null; then
            check "$stage" "code in the manual pages" "$log/man.log" tests/man/check.py
        else
            skipped=$((skipped + 1))
            echo "   skipped: the code in the manual pages is checked by python3"
        fi
    elif [[ $stage == models ]]; then
        tests/model/run.sh build/model >"$log/models.log" 2>&1
        count_tap "$stage" "protocol models" "$log/models.log" $?
    elif [[ $stage == explore ]]; then
        tests/explore/run.sh >"$log/explore.log" 2>&1
        count_tap "$stage" "schedule explorer" "$log/explore.log" $?
        tests/explore/run.sh mutants >"$log/mutants.log" 2>&1
        count_tap "$stage" "schedule explorer's mutants" "$log/mutants.log" $?
    elif [[ $stage == fuzz ]]; then
        tests/fuzz/run.sh 4 build/fuzz >"$log/fuzz.log" 2>&1
        count_tap "$stage" "fuzzers" "$log/fuzz.log" $?
    elif [[ $stage == "$(uname -m)" ]]; then
        skipped=$((skipped + 1))
        echo "   skipped: this machine's own CPU is what the other stages run on"
    elif ! build_or_wait "$stage" "$log"; then
        note_failure "$stage" "build" "$log/build.log"
    else
        [[ -n ${ahead[$stage]:-} ]] || echo "   built in $(seconds_since "$start") s"
        [[ $stage == headers ]] || build_ahead "$@"
        [[ $stage != headers ]] || passed=$((passed + 1))
        [[ $program_pattern == '*' ]] && case $stage in # else only programs are asked for
        clang)
            start_check "public headers" cmake --build --preset clang --target check-headers
            ;;
        installed)
            start_tap "the installed library" tests/installed/run.sh
            ;;
        recipes)
            start_tap "libraries of others" tests/recipes/run.sh build/release
            start_tap "TLS with programs of others" tests/tls/run.sh build/release
            ;;
        valgrind)
            start_check "nothing is possibly lost" tools/check-lost.sh build/release
            ;;
        release)
            for part in answers hangs; do
                start_tap "the live page: $part" timeout --foreground -k 10 1200 tests/browser/run.sh "$part" build/release
            done
            start_check "symbols" tools/check-symbols.sh build/release/libccc.a build/release/libccc.so
            start_check "measurements" tools/check-bench.sh build/release/bench
            start_check "installation" tools/check-install.sh build/release
            start_check "sessions that the pages quote" \
                tools/check-console.sh build/release/examples README.md docs/hangs.md docs/simulation.md
            ;;
        esac
        export TEST_WORKER_LIST=${given_workers:-$workers} TEST_TIMEOUT=${given_timeout:-$patience}
        ((${#without[@]} == 0)) || export "${without[@]}"
        emulator=$(<"build/$preset/tests/emulator.txt")
        local -A factor=([stress]=$stress)
        for group in $groups; do
            export TEST_SLOWDOWN=${given_slowdown:-$((slowdown * ${factor[$group]:-1}))}
            while IFS=$'\t' read -r -u 3 group_of name program compared; do
                # shellcheck disable=SC2053 # the right side is a pattern
                [[ $group_of == "$group" && $name == $program_pattern ]] && chosen "$name" || continue
                start_program "$group" "$name" "$program" "$compared"
            done 3<"build/$preset/tests/programs.txt"
        done
        wait
        for name in "${started[@]}"; do end_started "${name%% *}" "${name#* }"; done
        started=()
        unset TEST_SLOWDOWN TEST_WORKER_LIST TEST_TIMEOUT "${without[@]%%=*}"
    fi

    local row
    row=$(printf '%-32s %8d %8d %10s s' "$stage" $((passed - before[0])) $((failed - before[1])) "$(seconds_since "$start")")
    echo "   $((passed - before[0])) passed, $((failed - before[1])) failed, $((skipped - before[2])) skipped" \
        "in $(seconds_since "$start") s"
    table+=("$row")
}

# remove_build STAGE LATER...: what the stage has built, unless a later one uses it.
remove_build() {
    local built stage
    choose_stage "$1"
    built=$preset
    for stage in "${@:2}"; do
        choose_stage "$stage"
        [[ $preset != "$built" ]] || return 0
    done
    rm -rf "build/$built"
}

given_slowdown=${TEST_SLOWDOWN:-} given_workers=${TEST_WORKER_LIST:-} given_timeout=${TEST_TIMEOUT:-}
trap 'exit 130' INT
free_mb=$(df --output=avail -m . | tail -n 1)
if ((free_mb < 8000 && ${#stages[@]} == ${#matrix[@]})); then
    echo "All stages need up to 8 GB of disk space below build/, and $free_mb MB are free: remove something, or run some of the stages."
    echo "0 passed, 1 failed"
    exit 1
fi
removes=${CI:-}
((free_mb > 30000 || ${#stages[@]} < ${#matrix[@]})) || removes=1
for i in "${!stages[@]}"; do
    run_stage "${stages[@]:i}"
    [[ -z $removes ]] || remove_build "${stages[i]}" "${stages[@]:i+1}"
done

echo
printf '%-32s %8s %8s %12s\n' "" passed failed time
printf '%s\n' "${table[@]}"
((${#stages[@]} == 1)) || echo "Stress programs ran for ${stress_seconds%.*} s, several at a time."
if ((${#failures[@]} > 0)); then
    printf '\nFailed:\n'
    printf '  %s\n' "${failures[@]}"
fi
echo
summary="$passed passed, $failed failed"
((skipped == 0)) || summary+=", $skipped skipped"
echo "$summary"
((failed == 0))
