#!/usr/bin/env bash
# limits.sh - programs of bench/work where CPUs are short: beside two programs that compute, in a cgroup with a quota
# of half a CPU and of one and a half, and pinned to one CPU. With eight workers each.
#
#   bench/work/limits.sh [-s SCALE] [-w WORKERS] [-c CONDITION] [ROW ...]
#
# CONDITION: hogs, half, more, pinned; default: all. Prints the condition before the line of each program. Rivals take
# part if python3 tools/bench has built them. Quotas need a cgroup tree that may be written: v2, or v1 with `cpu`.
set -u
cd "$(dirname "$0")/../.." || exit 1
scale=0.3 workers=8 conditions="hogs half more pinned"
while getopts s:w:c: option; do
    case $option in
    s) scale=$OPTARG ;;
    w) workers=$OPTARG ;;
    c) conditions=$OPTARG ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
rows=("$@")
((${#rows[@]})) || rows=(actors broadcast_chan nest tree waves service_5k)

group=
hogs=()
clean_up() {
    ((${#hogs[@]})) && kill "${hogs[@]}" && wait "${hogs[@]}" 2>/dev/null
    hogs=()
    [[ -z $group ]] || rmdir "$group"
    group=
}
trap clean_up EXIT

# make_group QUOTA: in microseconds of each 100 ms
make_group() {
    local root=/sys/fs/cgroup
    if [[ -e $root/cgroup.controllers ]]; then
        group=$root/ccc_limits.$$
        mkdir "$group" 2>/dev/null && echo "$1 100000" >"$group/cpu.max"
    else
        group=$root/cpu/ccc_limits.$$
        mkdir "$group" 2>/dev/null && echo 100000 >"$group/cpu.cfs_period_us" && echo "$1" >"$group/cpu.cfs_quota_us"
    fi
}

run() { # CONDITION COMMAND...
    local condition=$1
    shift
    case $condition in
    half | more) (echo "$BASHPID" >"$group/cgroup.procs" && exec "$@") ;;
    pinned) taskset -c 0 "$@" ;;
    *) "$@" ;;
    esac
}

for condition in $conditions; do
    case $condition in
    hogs)
        for _ in 1 2; do
            while :; do :; done &
            hogs+=($!)
        done
        ;;
    half) make_group 50000 || { echo "$condition: no cgroup with quotas"; continue; } ;;
    more) make_group 150000 || { echo "$condition: no cgroup with quotas"; continue; } ;;
    esac
    for row in "${rows[@]}"; do
        echo "$condition $(run "$condition" build/release/bench/work/"$row" "$workers" "$scale")"
        for rival in go tokio; do
            [[ -x build/bench/$rival ]] || continue
            echo "$condition $(run "$condition" build/bench/$rival "$row" "$workers" "$scale")"
        done
    done
    clean_up
done
