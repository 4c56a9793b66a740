#!/usr/bin/env bash
# check-console.sh EXAMPLES PAGE... - the programs still say what the pages quote. EXAMPLES: where the built ones are.
#
# A block ```console of a page is a session: a line "$ COMMAND" and what it prints on stdout and stderr. Every line has
# to come out, in this order; others may come between them. "^\" sends SIGQUIT when all before it was printed; a line
# "status N", if there is one, is how the command ends, else it is killed when it has said everything. Addresses, times
# and the numbers of fibers, threads, workers, turns, seeds and lines differ from run to run and count as equal, and so does
# whether fibers are shown together, indented. A command that is none of the examples is not run.
set -u
examples=$(cd "$1" && pwd) || exit 1
shift
work=$(mktemp -d)
pid=''
trap '[[ -z $pid ]] || kill -KILL "$pid" 2>/dev/null; rm -rf "$work"' EXIT
mkdir "$work/bin"
for program in "$examples"/* "$examples"/hangs/* "$examples"/sim/* "$examples"/../apps/cc-sim; do
    [[ -f $program && -x $program ]] && ln -s "$program" "$work/bin/"
done

awk -v work="$work" '
    /^```console$/ { in_block = 1; file = ""; next }
    /^```$/ { in_block = 0; next }
    in_block && /^\$ / { file = work "/" ++n ".session"; print FILENAME ":" FNR > file; print substr($0, 3) > file; next }
    in_block && file != "" && !/^\.\.\.$/ { print > file }' "$@"

normalise() {
    sed -E -e 's/^ +//' -e 's/, and others$//' -e 's/[0-9]+ in its/N in its/g' -e 's/[0-9]+ timers?/N timers/g' -e 's/0x[0-9a-f]+/0x/g' -e 's/fiber [0-9]+\.[0-9]+/fiber N/g' -e 's/\.c:[0-9]+/.c:N/g' \
        -e 's/thread [0-9]+/thread N/g' -e 's/worker [0-9]+/worker N/g' -e 's/[0-9]+ turns?/N turns/g' \
        -e 's/for [0-9.e-]+ (to [0-9.e-]+ )?s/for N s/g' -e 's/in [0-9.]+ s/in N s/g' -e 's/(seed |SEED=)[0-9]+/\1N/g' "$1"
}

# The first of the lines in $1 that is not in $2, in order; nothing: all are.
missing() {
    awk 'NR == FNR { wanted[++n] = $0; next } at < n && $0 == wanted[at + 1] { at++ } END { if (at < n) print wanted[at + 1] }' \
        at=0 <(normalise "$1") <(normalise "$2")
}

# Until the output holds all of $1, or the program has ended, or a minute has passed.
wait_for() {
    local ended
    for ((i = 0; i < 600; i++)); do
        kill -0 "$pid" 2>/dev/null && ended='' || ended=yes
        [[ -z $(missing "$1" "$work/output") ]] && return 0
        [[ -z $ended ]] || return 1
        sleep 0.1
    done
    return 1
}

play() {
    local session=$1 where command wanted=$work/wanted status='' line
    { read -r where; read -r command; } <"$session"
    : >"$wanted" >"$work/output"
    # A shell without job control leaves SIGQUIT ignored for what it starts in the background.
    (cd "$work/bin" && exec env --default-signal=QUIT PATH="$work/bin:$PATH" bash -c "exec env $command") </dev/null >"$work/output" 2>&1 &
    pid=$!
    while IFS= read -r line; do
        case $line in
        '^\') wait_for "$wanted" && kill -QUIT "$pid" ;;
        'status '*) status=${line#status } ;;
        *) echo "$line" >>"$wanted" ;;
        esac
    done < <(tail -n +3 "$session")
    if ! wait_for "$wanted"; then
        echo "$where: '$command' does not say: $(missing "$wanted" "$work/output")"
        sed 's/^/    /' "$work/output"
        kill -KILL "$pid" 2>/dev/null
        wait "$pid" 2>/dev/null
        pid=''
        return 1
    fi
    [[ -n $status ]] || kill -KILL "$pid" 2>/dev/null
    wait "$pid" 2>/dev/null
    local ended=$?
    pid=''
    [[ -z $status || $ended == "$status" ]] || { echo "$where: '$command' ends with status $ended"; return 1; }
}

failed=0 played=0
for session in "$work"/*.session; do
    program=$(sed -n '2s;^\([A-Z_]*=[^ ]* \)*\(\./\|cc-\)\([a-z_]*\).*;\2\3;p' "$session")
    program=${program#./}
    [[ -n $program && -e $work/bin/$program ]] || continue
    played=$((played + 1))
    play "$session" || failed=1
done
((played > 0)) || { echo "There is no session to play."; exit 1; }
echo "$played sessions"
exit $failed
