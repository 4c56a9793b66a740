#!/usr/bin/env bash
# Checks the protocol models with Spin: each model must hold, and each of its mutants must fail, or the model no longer detects its bugs.
# TAP on standard output. Usage: tests/model/run.sh [BUILD_DIR]
set -u
here=$(cd "$(dirname "$0")" && pwd)
work=${1:-$(mktemp -d)}
mkdir -p "$work"
command -v spin >/dev/null || { echo "not ok 1 - spin is not installed: apt-get install spin"; exit 1; }

jobs=${JOBS:-$(nproc)}

# Most searches take less than a second, and compiling them with optimisation would take longer. Two models have millions of states.
declare -A optimised=([mutex]=-O1 [biased_select]=-O1)

# A mutant fails soon and not deep: page faults of tables for more would be most of its time. An insufficient depth is reported.
# check MODEL [MUTANT]: 0 when it holds, 1 when an error was found, 2 when the check itself did not work.
check() {
    local dir="$work/$1-${2:-model}" out level=-O0 tables=(-m1000000)
    if [[ -n ${2:-} ]]; then
        tables=(-m20000 -w20)
    else
        level=${optimised[$1]:--O0}
    fi
    mkdir -p "$dir"
    (cd "$dir" && spin ${2:+-D$2} -a "$here/$1.pml" >spin.log 2>&1 && ${CC:-gcc} $level -DSAFETY -DCOLLAPSE -DMEMLIM=4096 -w -o pan pan.c >cc.log 2>&1) || return 2
    out=$(cd "$dir" && ./pan "${tables[@]}" 2>&1) || return 2
    grep -q 'errors: ' <<<"$out" || return 2
    grep -Eq 'max search depth too small|out of memory' <<<"$out" && return 2
    sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' <<<"$out" | awk '{ printf "%d\n", $1 }' >"$dir/states"
    grep -q 'errors: 0' <<<"$out"
}

# The mutants are listed in the model's opening comment, one a line.
list() {
    for file in "$here"/*.pml; do
        local model
        model=$(basename "$file" .pml)
        echo "$model"
        sed -n '/each must fail/,/\*\//s/^ \*  *\([A-Z_][A-Z_]*\) .*/\1/p' "$file" | sed "s/^/$model /"
    done
}

while read -r model mutant; do
    while (($(jobs -pr | wc -l) >= jobs)); do wait -n; done
    {
        check "$model" $mutant
        echo $? >"$work/$model-${mutant:-model}.result"
    } &
done < <(list)
wait

number=0 failed=0 states=0
report() { # ok?, name
    number=$((number + 1))
    if [ "$1" = 0 ]; then echo "ok $number - $2"; else echo "not ok $number - $2"; failed=$((failed + 1)); fi
}
while read -r model mutant; do
    result=$(<"$work/$model-${mutant:-model}.result")
    states=$((states + $(cat "$work/$model-${mutant:-model}/states" 2>/dev/null || echo 0)))
    case $result/$mutant in
    */) report "$result" "model $model holds" ;;
    1/*) report 0 "model $model, mutant $mutant is caught" ;;
    0/*) report 1 "model $model, mutant $mutant is NOT caught" ;;
    *) report 1 "model $model, mutant $mutant could not be checked (see $work)" ;;
    esac
done < <(list)
echo "# $states states"
echo "1..$number"
[ "$failed" = 0 ]
