#!/usr/bin/env bash
# check-names.sh [ROOT] - what the pages put into backticks exists: files, symbols, macros, variables of the environment.
#
# And links between pages lead to files. Reads README.md, ARCHITECTURE.md, HACKING.md, docs/*.md, docs/decisions/*.md and the README.md of every folder. In a span of
# code each path has to exist (from the root, from the page's folder, or from src/, tests/, docs/ or include/; wildcards are
# allowed), and each identifier has to occur in the code: in C outside of comments, in scripts and in CMake's files anywhere.
# The pages of src/ may name only what occurs in src/, include/ or apps/, names a file, or is a long name of a test's. Of man pages and comments in
# include/ the words that begin with cc_ or CC_ are checked. tools/names.allow lists words of other projects, which are not checked.
# Exits with 1 after listing what is wrong, as PAGE:LINE: what to do.
set -u
here=$(cd "$(dirname "$0")" && pwd)
cd "${1:-$here/..}" || exit 1
export LC_ALL=C
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

all_files() { find . \( -path ./build -o -name '.git*' \) -prune -o -type f -print | sed 's|^\./||' | sort; }
all_files >"$work/files"
sed -n 's|/[^/]*$||p' "$work/files" | sort -u >"$work/folders"

# code FILE...: C without comments. Strings of one word stay: variables of the environment, names of categories.
code() {
    awk 'FNR == 1 { inside = 0 }
    {
        line = $0
        out = ""
        while (line != "") {
            if (inside) {
                if ((at = index(line, "*/")) == 0) break
                line = substr(line, at + 2)
                inside = 0
            } else {
                at = index(line, "/*")
                two = index(line, "//")
                if (two > 0 && (at == 0 || two < at) && substr(line, 1, two - 1) !~ /["<]/) { out = out substr(line, 1, two - 1); break }
                if (at == 0) { out = out line; break }
                out = out substr(line, 1, at - 1) " "
                line = substr(line, at + 2)
                inside = 1
            }
        }
        if (out !~ /^ *# *include/) gsub(/"([^"\\]|\\.)* ([^"\\]|\\.)*"/, " ", out)
        print out
    }' "$@"
}
words() { grep -oE '[A-Za-z_][A-Za-z0-9_]*' | sort -u; }

c_files='\.([chSl]|cpp|hpp|cc|def|inc|map)$'
{
    mapfile -t list < <(grep -E "^(src|include|apps|posix|tls)/.*$c_files" "$work/files")
    code "${list[@]}"
} | words >"$work/own"
{
    mapfile -t list < <(grep -E "^(tests|bench|examples)/.*$c_files" "$work/files")
    ((${#list[@]} == 0)) || code "${list[@]}"
    mapfile -t list < <(grep -E '\.(sh|py|cmake|pml|json|in|rs|go|ld|txt|supp|bash)$|(^|/)(Makefile|Cargo.toml|go.mod|run)$|^tools/[^.]*$' "$work/files")
    ((${#list[@]} == 0)) || cat "${list[@]}"
} | words >"$work/others"
# Files by their names: tests, scenarios of the explorer, seeded bugs, models.
sed 's|.*/||; s|\.[^.]*$||' "$work/files" | sort -u >"$work/stems"
tr '/' '\n' <"$work/folders" | sort -u >>"$work/stems"
sed -n 's/.*"name": "\([^"]*\)".*/\1/p' CMakePresets.json 2>/dev/null >>"$work/stems" # which are stages, too
{ grep -ohrE '(SCENARIO|TEST|TEST_WORKERS|CASE|BENCH|LITMUS)[A-Z_]*\([a-z0-9_]+' tests bench 2>/dev/null | sed 's/.*(//'; } >>"$work/stems"
# Beginnings that a macro glues to other names: cc__event_##name.
grep -ohrE '[A-Za-z_][A-Za-z0-9_]*_##' src include apps tests 2>/dev/null | sed 's/##//' | sort -u >"$work/glued"
sed 's/#.*//; s/[[:space:]]*$//; /^$/d' "$here/names.allow" 2>/dev/null >"$work/allowed"

pages() {
    grep -E '^(README|ARCHITECTURE|HACKING)\.md$|^docs/[^/]*\.md$|^docs/decisions/.*\.md$|(^|/)README\.md$' "$work/files" | sort -u
    grep -E '^docs/man/|^include/.*\.h(pp)?$' "$work/files"
    grep -E '^(src|apps)/.*\.[chS]$' "$work/files"
}
mapfile -t list < <(pages)
awk -v work="$work" '
function load(file, set,    line) { while ((getline line <(work "/" file)) > 0) set[line] = 1 }
BEGIN {
    load("files", files); load("folders", files); load("own", own); load("others", others); load("stems", stems); load("allowed", allowed); load("glued", glued)
    for (word in own) words_of_ours = words_of_ours word " "
    for (path in files) { base = path; sub(/.*\//, "", base); bases[base] = 1; all = all "\n" path }
    all = all "\n"
    roots = split(". src tests docs include include/ccc docs/man", root, " ")
}
function offend(what) {
    print FILENAME ":" at ": " what
    bad = 1
}
function pattern_of(path) {
    gsub(/\./, "\\.", path)
    gsub(/\+/, "\\+", path)
    gsub(/\*/, "[^\n]*", path)
    gsub(/NAME|PROGRAM|STAGE|ROOM|CPU|<[a-z]*>|\.\.\.|…/, "[^\n]*", path)
    return path
}
function exists(path,    i, from, folder) {
    sub(/\/$/, "", path)
    sub(/^\.\//, "", path)
    if (path == "" || path ~ /^\// || path ~ /^build(\/|$)/) return 1
    folder = FILENAME
    if (!sub(/\/[^\/]*$/, "", folder)) folder = "."
    while (path ~ /^\.\.\//) { sub(/^\.\.\//, "", path); if (!sub(/\/[^\/]*$/, "", folder)) folder = "." }
    for (i = 0; i <= roots; i++) {
        from = i == 0 ? folder : root[i]
        from = from == "." ? path : from "/" path
        if (from in files) return 1
        if (from ~ /[*<]|NAME|PROGRAM|STAGE|ROOM|CPU|\.\.\./ && all ~ ("\n" pattern_of(from) "(/[^\n]*)?\n")) return 1
        if (path !~ /\// && path in stems) return 1                 # `linux/`
        if (match(from, /\/[^\/.]*$/) && all ~ ("\n" pattern_of(from) "\\.[a-z]+\n")) return 1 # unit/chan/bias, a program
    }
    return 0
}
function known(word) {
    if (word ~ /^_[a-z]/) return index(words_of_ours, word " ") > 0 # a suffix: `_locked`
    if (word in own || word in stems || word in allowed) return 1
    for (part_of in glued)
        if (index(word, part_of) == 1 && substr(word, length(part_of) + 1) in own) return 1
    return (FILENAME !~ /^src\// || word ~ /[a-z]_[a-z]/) && word in others
}
function check(span,    token, rest, path) {
    if (span in allowed) { used[span] = 1; return }
    if (span ~ /^[A-Z0-9]+-([0-9.]*|\*)$/ || span ~ /^-/) return   # rules, options
    rest = span
    while (match(rest, /[A-Za-z0-9_.*<>+~$\/-]+/)) {
        token = substr(rest, RSTART, RLENGTH)
        before = RSTART > 1 ? substr(rest, RSTART - 1, 1) : ""
        rest = substr(rest, RSTART + RLENGTH)
        if (token in allowed) { used[token] = 1; continue }
        if (token ~ /^\.\/[a-z_]+$/) continue                       # ./program
        if (token ~ /^[-~$0-9]/ || token ~ /^[A-Z]+$/ && before == "") { if (token !~ /^[A-Z_]+$/) continue }
        path = token
        sub(/[.:]+$/, "", path)
        if (path ~ /^[A-Za-z0-9_.*<>+-]+(\/[A-Za-z0-9_.*<>+-]+)+\/?$/ && path !~ /->/ || path ~ /^[a-z]+\/$/) {
            if (!exists(path)) offend("there is no file `" path "`; name the one that is meant")
            continue
        }
        if (path ~ /^[A-Za-z0-9_*-]+\.([chS]|md|sh|py|pml|patch|def|cpp|txt|cmake|svg|[1-8])$/) {
            if (!(path in bases) && !exists(path) && !(path ~ /\*/ && all ~ ("/" pattern_of(path) "\n")))
                offend("there is no file `" path "`; name the one that is meant")
            continue
        }
        if (path in bases || path in stems) continue
        check_words(path)
    }
}
# [text](path): the path exists, seen from the folder of the page.
function links(text,    path, folder) {
    while (match(text, /\]\([^)#]+[)#]/)) {
        path = substr(text, RSTART + 2, RLENGTH - 3)
        text = substr(text, RSTART + RLENGTH)
        at = FNR
        if (path ~ /^[a-z]+:/) continue
        folder = FILENAME
        if (!sub(/[^\/]*$/, "", folder)) folder = ""
        while (path ~ /^\.\.\//) { sub(/^\.\.\//, "", path); sub(/[^\/]*\/$/, "", folder) }
        sub(/\/$/, "", path)
        if (!((folder path) in files)) offend("the link leads to `" folder path "`, which does not exist")
    }
}
function check_words(text,    word) {
    while (match(text, /[A-Za-z_][A-Za-z0-9_]*/)) {
        word = substr(text, RSTART, RLENGTH)
        after = substr(text, RSTART + RLENGTH, 1)
        text = substr(text, RSTART + RLENGTH)
        if (length(word) < 2 || word ~ /^[0-9xX]+$/) continue
        if (word in allowed) { used[word] = 1; continue }
        if (after == "*" || word ~ /_$/) continue                  # `cc_chan_*`, `CC_TRACE_`
        if (!known(word)) offend("`" word "` is " (FILENAME ~ /^src\// ? "not in the code of src/, include/ or apps/" : "nowhere in the code") ": name what is there now, or leave the backticks out")
    }
}
FNR == 1 { open = 0; fence = 0 }
FILENAME ~ /\.md$/ {
    if (/^ *```/) { fence = !fence; next }
    if (fence) next
    if (/^    / && !open && (blank || block)) { block = 1; next }  # an indented block
    block = 0
    blank = /^$/
    if (blank) open = 0
    line = $0
    links(line)
    while ((tick = index(line, "`")) > 0) {
        part = substr(line, 1, tick - 1)
        line = substr(line, tick + 1)
        if (open) { span = span part; check(span); open = 0 } else { open = 1; span = ""; at = FNR }
    }
    if (open) span = span line " "
}
FILENAME ~ /^(src|apps)\/.*\.[chS]$/ {
    n = split($0, pieces, "`")
    at = FNR
    if (n % 2 == 1) for (i = 2; i < n; i += 2) check(pieces[i])
    next
}
FILENAME !~ /\.md$/ && !/^\.Dt / {
    at = FNR
    line = $0
    gsub(/\\[fB][A-Z]/, " ", line)
    gsub(/\\-/, "-", line)
    gsub(/\\_/, "_", line)
    while (match(line, /(^|[^A-Za-z0-9_-])(cc_[a-z]|CC_[A-Z]|CC[A-Z][a-z])[A-Za-z0-9_]*/)) {
        word = substr(line, RSTART, RLENGTH)
        sub(/^[^cC]/, "", word)
        line = substr(line, RSTART + RLENGTH)
        if (line ~ /^(\*|\.\.\.|-)/ || word ~ /_$/) continue
        if (!known(word)) offend("`" word "` is nowhere in the code: name what is there now")
    }
}
END {
    FILENAME = "tools/names.allow"
    at = 1
    for (word in allowed) if (!(word in used)) offend("`" word "` is not needed any more: remove the line")
    exit bad
}' "${list[@]}" >"$work/out"
status=$?
sort -u -t: -k1,1 -k2,2n -k3 "$work/out"
exit $status
