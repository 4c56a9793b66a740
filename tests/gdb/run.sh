#!/usr/bin/env bash
# run.sh PROGRAM - tests the commands of tools/gdb/ccc-gdb.py on PROGRAM (parked.c), as a process and as a core file. TAP.
set -u
program=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
script=$here/../../tools/gdb/ccc-gdb.py

skip_all() {
    echo "1..1"
    echo "ok 1 - gdb # SKIP $1"
    exit 77
}
command -v gdb >/dev/null || skip_all "gdb is not installed"
gdb -batch -nx -ex 'python print("has " + "python")' 2>&1 | grep -q 'has python' || skip_all "this gdb has no Python"

folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1

questions=(
    -ex 'echo == fibers\n' -ex 'cc fibers'
    -ex 'echo == cook\n' -ex 'cc fiber cook bt'
    -ex 'echo == second cook\n' -ex "cc fiber 'second cook' bt"
    -ex 'echo == servant\n' -ex 'cc fiber servant bt full'
    -ex 'echo == chooser\n' -ex 'cc fiber chooser bt'
    -ex 'echo == spinner\n' -ex 'cc fiber spinner bt'
    -ex 'echo == callee\n' -ex 'cc fiber callee bt'
    -ex 'echo == caller\n' -ex 'cc fiber caller bt'
    -ex 'echo == depth\n' -ex 'cc fiber cook bt 2'
    -ex 'echo == word\n' -ex 'cc fibers contender'
    -ex 'echo == orders\n' -ex 'cc chan orders'
    -ex 'echo == plates\n' -ex 'cc chan *plates'
    -ex 'echo == nurseries\n' -ex 'cc nurseries'
    -ex 'echo == events\n' -ex 'cc events'
    -ex 'echo == errors\n' -ex 'cc fiber nobody bt' -ex 'cc chan 0' -ex 'cc chan no_such_thing' -ex 'cc chan &knife'
    -ex 'cc fiber' -ex 'cc chan' -ex 'cc' -ex 'cc fiber cook nonsense'
    -ex 'echo == after\n' -ex 'frame' -ex 'bt'
)

ask() { # ask OUTPUT ARGUMENTS...
    local out=$1
    shift
    timeout 120 gdb -batch -nx -iex 'set debuginfod enabled off' -ex 'set confirm off' -ex 'set width 0' -ex 'set print frame-info auto' "$@" >"$out" 2>&1 </dev/null
}

ask alive -ex "source $script" -ex 'echo == before\n' -ex 'cc fibers' -ex 'cc nurseries' -ex 'break stop_here' -ex run \
    "${questions[@]}" -ex 'echo == gcore\n' -ex 'cc gcore kept.core' -ex 'continue' "$program"
grep -q 'hit Breakpoint 1' alive || skip_all "gdb cannot run a program here: $(tail -n 1 alive)"

number=0 failed=0
result() { # result STATUS NAME FILE
    number=$((number + 1))
    if (($1 == 0)); then
        echo "ok $number - $2"
    else
        failed=1
        echo "not ok $number - $2"
        sed 's/^/# /' "$3"
    fi
}
# part FILE NAME: what was said after "== NAME".
part() {
    awk -v name="== $2" '$0 == name { on = 1; next } /^== / { on = 0 } on' "$1"
}
# says FILE PART PATTERN...: the lines of that part match the patterns, in this order.
says() {
    local file=$1 name=$2
    shift 2
    part "$file" "$name" >section
    printf '%s\n' "$@" | awk 'NR == FNR { want[++n] = $0; next } BEGIN { i = 1 } i <= n && $0 ~ want[i] { i++ }
        END { if (i <= n) print want[i] }' - section >missing
    [[ ! -s missing ]]
    local status=$?
    ((status == 0)) || { echo; echo "There is no line like: $(cat missing)"; } >>section
    result $status "$file: $name" section
}

