#!/usr/bin/env bash
# check-symbols.sh LIBCCC.A LIBCCC.SO - the library takes no name that does not begin with cc_, and the shared
# one shows no internal name (cc__). Prints the offending symbols and exits with 1.
set -u
static=$1
shared=$2

bad=$(nm --extern-only --defined-only "$static" 2>/dev/null | awk 'NF == 3 && $3 !~ /^cc_/ { print "  " $3 }')
bad+=$(nm --dynamic --defined-only "$shared" | awk '$2 != "A" && $3 !~ /^cc_[^_]/ { print "  " $3 }')
if [[ -n $bad ]]; then
    printf 'These symbols should be hidden or begin with cc_:\n%s\n' "$bad"
    exit 1
fi
