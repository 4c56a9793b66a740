#!/usr/bin/env bash
# check-includes.sh [SRC] - keeps the rooms of src/ apart. Prints each offending line and exits with 1.
#
#   - A file includes its own room and those earlier in the list; "room/file.h" is how it says so.
#   - The rooms from task to io are siblings: none includes another.
#   - What is done when the library is loaded is announced by CC_AT_LOAD: other constructors would run in every copy of it.
#   - memory_order is spelled only in sync/atomic.h, the environment is read only in rt/, and memory is
#     allocated only in base/mem.c.
#
# Comments and strings do not count, except that an include is read before its quotes are removed.
set -u
src=${1:-$(dirname "$0")/../src}
cd "$src" || exit 1

set -o pipefail
find . -type f -name '*.[chS]' | LC_ALL=C sort | sed 's|^\./||' | xargs -r awk '
BEGIN {
    count = split("base arch os sync trace fiber sched timer sim wait " \
                  "task chan select lock key nursery panic future parallel broadcast io island blocking file net signal process inspect record diag live rt", names, " ")
    for (i = 1; i <= count; i++) rank[names[i]] = i
    first_sibling = rank["task"]
    last_sibling = rank["io"]
}
function offend(rule) {
    printf "src/%s:%d: %s: %s\n", FILENAME, FNR, rule, $0
    bad = 1
}
function sibling(room) { return rank[room] >= first_sibling && rank[room] <= last_sibling }

# The line without comments and without the content of strings; a comment may span lines.
function code(text,    out, c, two) {
    out = ""
    while (text != "") {
        two = substr(text, 1, 2)
        c = substr(text, 1, 1)
        if (in_comment) {
            if (two == "*/") { in_comment = 0; text = substr(text, 3) } else text = substr(text, 2)
        } else if (two == "/*") {
            in_comment = 1
            text = substr(text, 3)
        } else if (two == "//") {
            break
        } else if (match(text, /^"([^"\\]|\\.)*"/) || match(text, /^\047([^\047\\]|\\.)*\047/)) {
            out = out c c
            text = substr(text, RLENGTH + 1)
        } else {
            out = out c
            text = substr(text, 2)
        }
    }
    return out
}
function check_include(target,    to) {
    to = target
    if (!sub(/\/.*/, "", to) || !(to in rank))
        offend("an internal header is included as \"room/file.h\"")
    else if (rank[to] > rank[room])
        offend(room " must not know " to)
    else if (to != room && sibling(to) && sibling(room))
        offend(room " and " to " are siblings")
}

FNR == 1 {
    in_comment = 0
    room = FILENAME
    sub(/\/.*/, "", room)
    if (!(room in rank)) offend("no such room")
}
{
    include = !in_comment && match($0, /^[ \t]*#[ \t]*include[ \t]*"[^"]+"/) ? substr($0, 1, RLENGTH) : ""
    line = code($0)
    if (include != "") {
        split(include, part, "\"")
        check_include(part[2])
    }
    if (line ~ /memory_order|__ATOMIC_|__sync_[a-z]/ && FILENAME != "sync/atomic.h")
        offend("memory orders belong to sync/atomic.h")
    if (line ~ /constructor/ && FILENAME != "base/san.h")
        offend("CC_AT_LOAD is how something is done at load")
    if (line ~ /(^|[^A-Za-z0-9_])(secure_)?getenv([^A-Za-z0-9_]|$)/ && room != "rt")
        offend("only rt reads the environment")
    if (line ~ /(^|[^A-Za-z0-9_.>])(malloc|calloc|realloc|free|aligned_alloc|posix_memalign|strdup)[ \t]*\(/ &&
        FILENAME != "base/mem.c")
        offend("only base/mem.c allocates")
}
END { exit bad }
' || exit 1
