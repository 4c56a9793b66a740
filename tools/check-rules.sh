#!/usr/bin/env bash
# check-rules.sh [ROOT] - numbered rules (CHAN-5, PARK-1, ...) are defined once, and cited; whatever is cited is defined.
#
# A rule is defined by a line of a comment that begins with it, followed by two spaces: " * CHAN-5  A claim ...". Every other
# mention is a citation: "CHAN-5", "(CHAN-1, CHAN-5)", and "CHAN-1..5" or "CHAN-1 to CHAN-5" for all between. The table
# "Invariants have numbers" in HACKING.md lists each family of rules with the folder that defines it.
# Exits with 1 after listing what is wrong, as FILE:LINE: what to do.
set -u -o pipefail
cd "${1:-$(dirname "$0")/..}" || exit 1

# Words that look like rules and are none.
others='UTF|ISO|SHA|CRC|AVX|RFC|SSE|IEEE|POSIX|LLVM|GCC|ARMV|FNV|MIT|GPL|BSD|CVE|X86|AARCH|RISCV|NEON|DWARF|SYSV|R|S'

find src include tls apps bench examples tests tools docs ./*.md -type f \( -name '*.[chS]' -o -name '*.cpp' -o -name '*.cc' -o -name '*.md' \
    -o -name '*.sh' -o -name '*.py' -o -name '*.pml' -o -name '*.def' \) 2>/dev/null |
    grep -vE '^tests/mutate/results.md$|^tools/(check-rules|pages_test)' | LC_ALL=C sort | sed 's|^\./||' |
    xargs -r awk -v others="^($others)\$" '
function offend(where, what) {
    print where ": " what
    bad = 1
}
# All rules that are mentioned in a line; those of the range FIRST..LAST count, too.
function mentions(text, where,    rule, prefix, from, to, i, rest) {
    while (match(text, /(^|[^A-Za-z0-9_-])[A-Z][A-Z0-9]+-[0-9]+/)) {
        rule = substr(text, RSTART, RLENGTH)
        sub(/^[^A-Z]/, "", rule)
        text = substr(text, RSTART + RLENGTH)
        if (text ~ /^[A-Za-z_]/) continue
        prefix = rule
        sub(/-.*/, "", prefix)
        if (prefix ~ others) continue
        cite(rule, where)
        if (match(text, "^(\\.\\.| to (" prefix "-)?)[0-9]+")) {
            rest = substr(text, RSTART, RLENGTH)
            gsub(/[^0-9]*-|[^0-9]/, "", rest)
            from = rule
            sub(/.*-/, "", from)
            for (i = from + 1; i <= rest + 0; i++) cite(prefix "-" i, where)
        }
    }
}
function cite(rule, where) {
    cited[rule]++
    if (!(rule in first)) first[rule] = where
}
FNR == 1 { table = 0 }
{
    where = FILENAME ":" FNR
    line = $0
    if (FILENAME ~ /\.([chS]|cpp|cc|def|pml)$/ && match(line, /^( \*|\/\*|#|\/\/) +[A-Z][A-Z0-9]+-[0-9]+  /)) {
        rule = substr(line, RSTART, RLENGTH)
        gsub(/[^A-Z0-9-]/, "", rule)
        if (rule in defined) offend(where, rule " is defined in " defined[rule] ", too: number one of them anew")
        else defined[rule] = where
        line = substr(line, RSTART + RLENGTH)
        prefix = rule
        sub(/-.*/, "", prefix)
        families[prefix] = families[prefix] " " FILENAME
    }
    mentions(line, where)
}
FILENAME == "HACKING.md" && /^\| `[A-Z]+-`/ {
    split($0, cell, "|")
    text = cell[2]
    files = cell[3]
    gsub(/[` ]/, "", text)
    n = split(text, listed, ",")
    for (i = 1; i <= n; i++) {
        sub(/-$/, "", listed[i])
        if (listed[i] in row) offend(where, listed[i] "- is in the table twice")
        row[listed[i]] = files
        row_at[listed[i]] = where
    }
}
END {
    for (rule in first)
        if (!(rule in defined)) offend(first[rule], rule " is cited, but no comment defines it (\" * " rule "  ...\")")
    for (rule in defined)
        if (!(rule in cited)) offend(defined[rule], rule " is defined, but nothing cites it: cite it where the code relies on it")
    for (family in families) {
        if (!(family in row)) {
            offend("HACKING.md", "the table of rules lacks " family "-, which" families[family] " defines")
            continue
        }
        n = split(families[family], at, " ")
        for (i = 1; i <= n; i++) {
            ok = 0
            m = split(row[family], named, "`")
            for (j = 2; j <= m; j += 2) {
                name = named[j]
                if (index("/" at[i], "/" name) > 0) ok = 1
            }
            if (!ok && !((family, at[i]) in said)) {
                offend(row_at[family], family "- is defined in " at[i] ", which the table does not say")
                said[family, at[i]] = 1
            }
        }
    }
    for (family in row)
        if (!(family in families)) offend(row_at[family], "no rule " family "-1 is defined anywhere")
    exit bad
}' | LC_ALL=C sort -u
