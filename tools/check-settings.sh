#!/usr/bin/env bash
# check-settings.sh - the variables of the environment in src/rt/config.c are those that ccc(7) describes, and the categories of
# the trace in src/trace/events.def those that cc_diag(3) and cc_diag.h name. Prints what differs and exits with 1.
set -u
export LC_ALL=C
cd "$(dirname "$0")/.." || exit 1
status=0

# same WHAT LEFT RIGHT: two lists of words, with the names of the files that they come from in front.
same() {
    local what=$1 left=$2 right=$3
    shift 3
    if ! diff <(tr ' ' '\n' <<<"${left#* }" | sort) <(tr ' ' '\n' <<<"${right#* }" | sort) >/dev/null; then
        echo "$what differ: < ${left%% *}, > ${right%% *}"
        diff <(tr ' ' '\n' <<<"${left#* }" | sort) <(tr ' ' '\n' <<<"${right#* }" | sort) | grep '^[<>]'
        status=1
    fi
}

table=$(sed -n 's/^ *VARIABLE(\([A-Z_]*\), .*/CC_\1/p' src/rt/config.c | xargs)
pages=$(sed -n '/^\.Sh ENVIRONMENT/,/^\.Sh SANITIZERS/s/^\.It Ev //p' docs/man/ccc.7 | tr -d ',' | xargs)
same "Variables of the environment" "src/rt/config.c $table" "docs/man/ccc.7 $pages"
for older in $(sed -n 's/^ *VARIABLE([A-Z_]*, "\([A-Z0-9_]*\)".*/\1/p' src/rt/config.c); do
    grep -q "^\.Ev $older\b" docs/man/ccc.7 || { echo "docs/man/ccc.7 does not name $older"; status=1; }
done

categories=$(sed -n 's/^CATEGORY([A-Z_]*, "\([a-z-]*\)".*/\1/p' src/trace/events.def | xargs)
pages=$(sed -n '/^\.Ss Traces/,/^\.Ss Deadlocks/s/^\.It Cm //p' docs/man/cc_diag.3 | sed 's/ , Cm / /' | xargs)
same "Categories of the trace" "src/trace/events.def $categories all" "docs/man/cc_diag.3 $pages"
header=$(tr -d '\n*' <include/ccc/cc_diag.h | grep -o 'comma-separated *names: *[a-z, -]*\.' | sed 's/.*: //; s/[.,]//g' | xargs)
same "Categories of the trace" "src/trace/events.def $categories" "include/ccc/cc_diag.h $header"
exit $status
