#!/usr/bin/env bash
# ccps.sh PROGRAM [WORD] - tests ccps, on processes that hang and on core files; TAP. With WORD only the cases whose name
# contains it.
set -u
. "$(dirname "$0")/cases.sh"
program=$(realpath "$1")
word=${2:-}
build=$(dirname "$(dirname "$program")")
source=$(realpath "$(dirname "$0")/../..")
work=$(mktemp -d)
pid=
trap '[[ -z $pid ]] || kill -9 "$pid" 2>/dev/null; rm -rf "$work"' EXIT
cd "$work" || exit 1
export LC_ALL=C
matches=-E
export TSAN_OPTIONS=${TSAN_OPTIONS:+$TSAN_OPTIONS:}atexit_sleep_ms=0
unset CC_SIM_SEED CC_RECORD CC_RECORD_LEVEL
export CC_DEADLOCK_ABORT=0 # what hangs stays to be looked at
export CC_DUMP_SIGNAL=USR1 # what a shell starts in the background ignores SIGQUIT

# shows TEXT...: ccps shows all of that of $pid.
shows() {
    local text
    timeout 120 "$program" "$pid" >out.tmp 2>error.tmp || return
    for text; do grep -qE -- "$text" out.tmp || return; done
}

# begin PROGRAM TEXT...: starts it, as $pid, and waits until ccps shows all texts.
begin() {
    local tries started=$1
    shift
    : >said
    "$started" >>said 2>&1 </dev/null & # appends: what it says after the file was emptied stands at its beginning
    pid=$!
    for ((tries = 0; tries < 300; tries++)); do
        shows "$@" && return
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.1
    done
    end
    if grep -q 'not permitted' error.tmp; then
        echo 'this system does not permit to read other processes'
        return 77
    fi
    echo "$started: not all of '$*' is in: $(cat out.tmp error.tmp said)"
    return 1
}

end() {
    kill -9 "$pid" 2>/dev/null
    wait "$pid" 2>/dev/null
    pid=
}

after_case() { [[ -z $pid ]] || end; }

# Of what a program has said, the dump; of what ccps has said, all.
asked() {
    sed -n '/^ccc: dump: /,/^ccc: end of dump/p; /^process /,$p' "$1"
}

# The lines about fibers and threads that wait, without how long.
lines() {
    asked "$1" | sed -nE 's/^ *(.* waits .*), for [0-9.e+-]+( to [0-9.e+-]+)? s$/\1/p; /^[0-9]+ fibers, /p'
}

# The outermost function of each stack.
outermost() {
    asked "$1" | awk '/^    #[0-9]/ { f = $0; next } f != "" { print f; f = "" } END { if (f != "") print f }' |
        sed -E 's/^ *#[0-9]+ //; s/.* in //; s/[+ ].*//'
}

# What the program says itself, asked by the dump signal, and what ccps says, are the same.
same_as_dump() {
    local tries
    : >said
    kill -USR1 "$pid"
    for ((tries = 0; tries < 300; tries++)); do
        grep -q '^ccc: end of dump' said && break
        sleep 0.1
    done
    lines said >own.lines
    outermost said >own.places
    ends 0 worker -g "$pid" || return
    lines out.tmp >our.lines
    outermost out.tmp >our.places
    [[ -s own.lines && -s own.places ]] && diff own.lines our.lines && diff own.places our.places || { cat said out.tmp; return 1; }
}

# The thread sanitizer keeps signals back until the thread makes a call that it watches: the dump may never come.
signals_come() {
    ! nm "$build/examples/hangs/lock_order" | grep -q ' [^w] __tsan_init' || { echo 'the thread sanitizer keeps the signal back that asks for a dump'; return 77; }
}

case_as_the_dump_cycle() {
    signals_come || return
    begin "$build/examples/hangs/lock_order" "'saver' waits for mutex .*'spender', for" "'spender' waits for mutex .*'saver', for" \
        '^OS thread' || return
    same_as_dump
    local status=$?
    end
    return $status
}

case_as_the_dump_no_sender() {
    signals_come || return
    begin "$build/examples/hangs/no_sender" "'server' waits to receive from channel 'jobs' \(0x[0-9a-f]+, capacity 16, 0 buffered\)" \
        "OS thread [0-9]+ waits for the end of fiber 0.1 'server'" || return
    same_as_dump
    local status=$?
    end
    return $status
}

# A fiber that blocks its worker in the kernel; as it is, and stopped for the time of the look.
case_a_blocked_worker() {
    begin "$build/examples/hangs/blocked" 'fiber 0.1 runs on worker' || return
    ends 0 'read_settings' -s "$pid" && kill -0 "$pid" && ends 0 'in none:' -t "$pid" && ends 0 'in none:' -t "$pid"
    local status=$?
    end
    return $status
}

