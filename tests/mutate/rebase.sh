#!/usr/bin/env bash
# rebase.sh - keeps the patches of the seeded bugs applicable while the library changes.
#
#   tests/mutate/rebase.sh                 rewrites every patch that no longer applies to the work tree
#   tests/mutate/rebase.sh NAME...         only these
#   tests/mutate/rebase.sh --refresh       also those that apply with an offset: line numbers become exact
#   tests/mutate/rebase.sh --check         changes nothing; lists what does not apply, or names a test that does not exist
#
# The patches are tests/mutate/bugs/, tests/explore/mutants/ and tests/fuzz/mutants/*.patch; README.md describes the format.
# A patch is applied at the last commit where that is possible (found in the history of its files), and merged with the work
# tree: by lines; else by words, with identifiers that were renamed since; else by finding its lines in other files, if the code
# was moved. The merged patch must change as many lines as before. What cannot be merged is listed, with the reason and both
# sides of the conflict in build/mutate/rebase/NAME/; the status is then 1.
#
# Uncommitted changes count, so it can be run before a commit: in the middle of a rename, for instance.
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=${MUTATE_ROOT:-$(cd "$here/../.." && pwd)}
cd "$root" || exit 1
only=() check=0 refresh=0
while (($# > 0)); do
    case $1 in
    --check) check=1 ;;
    --refresh) refresh=1 ;;
    -*)
        sed -n '4,7s/^# *//p' "$0" >&2
        exit 2
        ;;
    *) only+=("$(basename "$1" .patch)") ;;
    esac
    shift
done

