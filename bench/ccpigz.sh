#!/usr/bin/env bash
# ccpigz.sh - ccpigz beside gzip and pigz: time, memory and size, in one run.
#
#   bench/ccpigz.sh                   100 MB of this machine's files, level 6, 1 2 4 8 workers, five times
#   bench/ccpigz.sh -m 20 -r 9        20 MB, nine times           -w "1 2"    other numbers of workers
#   bench/ccpigz.sh -l 1              another level               -f FILE     this file instead
#   bench/ccpigz.sh -x                with real-time priority, which root may have: for a machine that is busy otherwise.
#                                     After each run it rests for as long, so that others get on, too.
#
# In each repetition everybody runs once before anybody runs again, so that a disturbance meets all. Output goes to
# /dev/null, input comes from the page cache. Columns: the least and the middle wall time, the least CPU time (user and
# system), the largest memory, and how many times as fast as pigz with as many workers, by wall and by CPU time. The last
# line says what share of the CPUs other programs used meanwhile: with more than a few per cent, and without -x, the wall
# times are worth little. All lines are kept in build/bench/ccpigz.txt.
set -u
cd "$(dirname "$0")/.." || exit 1
megabytes=100 repeats=5 worker_list="1 2 4 8" level=6 corpus="" rest=0 priority=()
while getopts m:r:w:l:f:x option; do
    case $option in
    m) megabytes=$OPTARG ;;
    r) repeats=$OPTARG ;;
    w) worker_list=$OPTARG ;;
    l) level=$OPTARG ;;
    f) corpus=$OPTARG ;;
    x) rest=1 priority=(chrt -f 5) ;;
    *) exit 2 ;;
    esac
done
for needed in gzip pigz /usr/bin/time; do
    command -v "$needed" >/dev/null || { echo "$needed is needed." >&2; exit 1; }
done

out=build/bench
mkdir -p "$out"
if ! { cmake --preset release && cmake --build --preset release -j "${JOBS:-$(nproc)}" --target ccpigz; } >"$out/build.log" 2>&1; then
    cat "$out/build.log"
    exit 1
fi
ours=build/release/apps/ccpigz
if [[ -z $corpus ]]; then # every seventh file, so that programs, libraries and texts are all there
    corpus=$out/corpus
    find /usr/bin /usr/lib /usr/share -type f -size +2k 2>/dev/null | LC_ALL=C sort | awk 'NR % 7 == 0' | tr '\n' '\0' |
        xargs -0 cat 2>/dev/null | head -c $((megabytes * 1000000)) >"$corpus"
fi

pigz -"$level" -c "$corpus" >"$out/pigz.gz"
"$ours" -"$level" --engine=zlib -c "$corpus" >"$out/zlib.gz"
"$ours" -"$level" -c "$corpus" >"$out/own.gz"
gzip -"$level" -c "$corpus" >"$out/gzip.gz"
for file in pigz zlib own gzip; do
    "$ours" -dc "$out/$file.gz" | cmp - "$corpus" && gzip -dc "$out/$file.gz" | cmp - "$corpus" || exit 1
done
echo "level $level, $(stat -c %s "$corpus") bytes become:"
for file in gzip pigz zlib own; do
    awk -v name="$file" -v size="$(stat -c %s "$out/$file.gz")" -v pigz="$(stat -c %s "$out/pigz.gz")" \
        'BEGIN { sub(/zlib/, "ccpigz, zlib", name); sub(/own/, "ccpigz", name); printf "  %-14s %11d  %+.2f %% of pigz\n", name, size, 100 * (size / pigz - 1) }'
done

# How long all CPUs together have worked, and existed, in hundredths of a second.
machine() { awk '/^cpu / { print $2 + $3 + $4 + $7 + $8, $2 + $3 + $4 + $5 + $6 + $7 + $8 + $9 }' /proc/stat; }

