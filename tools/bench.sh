#!/usr/bin/env bash
# bench.sh - runs the measurements of bench/ and their rivals in turn, and prints the best of each side by side.
#
#   tools/bench.sh                  all of them, with one and with two workers, three times: a few minutes
#   tools/bench.sh yield fib        some of them
#   tools/bench.sh -r 10            ten repetitions             -w "1 2 4"   other numbers of workers
#   tools/bench.sh -s 0.1           a tenth of the work         -o           ours only
#   tools/bench.sh -t               with Tokio too: needs cargo, which downloads Tokio the first time
#
# In each repetition every runtime runs once before any runs again, so that a disturbance meets all. A figure is the
# minimum, in ns per operation; `~` marks one whose middle repetition took more than 1.3 times as long: the machine was not quiet.
# A run during which other programs used more than a tenth of the CPUs is counted as disturbed (others=N% in lines.txt).
# Go takes part where it is installed (bench/rivals/bench.go). All lines are kept in build/bench/lines.txt, the table in
# build/bench/table.txt.
set -u
cd "$(dirname "$0")/.." || exit 1

repeats=3 worker_list="1 2" scale=1 ours_only=0 with_tokio=0
while getopts r:w:s:ot option; do
    case $option in
    r) repeats=$OPTARG ;;
    w) worker_list=$OPTARG ;;
    s) scale=$OPTARG ;;
    o) ours_only=1 ;;
    t) with_tokio=1 ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
