#!/usr/bin/env bash
# cctop.sh PROGRAM [WORD] - tests cctop on a busy program (ticking.c); TAP. With WORD only the cases whose name
# contains it.
set -u
. "$(dirname "$0")/cases.sh"
program=$(realpath "$1")
word=${2:-}
build=$(dirname "$(dirname "$program")")
work=$(mktemp -d)
pid=
trap '[[ -z $pid ]] || kill -9 "$pid" 2>/dev/null; rm -rf "$work"' EXIT
cd "$work" || exit 1
export LC_ALL=C
matches=-E
unset CC_SIM_SEED CC_RECORD CC_RECORD_LEVEL

# begin: ticking, as $pid.
begin() {
    "$build/tests/apps/ticking" >said 2>&1 </dev/null &
    pid=$!
}

end() {
    kill -9 "$pid" 2>/dev/null
    wait "$pid" 2>/dev/null
    pid=
}

after_case() { [[ -z $pid ]] || end; }

# What is going on is seen sooner or later, whatever else the machine does.
case_rates() {
    local tries text missing=
    begin
    for ((tries = 0; tries < 100; tries++)); do
        missing=
        timeout 120 "$program" -b -n 2 -d 0.3 "$pid" >out.tmp 2>error.tmp
        if grep -q 'not permitted' error.tmp; then
            end
            echo 'this system does not permit to read other processes'
            return 77
        fi
        for text in '^a second: [1-9][0-9.]*k? switches, [1-9][0-9.]*k? spawned, [1-9][0-9.]*k? ended' '[1-9][0-9.]*k? sleep' \
            '^WORKER  SWITCHES/S' '^longest waits:$' "fiber [0-9.]+ 'patient' waits to receive from channel 'never' .*, in count\+" \
            '\(ticking\): [0-9]+ workers, [34] fibers: '; do
            grep -qE -- "$text" out.tmp || missing=$text
        done
        [[ -z $missing && $(grep -c '^longest waits:$' out.tmp) == 2 ]] && break
        sleep 0.1
    done
    end
    [[ -z $missing ]] || { echo "no '$missing' in: $(cat out.tmp error.tmp said)"; return 1; }
}

# Many fibers are read with one system call, and not each with some.
case_many_fibers() {
    local tries reads count=3000
    [[ -e $build/tests/apps/reads.so ]] || { echo 'the library that counts system calls was not built'; return 77; }
    ! grep -q '__[at]san_init' "$program" || { echo 'a sanitizer has to be loaded before all others'; return 77; }
    : >said
    "$build/tests/apps/many_fibers" "$count" >>said 2>&1 </dev/null &
    pid=$!
    for ((tries = 0; tries < 600; tries++)); do
        LD_PRELOAD=$build/tests/apps/reads.so READS=$PWD/reads timeout 120 "$program" -b -n 1 -d 0.01 "$pid" >out.tmp 2>&1
        ! grep -q 'not permitted' out.tmp || { echo 'this system does not permit to read other processes'; return 77; }
        grep -q ready said && grep -q "0 run, 0 ready, $((count + 1)) wait" out.tmp && break
        sleep 0.1
    done
    reads=$(cat reads)
    end
    (($(grep -cE '^  for .* s, fiber .* waits .*, in (hold|want|own|follow)' out.tmp) >= 20 && reads > 0 && reads < count)) ||
        { echo "$reads reads for $count fibers: $(cat out.tmp said)"; return 1; }
}

case_the_end() {
    begin
    local tries
    for ((tries = 0; tries < 100; tries++)); do
        timeout 120 "$program" -b -n 1 -d 0.01 "$pid" >out.tmp 2>&1 && break
        ! grep -q 'not permitted' out.tmp || { echo 'this system does not permit to read other processes'; return 77; }
        sleep 0.1
    done
    timeout 120 "$program" -b -d 0.01 "$pid" >end.tmp 2>&1 &
    local top=$!
    for ((tries = 0; tries < 600; tries++)); do
        grep -qs 'longest waits' end.tmp && break
        sleep 0.1
    done
    end
    wait "$top" && grep -q '(ticking) has ended' end.tmp || { echo "status $?: $(tail -n 3 end.tmp)"; return 1; }
}

case_refusals() {
    ends 2 '^usage: cctop' && ends 2 '^usage: cctop' -x 1 && ends 2 '^usage: cctop' -n 0 1 && ends 2 '^usage: cctop' -d x 1 &&
        ends 0 '^usage: cctop' -h && ends 1 'there is no such process' 999999999 && ends 1 'there is no such process' core
}

run_cases "$word"