lines=$out/ccpigz.txt
: >"$lines"
# measure WHAT WORKERS WHO COMMAND...: a line "what workers who wall cpu memory".
measure() {
    local what=$1 workers=$2 who=$3 from=$EPOCHREALTIME to
    shift 3
    /usr/bin/time -q -o "$out/time.txt" -f '%U %S %M' "${priority[@]}" "$@" >/dev/null || { echo "$* failed" >&2; exit 1; }
    to=$EPOCHREALTIME
    read -r user system memory <"$out/time.txt"
    awk -v a="$from" -v b="$to" -v u="$user" -v s="$system" -v m="$memory" -v head="$what $workers $who" \
        'BEGIN { printf "%s %.4f %.3f %d\n", head, b - a, u + s, m }' >>"$lines"
    ((rest)) && sleep "$(awk -v a="$from" -v b="$to" 'BEGIN { print b - a }')"
}

begin=$(machine)
for ((round = 0; round < repeats; round++)); do
    measure compress 1 gzip gzip -"$level" -c "$corpus"
    measure expand-pigz 1 gzip gzip -dc "$out/pigz.gz"
    for w in $worker_list; do
        measure compress "$w" pigz pigz -"$level" -p "$w" -c "$corpus"
        measure compress "$w" ccpigz-zlib "$ours" -"$level" -p "$w" --engine=zlib -c "$corpus"
        measure compress "$w" ccpigz "$ours" -"$level" -p "$w" -c "$corpus"
        measure expand-pigz "$w" pigz pigz -p "$w" -dc "$out/pigz.gz"
        measure expand-pigz "$w" ccpigz "$ours" -p "$w" -dc "$out/pigz.gz"
        measure expand-own "$w" pigz pigz -p "$w" -dc "$out/own.gz"
        measure expand-own "$w" ccpigz "$ours" -p "$w" -dc "$out/own.gz"
    done
done
end=$(machine)

awk '
{
    key = $1 " " $2 " " $3
    if (!(key in count)) order[++keys] = key
    wall[key, ++count[key]] = $4
    if (!(key in cpu) || $5 < cpu[key]) cpu[key] = $5
    if ($6 > memory[key]) memory[key] = $6
    all += $5
}
function sort_walls(key,    i, j, v) {
    for (i = 2; i <= count[key]; i++) {
        v = wall[key, i]
        for (j = i - 1; j >= 1 && wall[key, j] > v; j--) wall[key, j + 1] = wall[key, j]
        wall[key, j + 1] = v
    }
}
END {
    for (k = 1; k <= keys; k++) sort_walls(order[k])
    printf "\n%-12s %7s %-12s %8s %8s %8s %8s %8s %8s %8s\n", "", "workers", "", "least s", "middle s", "CPU s", "MB", "wall x", "CPU x", "memory x"
    n = split("compress expand-pigz expand-own", what, " ")
    for (w = 1; w <= n; w++) {
        for (k = 1; k <= keys; k++) {
            split(order[k], part, " ")
            if (part[1] != what[w]) continue
            key = order[k]
            base = part[1] " " part[2] " pigz"
            printf "%-12s %7s %-12s %8.3f %8.3f %8.2f %8.1f", part[1], part[2], part[3], wall[key, 1], wall[key, int((count[key] + 1) / 2)], cpu[key], memory[key] / 1000
            if ((base in cpu) && part[3] != "pigz" && part[3] != "gzip")
                printf " %8.2f %8.2f %8.2f", wall[base, 1] / wall[key, 1], cpu[base] / cpu[key], memory[key] / memory[base]
            print ""
        }
    }
}' "$lines"
awk -v before="$begin" -v after="$end" -v own="$(awk '{ s += $5 } END { print s }' "$lines")" 'BEGIN {
    split(before, b, " "); split(after, a, " ")
    printf "\nOther programs used %.0f %% of the CPUs meanwhile.\n", 100 * (a[1] - b[1] - 100 * own) / (a[2] - b[2]) }'
