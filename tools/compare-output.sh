#!/usr/bin/env bash
# compare-output.sh EXPECTED COMMAND... - succeeds when the command does and its stdout is what the file says.
set -u
expected=$1
shift
actual=$(mktemp)
trap 'rm -f "$actual"' EXIT

"$@" </dev/null >"$actual"
status=$?
diff -u --label "expected by ${expected##*/}" --label "printed by ${*: -1}" "$expected" "$actual" || exit 1
if ((status != 0)); then
    echo "The output is right, but the exit status is $status."
    exit 1
fi
