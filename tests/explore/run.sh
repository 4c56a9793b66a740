#!/usr/bin/env bash
# Explores the schedules of the library's real code; README.md says how. TAP on standard output.
#
#   tests/explore/run.sh [-o BUILD_DIR] [short | long | mutants [PATTERN] | SCENARIO...]
#
# short     every scenario for about a second, and the explorer's own checks; the default. Those with barriers also
#           without membarrier
# long      every scenario: all schedules of DFS with two preemptions as far as the time goes, a million at random, a
#           million by PCT, in each memory mode, the fastest scenarios first; most of a day. EXPLORE_SECONDS=N: as
#           many of them as fit into that time, a tenth in the stronger modes; the short profile for the rest
# mutants   each patch of mutants/ is built into the library, and its scenario has to find it
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
work=
if [[ ${1:-} == -o ]]; then
    work=$2
    shift 2
fi
work=${work:-$root/build/explore}
what=${1:-short}
jobs=${JOBS:-$(nproc)}

case $(uname -m) in
x86_64 | aarch64 | riscv64) ;;
*)
    echo "ok 1 - explore # SKIP no context switch of our own for $(uname -m)"
    echo "1..1"
    exit 77
    ;;
esac
if ! command -v "${CC:-gcc}" >/dev/null || ! command -v make >/dev/null; then
    echo "not ok 1 - gcc and make are needed"
    exit 1
fi

number=0 failed=0
report() { # 0 or not, what, a log to show
    number=$((number + 1))
    if [[ $1 == 0 ]]; then
        echo "ok $number - $2"
        return
    fi
    echo "not ok $number - $2"
    failed=$((failed + 1))
    [[ -n ${3:-} ]] && sed 's/^/# /' "$3" | cut -c1-240 | head -n 70
}
finish() {
    echo "1..$number"
    [[ $failed == 0 ]]
    exit
}

# build DIR: the explorer, and what it explores from DIR/src.
build() {
    make -C "$1" -f "$here/Makefile" -j "$jobs" ${CC:+CC="$CC"} >"$1/build.log" 2>&1
}

base=$work/base
mkdir -p "$base"
for link in src include tests; do ln -sfn "$root/$link" "$base/$link"; done
build "$base"
report $? "the explorer and the library with its stubs are built" "$base/build.log"
[[ $failed == 0 ]] || finish
explore=$base/explore

# ---- scenarios ----

short=(--dfs=2 --max=20000 --random=2500 --pct=2500 --budget=0.4)
shorter=(--random=1200 --pct=600 --budget=0.2)
long=(--dfs=2 --max=100000000 --random=1000000 --pct=1000000) # and so many seconds a search:
declare -A long_seconds=([weak]=120 [tso]=60 [sc]=60)
if [[ -n ${EXPLORE_SECONDS:-} ]]; then
    tenth=(--random=100000 --pct=100000)
else
    tenth=("${long[@]}")
fi

# look NAME: all that the profile has for one scenario; 0 when it holds.
look() {
    local name=$1 mode
    if [[ $what == long ]] && ((SECONDS < ${EXPLORE_SECONDS:-100000000})); then
        "$explore" "$name" --weak "${long[@]}" --budget="${long_seconds[weak]}" || return 1
        for mode in tso sc; do
            "$explore" "$name" --$mode "${tenth[@]}" --budget="${long_seconds[$mode]}" || return 1
        done
        for mode in weak tso; do
            "$explore" "$name" --symmetric --$mode "${tenth[@]}" --budget="${long_seconds[$mode]}" || return 1
        done
    else
        "$explore" "$name" --weak "${short[@]}" || return 1
        "$explore" "$name" --tso "${shorter[@]}" && "$explore" "$name" --sc "${shorter[@]}" &&
            "$explore" "$name" --symmetric --weak --dfs=2 --max=5000 "${shorter[@]}" &&
            "$explore" "$name" --symmetric --tso "${shorter[@]}"
    fi
}

# A seed gives the same run each time; and the choices that a failure prints bring it back.
check_replay() {
    local log=$work/log/replay command turn
    for turn in 1 2; do
        "$explore" fails_lost_wake --show --random=1000 --seed=7 | grep -v '^# ' >"$log.$turn" # the time differs
    done
    cmp -s "$log.1" "$log.2"
    report $? "one seed, one run" "$log.2"
    command=$(sed -n 's/^  replay: //p' "$log.1")
    $command >"$log.3"
    [[ $? == 1 ]] && grep -q "a wake was lost" "$log.3"
    report $? "the choices that were printed bring the failure back" "$log.3"
    command=$(sed -n 's/^  by its seed: //p' "$log.1")
    $command --show >"$log.4"
    grep -q "a wake was lost" "$log.4"
    report $? "and so does its seed" "$log.4"
}