# many_fibers FIBERS: starts a program with that many fibers, as $pid, and waits until ccps can read it.
many_fibers() {
    local tries
    : >said
    "$build/tests/apps/many_fibers" "$1" >>said 2>&1 </dev/null &
    pid=$!
    for ((tries = 0; tries < 3000; tries++)); do
        grep -q ready said && timeout 120 "$program" -g "$pid" >out.tmp 2>error.tmp && return
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.1
    done
    end
    ! grep -q 'not permitted' error.tmp || { echo 'this system does not permit to read other processes'; return 77; }
    echo "many_fibers $1: $(head -n 5 out.tmp) $(cat error.tmp said)"
    return 1
}

# When the first byte arrives, the process already continues: a slow reader, or none, does not stop it.
case_stopped_while_it_is_read_only() {
    local reader state status=0
    many_fibers 999 || return
    mkfifo pipe && exec 9<>pipe || return
    CCPS_STOP_MS=60000 timeout 120 "$program" -s "$pid" >pipe 2>error.tmp &
    reader=$!
    read -r -N 1 -t 120 -u 9 || status=$?
    state=$(grep -h '^State:.*tracing' /proc/"$pid"/task/*/status)
    kill "$reader" 2>/dev/null
    wait "$reader" 2>/dev/null
    exec 9>&-
    rm pipe
    end
    ((status == 0)) && [[ -z $state ]] || { echo "status $status, $state, $(cat error.tmp)"; return 1; }
}

# Time is up at once, before anything is read.
case_stopped_for_so_long_at_most() {
    many_fibers 99 || return
    CCPS_STOP_MS=0 ends 0 'was let go on before all of it was read' -s "$pid" && CCPS_STOP_MS=60000 ends 0 ': [0-9]+ workers?, [0-9]+ fibers' -s "$pid" &&
        { ! grep 'was let go on' out.tmp; } && CCPS_STOP_MS=x ends 1 'CCPS_STOP_MS=x: it is a number' -s "$pid"
    local status=$?
    kill -0 "$pid" || status=1
    end
    return $status
}

# Each names another one, in a time that grows with their number and not with its square.
case_many_fibers() {
    local count=12000 status=1 tries
    ! grep -q '__[at]san_init' "$build/tests/apps/many_fibers" && ((${TEST_SLOWDOWN:-1} <= 4)) || count=300
    many_fibers "$count" || return
    for ((tries = 0; tries < 100 && status != 0; tries++)); do # until all wait
        (ulimit -t 60 && ends 0 "held by fiber [0-9.]* 'holder'" -g "$pid") >reason || break
        grep -q "^$((count / 3)) fibers, PARKED, mutex:" out.tmp && grep -q 'waits for the end of fiber' out.tmp && ! grep -q 'has ended' out.tmp &&
            status=0 || sleep 0.1
    done
    ((status == 0)) && (ulimit -t 60 && ends 0 "'holder'" -t "$pid") >reason && ! grep 'has ended' out.tmp >reason || status=1
    end
    ((status == 0)) || { cat reason; head -n 40 out.tmp; return 1; }
}

# counts_reads: the system calls of this program can be counted (reads.c).
counts_reads() {
    [[ -e $build/tests/apps/reads.so ]] || { echo 'the library that counts system calls was not built'; return 77; }
    ! grep -q '__[at]san_init' "$program" || { echo 'a sanitizer has to be loaded before all others'; return 77; }
}

# Many fibers are read with one system call, and not each with some; scopes with two.
case_few_system_calls() {
    local count=3000 reads
    counts_reads && many_fibers "$count" || return
    LD_PRELOAD=$build/tests/apps/reads.so READS=$PWD/reads ends 0 ', [0-9]+ fibers$' -g "$pid" || return
    end
    reads=$(cat reads)
    ((reads > 0 && reads < count)) || { echo "$reads reads for $count fibers"; return 1; }
}

# A list of thousands is of no use: groups, unless each is asked for.
case_more_than_a_list() {
    local tries
    many_fibers 1200 || return
    for ((tries = 0; tries < 300; tries++)); do # until all have run
        ends 0 'those that stand in the same place are shown together; -a shows each' "$pid" || return
        grep -q '^400 fibers, PARKED, mutex:$' out.tmp && break
        sleep 0.1
    done
    grep -q '^  and 392 more like them$' out.tmp && (($(wc -l <out.tmp) < 300)) && grep -qE '^[0-9]+ fibers in scopes that are left out$' out.tmp ||
        { echo "no groups: $(head -n 80 out.tmp)"; return 1; }
    ends 0 "^fiber 0.1 'holder' waits for event" -a "$pid" && (($(grep -c '^fiber ' out.tmp) == 1201)) && ! grep 'left out' out.tmp || return
    ends 0 '^  and 76[0-9] more$' -t "$pid" && ends 0 "fiber 0.1 'holder' waits for event" -ta "$pid" && (($(grep -c '^ *fiber ' out.tmp) == 1201)) || return
    CCPS_STOP_MS=60000 ends 0 '^400 fibers, PARKED, mutex:$' -s "$pid" && [[ $(grep -c "^  fiber .* waits for mutex .*'holder'" out.tmp) == 8 ]] || return
    end
}

case_a_stripped_program() {
    command -v strip >/dev/null || { echo 'strip is not installed'; return 77; }
    strip -o lock_order "$build/examples/hangs/lock_order" || return
    begin "$PWD/lock_order" "'saver' waits for mutex .*'spender', for" && grep -q '^    #0 lock_order+0x' out.tmp
    local status=$?
    end
    return $status
}

# It has no .eh_frame_hdr: the records of its functions are found by its section headers.
case_a_static_program() {
    local line status=0
    ! grep -q '__[at]san_init' "$build/tests/apps/many_fibers" || { echo 'sanitizers are not linked statically'; return 77; }
    "${CC:-cc}" -g -O1 -static -Wl,--no-eh-frame-hdr -I "$source/include" "$source/tests/apps/many_fibers.c" "$build/libccc.a" -lm -pthread -o many_static 2>link.tmp ||
        { echo "a program cannot be linked statically: $(tail -n 1 link.tmp)"; return 77; }
    strip -o many_stripped many_static || cp many_static many_stripped
    for program_of in "$PWD/many_static" "$PWD/many_stripped"; do
        begin "$program_of" "'holder' waits for event" 'waits for mutex' 'waits for 1 child of nursery' 'waits for the end of fiber' || return
        ! grep -q 'no unwind information leads further up' out.tmp || status=1
        [[ $program_of == *stripped ]] || for line in hold want own follow; do
            grep -qE "^    #[0-9] $line\+0x" out.tmp || status=1
        done
        ((status == 0)) || { cat out.tmp; return 1; }
        end
    done
}

# While the process runs as fast as it can: many reads, and none of them fails.
case_a_program_that_runs() {
    local i status=0
    "$build/examples/hangs/lock_order" >said 2>&1 </dev/null &
    pid=$!
    for ((i = 0; i < 50; i++)); do
        timeout 120 "$program" "$pid" >out.tmp 2>&1
        status=$?
        ((status <= 1)) || break
    done
    end
    ((status <= 1)) || { echo "status $status: $(cat out.tmp)"; return 1; }
}

case_refusals() {
    ends 2 '^usage: ccps' && ends 2 '^usage: ccps' -x && ends 2 '^usage: ccps' 1 2 && ends 0 '^usage: ccps' -h &&
        ends 1 'there is no such process' 999999999 && ends 1 'there is no such process' 0 &&
        ends 1 'No such file' nothing && echo text >text && ends 1 'is no core file' text && ends 1 'is no core file' "$program" || return
    sleep 60 &
    pid=$!
    ends 1 'there is no libccc in it' "$pid" || ends 1 'not permitted' "$pid" >/dev/null
    local status=$?
    end
    return $status
}

# A copy of a program whose tables, one for each copy of the library in it, have another version.
case_another_version() {
    local at
    cp "$build/examples/hangs/no_sender" other || return
    for at in $(grep -obUa 'cclayout' other | cut -d: -f1); do
        printf '\143' | dd of=other bs=1 seek=$((at + 8)) conv=notrunc 2>/dev/null
    done
    [[ -n $at ]] || { echo 'the table is not found in the program'; return 1; }
    ./other >said 2>&1 </dev/null &
    pid=$!
    local tries status=1
    for ((tries = 0; tries < 100; tries++)); do # it may not have been loaded yet
        ends 1 'describes itself in version 99, and this program knows version' "$pid" >reason && status=0 && break
        sleep 0.1
    done
    end
    ! grep -q 'not permitted' reason || { echo 'this system does not permit to read other processes'; return 77; }
    ((status == 0)) || cat reason
    return $status
}

# has_cores: this system writes core files here.
has_cores() {
    case $(cat /proc/sys/kernel/core_pattern 2>/dev/null) in
    core*) ;;
    *) echo 'this system writes core files to another place'; return 77 ;;
    esac
    ulimit -c unlimited || { echo 'core files are forbidden'; return 77; }
    rm -f core*
    export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}disable_coredump=0 TSAN_OPTIONS=${TSAN_OPTIONS:+$TSAN_OPTIONS:}disable_coredump=0
}

find_core() {
    core=$(find . -name 'core*' -size +0 | head -n 1)
    [[ -n $core ]] || { echo "no core file was written: $(tail -n 1 said)"; return 77; }
}

# Fibers in every kind of wait.
case_a_core_file() {
    local line
    [[ -x $build/tests/gdb/parked ]] || { echo 'the program that dumps core was not built'; return 77; }
    has_cores || return
    { timeout 300 "$build/tests/gdb/parked" crash; } >said 2>&1
    find_core || return
    ends 0 '2 workers, 16 fibers' "$core" || return
    for line in "'cook' waits to receive from channel 'orders' \(0x" "'servant' waits to send on channel 'plates' \(0x[0-9a-f]+, capacity 2, 2 buffered\)" \
        "'contender' waits for mutex 0x[0-9a-f]+, held by fiber [0-9.]+ 'holder'" "'joiner' waits for the end of fiber [0-9.]+ 'cook'" \
        "'sleeper' waits for a point in time" "'chooser' waits for the first of 3 cases: receive from channel 'orders'.*; a point in time," \
        "'undecided' waits for nothing: none of the cases of its select \(2\) can ever be ready" "'chef' waits for 2 children of nursery 'kitchen'" "'spinner' runs on worker" "nursery 'kitchen' \(0x[0-9a-f]+\): 2 children, 3 fibers in it, deadline in" \
        '#[0-9] wait_for_order[.+]' '#[0-9] cook_orders\+' '#[0-9] serve\+' '#[0-9] spin_here\+' '#[0-9] run_it\+'; do
        grep -qE -- "$line" out.tmp || { echo "no '$line' in: $(cat out.tmp)"; return 1; }
    done
    ! grep -q 'cc__context_first\|cc__sched_park' out.tmp || { echo "frames of the library's own: $(cat out.tmp)"; return 1; }
    ends 0 '^4 fibers, PARKED, channel:$' -g "$core" && ends 0 "^  nursery 'kitchen'" -t "$core"
}

# gdb's own gcore may leave out the memory with the fibers: they are listed, or it is said that they are missing.
case_a_core_file_of_gcore() {
    command -v gcore >/dev/null || { echo 'gcore is not installed'; return 77; }
    ((${TEST_SLOWDOWN:-1} <= 4)) || { echo 'a sanitizer takes all addresses'; return 77; }
    begin "$build/examples/hangs/lock_order" "'saver' waits for mutex .*'spender', for" || return
    timeout 120 gcore -o made "$pid" >said 2>&1 && [[ -s made.$pid ]] || { echo "gcore: $(tail -n 1 said)"; return 77; }
    timeout 60 "$program" "made.$pid" >out.tmp 2>&1
    grep -qE '^fiber 1.1.* waits for mutex|(records of fibers cannot be read|fibers are missing): the core file does not have them' out.tmp ||
        { echo "neither fibers nor why: $(cat out.tmp)"; return 1; }
}

# Cut short, or with bytes changed anywhere: an error or a list, never a crash, and an end.
case_damaged_core_files() {
    local size status i rounds=$((${TEST_SLOWDOWN:-1} > 4 ? 10 : 24))
    has_cores || return
    begin "$build/examples/hangs/lock_order" "'saver' waits for mutex .*'spender', for" || return
    kill -ABRT "$pid"
    wait "$pid" 2>/dev/null
    pid=
    find_core && ends 0 "'saver' waits for mutex .*'spender', for" "$core" || return
    size=$(stat -c %s "$core")
    for i in 10 63 64 500 4000 70000 $((size / 2)) $((size - 1)); do
        head -c "$i" "$core" >bad
        timeout 60 "$program" bad >out.tmp 2>&1
        status=$?
        ((status <= 1)) || { echo "cut at $i: status $status: $(tail -n 20 out.tmp)"; return 1; }
    done
    # Where there is something to change: the positions of bytes that are not 0.
    cmp -l "$core" /dev/zero 2>/dev/null | awk '{ print $1 - 1 }' >places
    for ((i = 1; i <= rounds; i++)); do
        cp --sparse=always "$core" bad
        # The headers and notes in every other round; else anywhere.
        awk -v seed="$i" 'BEGIN { srand(seed) } { place[NR] = $1 } END { n = seed % 2 ? NR : (NR < 6000 ? NR : 6000)
            for (k = 0; k < 12; k++) print place[int(rand() * n) + 1], int(rand() * 256) }' places >changes
        while read -r at byte; do
            printf "\\x$(printf %x "$byte")" | dd of=bad bs=1 seek="$at" conv=notrunc 2>/dev/null
        done <changes
        timeout 60 "$program" -g bad >out.tmp 2>&1
        status=$?
        ((status <= 1)) || { echo "round $i: status $status, changed: $(tr '\n' ';' <changes) $(tail -n 20 out.tmp)"; return 1; }
    done
}

run_cases "$word"
