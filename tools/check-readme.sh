#!/usr/bin/env bash
# check-readme.sh [PAGE] - the programs that README.md, or another page, shows are those in examples/, to the letter.
#
# A block of C without such a comment is an excerpt: its lines stand one after the other in a program of examples/, but for indentation;
# a line "..." leaves some out. A block of C that begins with a comment "NAME.c - ..." is examples/NAME.c, or in a folder of those, a block of C++ NAME.cpp; the indented
# lines that follow it, if any, are what it prints: examples/NAME.out.
set -u
cd "$(dirname "$0")/.." || exit 1
readme=${1:-README.md}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

awk -v work="$work" '
    /^```(c|cpp)$/ { in_block = 1; name = excerpt = ""; printed = 0; extension = substr($0, 4); next }
    /^```$/ && in_block { in_block = 0; printed = name != ""; next }
    in_block && name == "" && excerpt == "" && match($0, /^\/[*\/] [a-z_]+\.(c|cpp) - /) { name = $2; sub(/\..*/, "", name); print name, extension }
    in_block && name != "" { print > (work "/" name "." extension); next }
    in_block && excerpt == "" { excerpt = work "/" FNR ".excerpt" }
    in_block { print > excerpt; next }
    printed && /^    / { print substr($0, 5) > (work "/" name ".out"); seen = 1; next }
    printed && !/^$/ { printed = 0 }
' "$readme" >"$work/names"

# in_order EXCERPT FILE: the parts of the excerpt stand in the file, in this order.
in_order() {
    awk '
        { gsub(/^[ \t]+|[ \t]+$/, "") }
        FNR == 1 { file++ }
        $0 == "" { next }
        file == 1 && $0 == "..." { parts++; next }
        file == 1 { part[parts + 0] = part[parts + 0] $0 "\n"; next }
        { text = text $0 "\n" }
        END {
            text = "\n" text
            for (i = 0; i <= parts + 0; i++) {
                if (part[i] == "") continue
                at = index(text, "\n" part[i])
                if (at == 0) exit 1
                text = substr(text, at + length(part[i]))
            }
        }' "$1" "$2"
}

shopt -s nullglob
excerpts=("$work"/*.excerpt)
[[ -s $work/names || ${#excerpts[@]} -gt 0 ]] || { echo "$readme shows no example"; exit 1; }
status=0
for excerpt in "${excerpts[@]}"; do
    for path in examples/*.c examples/*.cpp ''; do
        [[ -z $path ]] || ! in_order "$excerpt" "$path" || break
    done
    [[ -n $path ]] || { line=${excerpt##*/}; echo "$readme:${line%.excerpt}: no program of examples/ has these lines"; status=1; }
done
while read -r name extension; do
    for file in "$name.$extension" "$name.out"; do
        [[ -e $work/$file ]] || { [[ $file == *.out ]] && continue; }
        path=examples/$file
        [[ -e $path ]] || path=$(printf '%s\n' examples/*/"$file" | head -n 1)
        diff -u --label "$path" --label "$readme" "$path" "$work/$file" || status=1
    done
done <"$work/names"
exit $status
