#!/usr/bin/env bash
# probes.sh PROGRAM [WORD] - tests the static probes (src/base/probe.h) of a busy program (ticking.c), and the scripts of
# tools/bpftrace; TAP. With WORD only the cases whose name contains it.
set -u
. "$(dirname "$0")/cases.sh"
program=$(realpath "$1")
word=${2:-}
scripts=$(realpath "$(dirname "$0")/../../tools/bpftrace")
work=$(mktemp -d)
pid=
trap '[[ -z $pid ]] || kill -9 "$pid" 2>/dev/null; rm -rf "$work"' EXIT
cd "$work" || exit 1
export LC_ALL=C
unset CC_SIM_SEED CC_RECORD CC_RECORD_LEVEL

# Each has a note, with as many arguments as the manual says.
case_notes() {
    command -v readelf >/dev/null || { echo 'readelf is not installed'; return 77; }
    [[ $(uname -m) =~ ^(x86_64|aarch64)$ ]] || { echo 'there are no probes on this CPU'; return 77; }
    local line
    readelf -nW "$program" 2>error.tmp | awk '/Provider: / { ours = $NF == "ccc" } /^ *Name: / { name = $2 }
        /^ *Arguments: / && ours { print name, NF - 1 }' | sort -u >notes.tmp
    printf '%s\n' 'cancel 3' 'end 1' 'panic 1' 'park 3' 'run 2' 'spawn 3' 'stall 3' 'steal 2' 'timer_fire 2' 'wake 2' 'worker_sleep 1' \
        'worker_wake 2' | diff - notes.tmp
}

# traces SCRIPT TEXT: the script finds that in the program, sooner or later.
traces() {
    local tries
    ((${TEST_SLOWDOWN:-1} <= 4)) || { echo 'the scripts do not depend on a sanitizer'; return 77; }
    command -v bpftrace >/dev/null || { echo 'bpftrace is not installed: nobody has run the scripts'; return 77; }
    timeout 60 bpftrace -e 'interval:ms:1 { exit(); }' >out.tmp 2>&1 || { echo "bpftrace cannot trace here: $(tail -n 1 out.tmp)"; return 77; }
    "$program" >said 2>&1 </dev/null &
    pid=$!
    for tries in 3 9 27; do # seconds, most of which a busy machine needs to begin
        timeout -k 60 -s INT $tries bpftrace -p "$pid" "$scripts/$1" >out.tmp 2>error.tmp
        grep -qE -- "$2" out.tmp && break
    done
    kill -9 "$pid" 2>/dev/null
    wait "$pid" 2>/dev/null
    pid=
    grep -qE -- "$2" out.tmp && return
    grep -q '^@' out.tmp || { echo "bpftrace has traced nothing here: $(tail -n 1 error.tmp)"; return 77; }
    echo "$1 shows no '$2': $(cat out.tmp error.tmp)"
    return 1
}

case_waits() { traces waits.bt '^@waits_us\[2\]: '; }
case_ready() { traces ready.bt '^@ready_us: '; }
case_spawns() { traces spawns.bt '^@spawned\[child, tick.*\]: [1-9]'; }
case_wakers() { traces wakers.bt '^@wakes\[[a-z0-9x, ]+\]: [1-9]'; }

run_cases "$word"
