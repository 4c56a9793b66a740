#!/usr/bin/env bash
# cc-trace.sh PROGRAM [WORD] - tests cc-trace, and the files that the recorder writes, by third-party tools; TAP. With
# WORD only the cases whose name contains it.
#
# TEST_SLOWDOWN above 4 skips cases that do not depend on how the library was built.
set -u
. "$(dirname "$0")/cases.sh"
program=$(realpath "$1")
root=$(realpath "$(dirname "$0")/../..")
word=${2:-}
build=$(dirname "$(dirname "$program")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
export LC_ALL=C
export TSAN_OPTIONS=${TSAN_OPTIONS:+$TSAN_OPTIONS:}atexit_sleep_ms=0
unset CC_SIM_SEED CC_RECORD CC_RECORD_LEVEL

# record FILE LEVEL EXAMPLE: the file has a trace of that example.
record() {
    rm -f "$1"
    CC_RECORD=$1 CC_RECORD_LEVEL=$2 timeout 120 "$build/examples/$3" >out.tmp 2>&1 </dev/null
    [[ -s $1 ]] || { echo "$3 has recorded nothing: $(cat out.tmp)"; return 1; }
}

case_summary() {
    record a.trace times pipeline && ends 0 ' 3 fibers, 3 spawned' a.trace && grep -q ' square (pipeline.c' out.tmp &&
        grep -q ': channel$' out.tmp && ends 0 'fibers by function' -n 1 a.trace
}

case_each_level() {
    for level in turns times stacks; do
        record b.trace "$level" pipeline && ends 0 ' 3 spawned' b.trace || return
    done
    # Which of the stages had to wait is a matter of luck.
    grep -Eq 'channel, in (count|square|add) \(pipeline.c' out.tmp || { echo "no place of a wait: $(cat out.tmp)" && return 1; }
}

case_picture() {
    record c.trace times pipeline && "$program" -s c.trace >c.svg && grep -q '^<svg ' c.svg && grep -q '^</svg>$' c.svg &&
        grep -c '<rect' c.svg >/dev/null || return
    command -v xmllint >/dev/null || return 0
    xmllint --noout c.svg
}

# More spawns than a ring holds, and a signal that asks for the file.
case_what_is_lost() {
    local i
    ! nm "$program" | grep -q ' [^w] __tsan_init' || { echo '66,000 fibers take minutes under the race detector'; return 77; }
    : >said
    CC_RECORD=l.trace CC_DUMP_SIGNAL=USR1 "$build/tests/apps/many_fibers" 66000 >said 2>error.tmp </dev/null &
    pid=$!
    trap 'kill -9 $pid 2>/dev/null' EXIT
    for ((i = 0; i < 600; i++)); do grep -q ready said && break || sleep 0.1; done
    kill -USR1 "$pid"
    for ((i = 0; i < 600; i++)); do
        "$program" l.trace >out.tmp 2>&1 && grep -q '^  [1-9][0-9]* older events of OS threads are lost$' out.tmp && return
        sleep 0.1
    done
    echo "nothing is lost: $(head -n 5 out.tmp error.tmp)"
    return 1
}

case_wrong_arguments() {
    ends 2 'cc-trace [-n COUNT]' && ends 2 'cc-trace [-n' -n 0 x && ends 2 'cc-trace [-n' -x && ends 0 'cc-trace [-n' -h &&
        ends 1 'No such file' none
}

# Cut short, or with any byte changed: an error or a summary, never a crash.
case_damaged_files() {
    record d.trace times pipeline || return
    local size status i
    size=$(stat -c %s d.trace)
    for ((i = 0; i < size; i += 37)); do
        head -c "$i" d.trace >e.trace
        timeout 20 "$program" e.trace >out.tmp 2>&1
        status=$?
        ((status <= 1)) || { echo "cut at $i: status $status: $(tail -n 3 out.tmp)"; return 1; }
        { head -c "$i" d.trace && printf '\377' && tail -c +$((i + 2)) d.trace; } >e.trace
        timeout 20 "$program" e.trace >out.tmp 2>&1
        status=$?
        ((status <= 1)) || { echo "changed at $i: status $status: $(tail -n 3 out.tmp)"; return 1; }
    done
    echo 'go 1.22 trace, or not' >e.trace
    ends 1 'e.trace: ' e.trace
}

# A number says how many there are before it: that of a small file is no reason to take gigabytes.
case_damaged_numbers() {
    ! grep -q '__[at]san_init' "$program" || { echo 'a sanitizer takes all addresses'; return 77; }
    { printf 'go 1.22 trace\0\0\0' && printf '\1\1\1\1\10\4\5\200\216\316\34\1a'; } >e.trace # string 60000000
    (ulimit -v 400000 && ends 1 'a string is damaged' e.trace) || return
    { printf 'go 1.22 trace\0\0\0' && printf '\1\1\1\1\10\16\0\200\216\316\34\0\0'; } >e.trace # fiber 60000000
    (ulimit -v 400000 && ends 1 "a fiber's number is damaged" e.trace)
}

# Started anew each time, so that addresses differ.
case_simulations_repeat() {
    local kind
    for kind in trace pftrace txt; do
        CC_SIM_SEED=17 record "f.$kind" stacks pipeline && CC_SIM_SEED=17 record "g.$kind" stacks pipeline && cmp "f.$kind" "g.$kind" || return
    done
    CC_SIM_SEED=18 record g.txt stacks pipeline && ! cmp -s f.txt g.txt
}

# The strict reader: it refuses what cannot have been.
case_go_reads_it() {
    ((${TEST_SLOWDOWN:-1} <= 4)) || { echo 'the files do not depend on a sanitizer'; return 77; }
    have_go_trace || return 77
    local example level
    for example in pipeline deadline_tree first_error worker_pool fork_join island; do
        [[ -x $build/examples/$example ]] || continue
        for level in times turns stacks; do
            record h.trace "$level" "$example" || continue
            timeout 300 go tool trace -d=parsed h.trace >parsed 2>error || { cat error && return 1; }
            grep -q 'Running->Waiting\|Running->NotExist' parsed || { echo "nothing happens in the trace of $example" && return 1; }
        done
    done
}

# The same of each example, as its own output is tested.
case_go_reads_all_examples() {
    ((${TEST_SLOWDOWN:-1} <= 4)) || { echo 'the files do not depend on a sanitizer'; return 77; }
    "$root/tools/check-traces.sh" "$build" 'examples/*'
}

# Profiles, by the tool that they are for.
case_pprof_reads_profiles() {
    ((${TEST_SLOWDOWN:-1} <= 4)) || { echo 'the files do not depend on a sanitizer'; return 77; }
    command -v go >/dev/null || { echo 'go is not installed: nobody has read the profiles'; return 77; }
    timeout 120 "$build/examples/profiles" . || return
    local kind
    for kind in cpu fibers block contention; do
        timeout 300 go tool pprof -top "$kind.pb" >"$kind.top" 2>error || { cat error && return 1; }
    done
    grep -q ' idle$' fibers.top || { cat fibers.top && return 1; }
    grep -q ' want$' block.top || { cat block.top && return 1; }
    grep -q ' hold$' contention.top || { cat contention.top && return 1; }
    timeout 300 go tool pprof -tags block.pb >tags 2>error && grep -q 'mutex' tags && grep -q 'sleep' tags || { cat tags error && return 1; }
}

# By the official schema.
case_perfetto_reads_it() {
    ((${TEST_SLOWDOWN:-1} <= 4)) || { echo 'the files do not depend on a sanitizer'; return 77; }
    local python=${PYTHON:-python3}
    "$python" -c 'import perfetto.protos.perfetto.trace.perfetto_trace_pb2' 2>/dev/null ||
        { echo "$python has no module perfetto, which tools/deps.sh test installs: nobody has read the track events"; return 77; }
    local example
    for example in pipeline deadline_tree first_error worker_pool fork_join island; do
        record i.pftrace times "$example" && "$python" - i.pftrace <<'END' || return
import sys
from google.protobuf import unknown_fields
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb
trace = pb.Trace()
trace.ParseFromString(open(sys.argv[1], "rb").read())
tracks, depth, slices, time, flows = {}, {}, 0, 0, set()
for packet in trace.packet:
    assert len(unknown_fields.UnknownFieldSet(packet)) == 0, packet
    assert packet.trusted_packet_sequence_id == 1
    if packet.HasField("track_descriptor"):
        d = packet.track_descriptor
        assert len(unknown_fields.UnknownFieldSet(d)) == 0 and d.uuid not in tracks, d
        tracks[d.uuid] = d.name or d.thread.thread_name or d.process.process_name
        assert tracks[d.uuid]
        continue
    e = packet.track_event
    assert len(unknown_fields.UnknownFieldSet(e)) == 0 and e.track_uuid in tracks, packet
    assert packet.timestamp >= time, packet
    time = packet.timestamp
    if e.type == pb.TrackEvent.TYPE_SLICE_BEGIN:
        depth[e.track_uuid] = depth.get(e.track_uuid, 0) + 1
        slices += 1
        assert e.name
    elif e.type == pb.TrackEvent.TYPE_SLICE_END:
        depth[e.track_uuid] = depth.get(e.track_uuid, 0) - 1
        assert depth[e.track_uuid] >= 0, packet
    else:
        assert e.type == pb.TrackEvent.TYPE_INSTANT and e.name
    flows.update(e.flow_ids)
assert slices > 1 and flows, slices
END
    done
}

run_cases "$word"
