#!/usr/bin/env bash
# check-plain.sh [--print] - the programs of examples/plain do what those of examples do, by functions alone: they use no
# macro that takes arguments, and none of the calls that came with those. Counts the lines of both, without comments and
# empty lines, and compares the table with the one in docs/surface.md; --print: prints it.
set -u
cd "$(dirname "$0")/.." || exit 1
status=0

lines() {
    awk '{
        text = $0
        while (1) {
            if (inside) {
                end = index(text, "*/")
                if (end == 0) { text = ""; break }
                text = substr(text, end + 2); inside = 0
            }
            begin = index(text, "/*")
            if (begin == 0) break
            kept = kept substr(text, 1, begin - 1); text = substr(text, begin + 2); inside = 1
        }
        sub(/\/\/.*/, "", text)
        if ((kept text) ~ /[^ \t]/) count++
        kept = ""
    } END { print count + 0 }' "$1"
}

table() {
    local name with without
    echo "| program | lines | with plain functions | shorter by |"
    echo "|---|---|---|---|"
    for name in word_count rate_limiter pub_sub parallel_sort net_echo; do
        with=$(lines "examples/$name.c") without=$(lines "examples/plain/$name.c")
        echo "| [$name.c](../examples/$name.c) | $with | [$without](../examples/plain/$name.c) | $(((100 * (without - with) + without / 2) / without)) % |"
    done
}

if [[ ${1:-} == --print ]]; then
    table
    exit
fi

# CC_ERROR is a cast.
if grep -nE '\bCC_[A-Z_]+ *\(|\bCC_NURSERY\b|\bCC_WHEN\b|\bcc_(parallel|broadcast|latest|oneshot|ticker|future|await|join_all|join_any|race|serve|signal_cancel|after_s|sleep_s|deadline_)' \
    examples/plain/*.c | grep -v 'CC_ERROR('; then
    echo "examples/plain: by functions alone, it says"
    status=1
fi
for path in examples/plain/*.c; do
    [[ -e examples/${path##*/} ]] || { echo "$path has no counterpart in examples"; status=1; }
    grep -q "examples/${path##*/}" <(table) || { echo "$path is not in the table"; status=1; }
done
diff -u --label "counted" --label "docs/surface.md" <(table) <(grep -A 6 '^| program | lines |' docs/surface.md) || status=1
exit $status
