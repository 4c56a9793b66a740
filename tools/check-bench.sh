#!/usr/bin/env bash
# check-bench.sh FOLDER - every measurement still runs: a little of its work, with two workers, and the right line.
#
# Each program checks its own result, so that a wrong one ends with 1 here as well.
set -u
status=0
for program in "$1"/{,work/}*; do
    [[ -f $program && -x $program ]] || continue
    name=$(basename "$program")
    if ! line=$(timeout -k 10 60 "$program" 2 0.001 2>&1); then
        echo "$name failed: $line"
        status=1
    elif [[ ! $line =~ ^ccc\ $name\ 2\ [1-9][0-9]*\ [0-9]+\.[0-9](\ [a-z0-9_]+=-?[0-9.]+)*$ ]]; then
        echo "$name printed: $line"
        status=1
    fi
done
exit $status