names=("$@")
if ((${#names[@]} == 0)); then # the known ones in the order of their story, then whatever is new
    names=(yield yield1k spawn_join spawn_batch spawn_turn fib skynet timers parked
        pingpong spsc spsc_cap1 mpmc ring select sieve mutex)
    for source in bench/*.c; do
        name=$(basename "$source" .c)
        [[ " ${names[*]} " == *" $name "* ]] || names+=("$name")
    done
fi
for name in "${names[@]}"; do
    if [[ ! -e bench/$name.c ]]; then
        echo "There is no bench/$name.c." >&2
        exit 2
    fi
done

# ---- build ----

out=build/bench
mkdir -p "$out"
if ! { cmake --preset release && cmake --build --preset release -j "${JOBS:-$(nproc)}" --target "${names[@]/#/bench_}"; } \
    >"$out/build.log" 2>&1; then
    cat "$out/build.log"
    exit 1
fi
runtimes=(ccc)
if ((!ours_only)); then
    if ! command -v go >/dev/null; then
        echo "Go is not installed: only our own figures follow."
    elif go build -o "$out/go" bench/rivals/bench.go; then
        runtimes+=(go)
    fi
fi
if ((with_tokio)); then # built apart from the sources, because cargo writes beside them
    rm -rf "$out/tokio-src"
    cp -r bench/rivals/tokio "$out/tokio-src"
    if ! cargo build --quiet --release --manifest-path "$out/tokio-src/Cargo.toml" --target-dir "$out/tokio-build"; then
        echo "Tokio's program could not be built." >&2
        exit 1
    fi
    cp "$out/tokio-build/release/bench" "$out/tokio"
    runtimes+=(tokio)
fi

# run_one RUNTIME NAME WORKERS: one line of output.
run_one() {
    case $1 in
    ccc) timeout 300 "build/release/bench/$2" "$3" "$scale" ;;
    *) timeout 300 "$out/$1" "$2" "$3" "$scale" ;;
    esac
}

# How long all CPUs together have worked, and existed, in hundredths of a second.
machine() {
    awk '/^cpu / { print $2 + $3 + $4 + $7 + $8, $2 + $3 + $4 + $5 + $6 + $7 + $8 + $9 }' /proc/stat
}

# measure RUNTIME NAME WORKERS: run_one, its line with what share of the CPUs others used meanwhile.
measure() {
    local before after line own ok=0
    before=$(machine)
    TIMEFORMAT='%U %S'
    { time line=$(run_one "$@") || ok=1; } 2>"$out/time.txt"
    after=$(machine)
    own=$(tail -n 1 "$out/time.txt")
    if ((ok != 0)); then
        head -n -1 "$out/time.txt" >&2
        return 1
    fi
    awk -v line="$line" -v before="$before" -v after="$after" -v own="$own" 'BEGIN {
        split(before, b, " "); split(after, a, " "); split(own, o, " ")
        others = a[2] > b[2] ? 100 * (a[1] - b[1] - 100 * (o[1] + o[2])) / (a[2] - b[2]) : 0
        print line (others > 10 ? sprintf(" others=%.0f%%", others) : "") }'
}

# ---- run ----

lines=$out/lines.txt status=0 done_runs=0
: >"$lines"
read -ra workers_of <<<"$worker_list"
all_runs=$((repeats * ${#names[@]} * ${#workers_of[@]} * ${#runtimes[@]}))
trap 'echo; exit 130' INT
for ((round = 1; round <= repeats; round++)); do
    [[ -t 1 ]] || echo "repetition $round of $repeats"
    for name in "${names[@]}"; do
        for workers in "${workers_of[@]}"; do
            for runtime in "${runtimes[@]}"; do
                done_runs=$((done_runs + 1))
                [[ -t 1 ]] && printf '\r\033[K%d/%d  %s, %d workers, %s' "$done_runs" "$all_runs" "$name" "$workers" "$runtime"
                if ! measure "$runtime" "$name" "$workers" >>"$lines"; then
                    printf '\n%s: %s with %d workers failed.\n' "$runtime" "$name" "$workers" >&2
                    [[ $runtime != ccc ]] || status=1
                fi
            done
        done
    done
done
[[ -t 1 ]] && printf '\r\033[K'

# ---- table ----

awk -v names="${names[*]}" -v workers="${workers_of[*]}" -v runtimes="${runtimes[*]}" '
{
    key = $1 SUBSEP $2 SUBSEP $3
    value[key, ++count[key]] = $5 + 0
    if (!(key in best) || $5 + 0 < best[key]) {
        best[key] = $5 + 0
        extras[key] = ""
        for (i = 6; i <= NF; i++) if ($i !~ /^others=/) extras[key] = extras[key] " " $i
    }
}
function median(key,    i, j, v, n, sorted) {
    n = count[key]
    for (i = 1; i <= n; i++) {
        v = value[key, i]
        for (j = i - 1; j >= 1 && sorted[j] > v; j--) sorted[j + 1] = sorted[j]
        sorted[j + 1] = v
    }
    return sorted[int((n + 1) / 2)]
}
END {
    name_count = split(names, name, " ")
    worker_count = split(workers, worker, " ")
    runtime_count = split(runtimes, runtime, " ")
    printf "%-12s %7s", "ns per op", "workers"
    for (r = 1; r <= runtime_count; r++) printf "%11s", runtime[r]
    for (r = 2; r <= runtime_count; r++) printf "%11s", runtime[r] "/ccc"
    print ""
    for (b = 1; b <= name_count; b++) {
        for (w = 1; w <= worker_count; w++) {
            printf "%-12s %7s", name[b], worker[w]
            ours = "ccc" SUBSEP name[b] SUBSEP worker[w]
            notes = ""
            for (r = 1; r <= runtime_count; r++) {
                key = runtime[r] SUBSEP name[b] SUBSEP worker[w]
                if (!(key in best)) {
                    printf "%11s", "-"
                    continue
                }
                printf "%10.1f%s", best[key], (median(key) > 1.3 * best[key] ? "~" : " ")
                if (extras[key] != "") notes = notes "  " runtime[r] ":" extras[key]
            }
            for (r = 2; r <= runtime_count; r++) {
                key = runtime[r] SUBSEP name[b] SUBSEP worker[w]
                if ((key in best) && (ours in best) && best[ours] > 0) printf "%10.1fx", best[key] / best[ours]
                else printf "%11s", "-"
            }
            print notes
        }
    }
}' "$lines" | sed 's/ *$//' | tee "$out/table.txt"
rm -f "$out/time.txt"
disturbed=$(grep -c 'others=' "$lines")
((disturbed == 0)) || echo "$disturbed of $all_runs runs were disturbed by other programs." | tee -a "$out/table.txt"
exit $status
