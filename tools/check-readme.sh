#!/usr/bin/env bash
# check-readme.sh [PAGE] - the programs that README.md, or another page, shows are those in examples/, to the letter.
#
# A block of C that begins with a comment "NAME.c - ..." is examples/NAME.c, or in a folder of those; the indented lines that follow it, if
# any, are what it prints: examples/NAME.out.
set -u
cd "$(dirname "$0")/.." || exit 1
readme=${1:-README.md}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

awk -v work="$work" '
    /^```c$/ { in_block = 1; name = ""; printed = 0; next }
    /^```$/ && in_block { in_block = 0; printed = name != ""; next }
    in_block && name == "" && match($0, /^\/\* [a-z_]+\.c - /) { name = substr($0, 4, RLENGTH - 8); print name }
    in_block && name != "" { print > (work "/" name ".c"); next }
    printed && /^    / { print substr($0, 5) > (work "/" name ".out"); seen = 1; next }
    printed && !/^$/ { printed = 0 }
' "$readme" >"$work/names"

[[ -s $work/names ]] || { echo "$readme shows no example"; exit 1; }
status=0
while read -r name; do
    for file in "$name.c" "$name.out"; do
        [[ -e $work/$file ]] || { [[ $file == *.out ]] && continue; }
        path=examples/$file
        [[ -e $path ]] || path=$(printf '%s\n' examples/*/"$file" | head -n 1)
        diff -u --label "$path" --label "$readme" "$path" "$work/$file" || status=1
    done
done <"$work/names"
exit $status
