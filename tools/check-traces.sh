#!/usr/bin/env bash
# check-traces.sh [BUILD [PATTERN]] - the test programs of a build whose names match the pattern ('unit/chan/*'; all), each with
# CC_RECORD: `go tool trace` has to read every file that they write. It refuses what cannot have been, so this also checks the order
# of what the scheduler does. CC_RECORD_LEVEL is passed on. Ends with 77 if there is no go that reads such files.
set -u
cd "$(dirname "$0")/.." || exit 1
build=${1:-build/release}
pattern=${2:-*}
. tests/apps/cases.sh
have_go_trace || { echo 'nobody has read the traces of the test suite'; exit 77; }
reader=$(go tool -n trace) || exit 1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CC_RECORD=$work/%p.trace
unset CC_SIM_SEED
files=0 programs=0 failed=0

# read_files PROGRAM: and removes them.
read_files() {
    local file
    for file in "$work"/*.trace; do
        [[ -s $file ]] || continue
        files=$((files + 1))
        timeout 600 "$reader" -d=parsed "$file" >/dev/null 2>"$work/error" && continue
        failed=$((failed + 1))
        mkdir -p build/log && cp "$file" "build/log/refused-$failed.trace"
        echo "$1: build/log/refused-$failed.trace: $(tail -n 1 "$work/error")"
    done
    rm -f "$work"/*.trace
}

while IFS=$'\t' read -r group name program _; do
    # shellcheck disable=SC2053 # the right side is a pattern
    [[ $group =~ ^(unit|battery|programs|stress|examples)$ && $name == $pattern && -x $program ]] || continue
    programs=$((programs + 1))
    timeout -k 10 600 "$program" >"$work/out" 2>&1 </dev/null # what it says is not what is tested here
    read_files "$name"
done <"$build/tests/programs.txt"
echo "$files traces of $programs programs, $failed refused"
((failed == 0 && files > 0))