# by_speed NAME...: those that run most often in a second come first.
by_speed() {
    local name
    for name in "$@"; do
        "$explore" "$name" --weak --random=500 --budget=0.3 2>/dev/null | awk '/ random / { print $(NF - 1), $1; exit }'
    done | sort -rn | awk '{ print $2 }'
}

check_scenarios() {
    local name
    mkdir -p "$work/log"
    for name in "$@"; do
        while (($(jobs -pr | wc -l) >= jobs)); do wait -n; done
        {
            look "$name" >"$work/log/$name" 2>&1
            echo $? >"$work/log/$name.result"
            [[ $what != long ]] || echo "# $name: $(grep -c ' runs ' "$work/log/$name") searches, after $SECONDS s"
        } &
    done
    wait
    for name in "$@"; do
        local runs
        runs=$(awk '/^# [0-9]+ runs/ { n += $2 } END { print n + 0 }' "$work/log/$name")
        report "$(<"$work/log/$name.result")" "$name ($runs schedules)" "$work/log/$name"
    done
    awk '/^# [0-9]+ runs/ { n += $2 } / complete$/ { c++ } END { print "# " n + 0 " schedules, " c + 0 " searches complete" }' \
        $(printf "$work/log/%s " "$@")
    [[ $what != long ]] || awk '
        / weak / && / dfs .* complete$/ { done[$1]++ }
        / weak / && / (random|pct) / && / 1000000 runs / { done[$1]++ }
        END { for (s in done) n += done[s] == 3; print "# " n + 0 " scenarios in full: DFS complete, a million at random, a million by PCT" }' \
        $(printf "$work/log/%s " "$@")
}

# ---- mutants ----

field() { sed -n "/^--- /q; s/^$2: *//p" "$1"; }

# mutate PATCH SCENARIO OPTION...: 0 when the scenario finds it.
mutate() {
    local patch=$1 scenario=$2 dir file recompile=()
    shift 2
    dir=$work/mutants/$(basename "$patch" .patch)
    rm -rf "$dir"
    mkdir -p "$dir"
    cp -a "$base/obj" "$dir/obj"
    cp -a "$root/src" "$dir/src"
    for link in include tests; do ln -sfn "$root/$link" "$dir/$link"; done
    patch -p1 --fuzz=0 --no-backup-if-mismatch -r - -d "$dir" <"$patch" || { echo "it does not apply: tests/mutate/rebase.sh"; return 2; }
    # A header that was changed would have everything compiled again; `recompile` names the files that matter.
    read -r -a recompile < <(field "$patch" recompile)
    while IFS= read -r file; do
        if ((${#recompile[@]} == 0)); then touch "$dir/$file"; else touch -r "$root/$file" "$dir/$file"; fi
    done < <(sed -n 's|^+++ b/\([^\t]*\).*|\1|p' "$patch")
    for file in "${recompile[@]}"; do rm "$dir/obj/${file%.c}.o" || return 2; done
    make -C "$dir" -f "$here/Makefile" ${CC:+CC="$CC"} libexplored.so >"$dir/build.log" 2>&1 || { tail -n 20 "$dir/build.log"; return 2; }
    timeout 300 "$explore" --lib="$dir/libexplored.so" "$scenario" "$@"
    local status=$?
    rm -rf "$dir/obj" "$dir/src"
    [[ $status == 1 ]]
}

check_mutants() {
    local patch name catch found patches=()
    mkdir -p "$work/mutants"
    for patch in "$here"/mutants/*.patch; do
        name=$(basename "$patch" .patch)
        # shellcheck disable=SC2053 # the right side is a pattern
        [[ -z ${only:-} || $name == $only ]] && patches+=("$patch")
    done
    for patch in "${patches[@]}"; do
        name=$(basename "$patch" .patch)
        read -r -a catch < <(field "$patch" catch)
        while (($(jobs -pr | wc -l) >= jobs)); do wait -n; done
        {
            mutate "$patch" "${catch[@]:1}" >"$work/mutants/$name.log" 2>&1
            echo $? >"$work/mutants/$name.result"
        } &
    done
    wait
    for patch in "${patches[@]}"; do
        name=$(basename "$patch" .patch)
        read -r -a catch < <(field "$patch" catch)
        found=$(sed -n 's/^not ok - [^,]*, \(.*\)/\1/p' "$work/mutants/$name.log" | head -n 1)
        report "$(<"$work/mutants/$name.result")" "$name is found by ${catch[1]}${found:+ ($found)}" "$work/mutants/$name.log"
    done
}

case $what in
short | long)
    mkdir -p "$work/log"
    check_replay
    mapfile -t names < <("$explore" --list | awk '{ print $1 }')
    [[ $what != long ]] || mapfile -t names < <(by_speed "${names[@]}")
    check_scenarios "${names[@]}"
    ;;
mutants)
    only=${2:-}
    check_mutants
    ;;
*) check_scenarios "$@" ;;
esac
finish
