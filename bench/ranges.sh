#!/usr/bin/env bash
# ranges.sh [-r TIMES] [-s SCALE] - sums, sorts and unbalanced trees over ranges, beside oneTBB and OpenMP: the programs run in
# turn, the minimum of all repetitions counts, and a table is printed. Build first: make. Needs g++ and libtbb-dev, which
# `make bench` installs; what is not there is left out.
set -u
cd "$(dirname "$0")/.." || exit 1
times=5 scale=1
while getopts r:s: option; do
    case $option in
    r) times=$OPTARG ;;
    s) scale=$OPTARG ;;
    *) exit 2 ;;
    esac
done
ours=build/release/bench out=build/bench
mkdir -p "$out"
rivals=()
g++ -std=c++17 -O2 -DNDEBUG bench/rivals/tbb.cpp -o "$out/tbb" -ltbb 2>"$out/tbb.log" && rivals+=(tbb)
g++ -std=c++17 -O2 -DNDEBUG -fopenmp bench/rivals/openmp.cpp -o "$out/openmp" 2>"$out/openmp.log" && rivals+=(openmp)

declare -A best
# note KEY COMMAND...: keeps the smallest fifth word.
note() {
    local key=$1 ns
    shift
    ns=$("$@" | awk '{ print $5 }')
    [[ -n $ns ]] || { echo "$* failed" >&2; exit 1; }
    [[ -n ${best[$key]:-} ]] && awk -v a="${best[$key]}" -v b="$ns" 'BEGIN { exit !(a <= b) }' || best[$key]=$ns
}
for ((i = 0; i < times; i++)); do
    for row in range_sum range_sort range_tree; do
        for workers in 1 2; do
            note "ccc $row $workers" "$ours/$row" "$workers" "$scale"
            for rival in "${rivals[@]}"; do note "$rival $row $workers" "$out/$rival" "$row" "$workers" "$scale"; done
        done
    done
done

echo "| one worker / two | libccc | oneTBB | OpenMP (gcc) | the better of the two / libccc |"
echo "|---|---|---|---|---|"
for row in range_sum range_sort range_tree; do
    line="| \`$row\` |"
    for runtime in ccc tbb openmp; do
        line+=" ${best[$runtime $row 1]:-–} / ${best[$runtime $row 2]:-–} |"
    done
    for workers in 1 2; do
        ratio=$(awk -v us="${best[ccc $row $workers]}" -v a="${best[tbb $row $workers]:-1e18}" -v b="${best[openmp $row $workers]:-1e18}" \
            'BEGIN { better = a < b ? a : b; if (better < 1e17) printf "%.2f", better / us; else printf "–" }')
        [[ $workers == 1 ]] && line+=" $ratio /" || line+=" $ratio |"
    done
    echo "$line"
done