check() { # check FILE SELECTED_FUNCTION
    local file=$1
    part "$file" fibers >list
    local line missing=""
    for line in \
        "'cook' +PARKED channel +for channel 'orders' at 0x[0-9a-f]+, last on worker [01], cook_orders, started by start \(parked.c:[0-9]+\)" \
        "'second cook' +PARKED channel " "'servant' +PARKED channel +for channel 'plates'" "'holder' +PARKED channel " \
        "'contender' +PARKED mutex +for mutex at 0x[0-9a-f]+, .*want_knife" "'joiner' +PARKED join +for fiber [0-9.]+ 'cook'" \
        "'sleeper' +PARKED sleep" "'undecided' +PARKED select +for nothing: no case can be ready" "'chooser' +PARKED select +for recv channel 'orders' at 0x[0-9a-f]+, recv channel 'silent' at" \
        "'chef' +PARKED nursery +for nursery 'kitchen' at 0x" "'spinner' +RUNNING +on worker [01], spin,"; do
        grep -Eq "^[0-9]+\.[0-9]+ +$line" list || missing+=" [$line]"
    done
    echo "missing:$missing" >>list
    [[ -z $missing ]]
    result $? "$file: fibers" list

    says "$file" cook "^fiber [0-9.]+ 'cook', PARKED channel for channel 'orders'" ' wait_for_order ' ' cook_orders ' 'cc(__|[.])context_first'
    says "$file" 'second cook' "'second cook', PARKED" ' wait_for_order ' ' cook_orders ' 'cc(__|[.])context_first'
    says "$file" servant "'servant', PARKED channel for channel 'plates'" ' serve \(.*plate(@entry)?=2\)' ' serve_plates ' ' i = 2$'
    says "$file" chooser ' choose ' 'cc(__|[.])context_first'
    says "$file" spinner "'spinner', RUNNING" '^It runs on thread [0-9]' ' spin_here ' ' spin ' 'cc(__|[.])context_first'
    says "$file" callee "'callee', PARKED channel for channel 'silent'" ' wait_for_order ' ' be_run ' 'cc(__|[.])context_(call_on|first)'
    says "$file" caller "'caller', PARKED join for fiber [0-9.]+ 'callee'" ' run_it ' 'cc(__|[.])context_first'
    says "$file" word "'contender'" '^1 of [0-9]+ fibers.$'
    says "$file" orders "^channel 'orders' at 0x[0-9a-f]+: no buffer, elements of 4 bytes, 1 references" '^  5 receivers wait:$'
    says "$file" plates "^channel 'plates' at 0x[0-9a-f]+: 2 of 2 buffered" '^  1 senders wait:$' "'servant', serve_plates$"
    says "$file" nurseries "^nursery 'kitchen' at 0x[0-9a-f]+, 2 children, deadline " '^  fiber [0-9.]+, PARKED channel$' '^  fiber [0-9.]+, PARKED channel$'
    says "$file" events '^worker [01]:$' '^  fiber [0-9]+ runs$' '^  it parks: [a-z]+ 0x[0-9a-f]+$' '^  notes: the kitchen is open$'
    says "$file" errors "^There is no fiber 'nobody'" "^'0' is NULL\.$" "'no_such_thing' cannot be evaluated: " '^There is no channel at 0x' \
        '^Say which fiber' '^Say which channel' '^Say one of: ' '^gdb says: Undefined command: "nonsense"'
    part "$file" depth | grep -c '^#' | grep -qx 2
    result $? "$file: a backtrace of two frames has two" "$file"
    part "$file" after >section
    grep -q '^#[0-9]* .*stop_here' section && ! grep -Eq 'cc(__|[.])context_first' section
    result $? "$file: the thread has its own frames back" section
    head -n 1 section | grep -q "$2"
    result $? "$file: the frame that was selected is so again" section
    ! grep -nE 'Traceback|Error occurred in Python|Python Exception' "$file" >section
    result $? "$file: no trouble in Python" section
}

says alive before '^There is nothing to look at: ' '^There is nothing to look at: '
check alive stop_here
grep -q 'exited normally' alive
result $? "alive: the program goes on undisturbed" alive

# gdb's own core file, with what it leaves out: stacks that have guard pages.
says alive gcore '^Saved core file kept.core; [0-9]+ kB were added'
ask kept -ex "source $script" -ex 'frame function main' "${questions[@]}" -ex 'echo == again\n' -ex 'cc gcore again' \
    "$program" kept.core
check kept main
says kept again '^This is a core file already'
rm -f kept.core

# The kernel's core file.
core=none
if [[ $(cat /proc/sys/kernel/core_pattern 2>/dev/null) == core* ]]; then
    { (ulimit -c unlimited && exec "$program" crash); } >/dev/null 2>&1
    core=$(find . -name 'core*' -size +0 | head -n 1)
fi
if [[ -n $core && $core != none ]]; then
    ask dead -ex "source $script" -ex 'frame function main' "${questions[@]}" "$program" "$core"
    check dead main
else
    number=$((number + 1))
    echo "ok $number - a core file # SKIP this system writes none here"
fi
echo "1..$number"
exit $failed