wanted() {
    local name
    ((${#only[@]} > 0)) || return 0
    for name in "${only[@]}"; do [[ $1 != "$name" ]] || return 0; done
    return 1
}
patches=()
for file in tests/mutate/bugs/*.patch tests/explore/mutants/*.patch tests/fuzz/mutants/*.patch; do
    [[ -e $file ]] && wanted "$(basename "$file" .patch)" && patches+=("$file")
done
((${#patches[@]} > 0)) || { echo "no such patch: ${only[*]}" >&2; exit 2; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

header_of() { sed '/^--- /,$d' "$1"; }
body_of() { sed -n '/^--- /,$p' "$1"; }
paths_of() { sed -n 's|^+++ b/\([^\t]*\).*|\1|p' "$1"; }
# applies PATCH DIR [OPTION...]: without fuzz, as run.sh does it.
applies() { patch -p1 --fuzz=0 -s -f -d "$2" -r - --no-backup-if-mismatch "${@:3}" <"$1" >/dev/null 2>&1; }

# ---- --check ----

# header_faults PATCH: one line for each thing that the header says and the tree does not know.
header_faults() {
    local field stage program words
    for field in room breaks catch; do
        grep -q "^$field: *[^ ]" <(header_of "$1") || echo "has no line '$field:'"
    done
    read -r -a words < <(header_of "$1" | sed -n 's/^catch: *//p')
    stage=${words[0]:-} program=${words[1]:-}
    [[ -n $program ]] || return
    if [[ $stage == explore ]]; then
        grep -qrE "SCENARIO\($program," tests/explore/scenarios || echo "is to be caught by the scenario $program, which does not exist"
    elif [[ $stage == fuzz ]]; then
        [[ -d tests/fuzz/$program ]] || echo "is to be caught by the fuzzer $program, which does not exist"
    elif [[ $program != *'*'* ]] && ! compgen -G "tests/$program.*" >/dev/null &&
        ! grep -qE "[ (]$program( |\$|\))" tests/CMakeLists.txt; then
        echo "is to be caught by $program, which is neither tests/$program.c nor in tests/CMakeLists.txt"
    elif [[ -n ${words[2]:-} ]] && compgen -G "tests/$program.*" >/dev/null &&
        ! grep -qsE "^(TEST[A-Z_]*\(|case_)[A-Za-z0-9_]*${words[2]}" "tests/$program".* "tests/${program%/*}"/*.h; then
        echo "is to be caught by a case of $program with ${words[2]} in its name, which does not exist"
    fi
}

if ((check)); then
    faults=0
    for file in "${patches[@]}"; do
        problems=$(
            applies "$file" . --dry-run || echo "does not apply"
            header_faults "$file"
        )
        [[ -n $problems ]] || continue
        while IFS= read -r problem; do
            echo "$file $problem"
            faults=$((faults + 1))
        done <<<"$problems"
    done
    ((faults == 0)) || echo "$faults faults; tests/mutate/rebase.sh mends what it can, and says what needs a hand."
    ((faults == 0))
    exit
fi

# ---- what the work tree is, and what was renamed since a commit ----

command -v patch >/dev/null && git rev-parse -q --verify HEAD >/dev/null || { echo "git and patch are needed" >&2; exit 1; }
cp "$(git rev-parse --git-path index)" "$work/index"
now=$(GIT_INDEX_FILE=$work/index bash -c 'git add -A . && git write-tree') || exit 1

# identifiers TREE: all that occur in its sources.
identifiers() { git grep -ohwE '[A-Za-z_][A-Za-z0-9_]*' "$1" -- src include apps 2>/dev/null | sort -u; }
identifiers "$now" >"$work/identifiers"

# code_words: a filter: the identifiers, without those of comments.
code_words() { sed -E 's|/\*.*\*/||; s|/\*.*||; /^ \*/d' | grep -oE '[A-Za-z_][A-Za-z0-9_]*' | sort -u; }

# gone LIST: a filter: of "old new" pairs those whose old name is not in the list.
gone() { awk -v list="$1" 'BEGIN { while ((getline name <list) > 0) now[name] } !($1 in now)'; }

# pairs WHAT...: "old new" pairs of words that became others in a git diff, the most frequent for each old one. Words that changed
# together are paired if they are as many on both sides.
pairs() {
    git diff -M30% -U0 --word-diff=porcelain --word-diff-regex='[A-Za-z_0-9]+|[^[:space:]]' "$@" |
        awk 'function words(text, list) { gsub(/[^A-Za-z_0-9]+/, " ", text); return split(text, list, " ") }
             /^-/ { n = words(substr($0, 2), old); next }
             /^\+/ && n > 0 && words(substr($0, 2), new) == n {
                 for (i = 1; i <= n; i++) if (old[i] != new[i] && old[i] ~ /^[A-Za-z_]/ && new[i] ~ /^[A-Za-z_]/) print old[i], new[i]
             }
             { n = 0 }' | sort | uniq -c | sort -rn | awk '!seen[$2]++ { print $2, $3 }'
}

# renames COMMIT PATH TARGET: a file of pairs: identifiers that became others since, and are gone from the whole tree; and from
# the file itself, which is TARGET now.
renames() {
    [[ -e $work/renames.$1 ]] || pairs "$1" "$now" -- src include apps | gone "$work/identifiers" >"$work/renames.$1"
    cat "$work/renames.$1" >"$work/map"
    if [[ -n $3 ]]; then
        git cat-file blob "$now:$3" | code_words >"$work/words"
        pairs "$1:$2" "$now:$3" | gone "$work/words" >>"$work/map" # the last one counts
    fi
    echo "$work/map"
}

# with_renames MAP: a filter.
with_renames() {
    awk -v map="$1" 'BEGIN { while ((getline pair <map) > 0) { split(pair, name, " "); to[name[1]] = name[2] } }
        {
            out = ""
            while (match($0, /[A-Za-z_][A-Za-z_0-9]*/)) {
                word = substr($0, RSTART, RLENGTH)
                out = out substr($0, 1, RSTART - 1) (word in to ? to[word] : word)
                $0 = substr($0, RSTART + RLENGTH)
            }
            print out $0
        }'
}

# moved_to COMMIT PATH: where the file is now.
moved_to() {
    if git cat-file -e "$now:$2" 2>/dev/null; then
        echo "$2"
    else
        git diff -M30% --diff-filter=R --name-status "$1" "$now" | awk -F '\t' -v path="$2" '$2 == path { print $3 }'
    fi
}

# ---- merging ----

# last_good PATCH: the youngest commit on whose files the patch applies; leaves them in $work/old and, patched, in $work/bug.
last_good() {
    local file=$1 commit path paths
    mapfile -t paths < <(paths_of "$file")
    for commit in HEAD $(git rev-list -n 400 --parents HEAD -- "${paths[@]}" | cut -d ' ' -f 2); do
        rm -rf "$work/old" "$work/bug"
        for path in "${paths[@]}"; do
            mkdir -p "$work/old/$(dirname "$path")"
            git cat-file blob "$commit:$path" >"$work/old/$path" 2>/dev/null || continue 2
        done
        cp -r "$work/old" "$work/bug"
        if applies "$file" "$work/bug"; then
            git rev-parse "$commit"
            return
        fi
    done
    return 1
}

words_of() { sed -E 's/$/\x01/; s/([A-Za-z0-9_]+|[^A-Za-z0-9_])/\1\n/g' "$1" | sed '/^$/d'; }
lines_of() { tr -d '\n' <"$1" | tr '\001' '\n'; }
changed_lines() { diff "$1" "$2" | grep -c '^[<>]'; }

# merge OLD BUG NEW RESULT: 0 when a merge was found that changes as many lines of NEW as BUG changes of OLD.
merge() {
    local old=$1 bug=$2 new=$3 result=$4 wanted side
    wanted=$(changed_lines "$old" "$bug")
    ((wanted > 0)) || return 1
    git merge-file -p "$bug" "$old" "$new" >"$result" 2>/dev/null && [[ $(changed_lines "$new" "$result") == "$wanted" ]] && return
    for side in "$old" "$bug" "$new"; do words_of "$side" >"$side.words"; done
    git merge-file -p "$bug.words" "$old.words" "$new.words" >"$result.words" 2>/dev/null || return 1
    lines_of "$result.words" >"$result"
    [[ $(changed_lines "$new" "$result") == "$wanted" ]]
}

# hunks OLD BUG DIR: the difference as one patch for each hunk.
hunks() {
    mkdir -p "$3"
    diff -U "$4" "$1" "$2" | awk -v dir="$3" '/^@@/ { n++ } n { print > (dir "/" n) }'
}

# place HUNK FIRST: puts a hunk into $work/new, into the file FIRST if it fits there, else into the only file where it does; says which.
place() {
    local hunk=$1 first=$2 context candidates=() path found=() line
    line=$(sed -n 's/^-\(.*[A-Za-z].*\)/\1/p' "$hunk" | head -n 1)
    [[ -n $line ]] || line=$(sed -n 's/^ \(.*[A-Za-z].*[A-Za-z].*\)/\1/p' "$hunk" | head -n 1)
    mapfile -t candidates < <(git grep -lF -e "$line" "$now" -- src include apps | sed 's/^[^:]*://')
    for context in "$first" "${candidates[@]}"; do
        [[ -n $context && " ${found[*]} " != *" $context "* ]] || continue
        path=$context
        if [[ ! -e $work/new/$path ]]; then
            mkdir -p "$work/new/$(dirname "$path")"
            git cat-file blob "$now:$path" >"$work/new/$path" 2>/dev/null || continue
        fi
        { printf -- '--- a/%s\n+++ b/%s\n' "$path" "$path" && cat "$hunk"; } >"$work/hunk"
        applies "$work/hunk" "$work/new" --dry-run || continue
        found+=("$path")
        [[ $path != "$first" ]] || break
    done
    ((${#found[@]} == 1)) || return 1
    { printf -- '--- a/%s\n+++ b/%s\n' "${found[0]}" "${found[0]}" && cat "$hunk"; } >"$work/hunk"
    applies "$work/hunk" "$work/new" && echo "${found[0]}"
}

# rewrite PATCH: the header as it was, and the difference between the work tree and $work/new.
rewrite() {
    local path
    header_of "$1" >"$work/patch"
    (cd "$work/new" && find . -type f | LC_ALL=C sort | sed 's|^\./||') | while IFS= read -r path; do
        git cat-file blob "$now:$path" | diff -U3 --label "a/$path" --label "b/$path" - "$work/new/$path"
    done >>"$work/patch"
    applies "$work/patch" . --dry-run && cp "$work/patch" "$1"
}

# rebase PATCH: 0 when it was rewritten. Says how, or why not.
rebase() {
    local file=$1 commit path target map how="" hunk keep failed place_of
    commit=$(last_good "$file") || { echo "no commit is known at which it applied"; return 1; }
    keep=build/mutate/rebase/$(basename "$file" .patch)
    rm -rf "$work/new" "$keep"
    mkdir -p "$work/new"
    while IFS= read -r path; do
        target=$(moved_to "$commit" "$path")
        : >"$work/now.c"
        [[ -z $target ]] || git cat-file blob "$now:$target" >"$work/now.c"
        map=$(renames "$commit" "$path" "$target")
        for side in old bug; do with_renames "$map" <"$work/$side/$path" >"$work/$side.c"; done
        if [[ -n $target ]]; then
            if merge "$work/old.c" "$work/bug.c" "$work/now.c" "$work/merged.c"; then
                mkdir -p "$work/new/$(dirname "$target")"
                cp "$work/merged.c" "$work/new/$target"
                [[ $target == "$path" ]] || how+=", $path is now $target"
                continue
            fi
        fi
        failed=1
        for context in 3 2 1; do # lines around a change
            rm -rf "$work/hunks" && hunks "$work/old.c" "$work/bug.c" "$work/hunks" "$context"
            cp -r "$work/new" "$work/new.before"
            failed=0
            for hunk in "$work"/hunks/*; do
                place_of=$(place "$hunk" "$target") || { failed=1 && break; }
                how+=", a change is now in $place_of"
            done
            rm -rf "$work/kept" && mv "$work/new" "$work/kept"
            if ((failed)); then mv "$work/new.before" "$work/new"; else mv "$work/kept" "$work/new" && rm -rf "$work/new.before" && break; fi
        done
        if ((failed)); then
            mkdir -p "$keep"
            diff -U3 --label "a/$path" --label "b/$path" "$work/old.c" "$work/bug.c" >"$keep/bug.diff"
            [[ -z $target ]] || diff -U3 --label "$path then" --label "$target now" "$work/old.c" "$work/now.c" >"$keep/since.diff"
            echo "$path${target:+ -> $target}: the lines that it changes were rewritten since ${commit:0:9}, or are in several places ($keep)"
            return 1
        fi
    done < <(paths_of "$file")
    rewrite "$file" || { echo "the merged patch does not apply: a defect of this script"; return 1; }
    echo "from ${commit:0:9}$how"
}

done_count=0 by_hand=()
for file in "${patches[@]}"; do
    name=$(basename "$file" .patch)
    if applies "$file" . --dry-run; then
        ((refresh)) || continue
        rm -rf "$work/new" && mkdir -p "$work/new"
        while IFS= read -r path; do
            mkdir -p "$work/new/$(dirname "$path")" && cp "$path" "$work/new/$path"
        done < <(paths_of "$file")
        applies "$file" "$work/new" && rewrite "$file"
        continue
    fi
    if said=$(rebase "$file"); then
        echo "rebased   $name: $said"
        done_count=$((done_count + 1))
    else
        by_hand+=("$name: $said")
    fi
done
((${#by_hand[@]} == 0)) || printf 'BY HAND   %s\n' "${by_hand[@]}"
echo "$done_count rebased, ${#by_hand[@]} need a hand"
((${#by_hand[@]} == 0))
