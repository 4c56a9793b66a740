#!/usr/bin/env bash
# run.sh - tests the tests: seeds a bug into a copy of the tree, builds, runs the test that must catch it, and removes the bug.
#
#   tests/mutate/run.sh                   all of bugs/, about half an hour on two cores
#   tests/mutate/run.sh --only PATTERN    some of them, by name
#   tests/mutate/run.sh --jobs N          so many at a time, each in a copy of its own; default 1
#   tests/mutate/run.sh --quick           runs only the test that a bug names, not the rest of its stage
#   tests/mutate/run.sh --resume          continues an interrupted run: verdicts are kept
#   tests/mutate/run.sh --publish         the table also goes to tests/mutate/results.md
#
# README.md says what a bug is and how to write one. The work tree is only read; everything is done in build/mutate, whose
# copies stay for the next time. First the catchers run without any bug, and must pass. Ends with a table and the line
# "N of M caught"; the status is 0 if that is enough (GOAL, in hundredths of all), and every bug ended as its file says.
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
work=$root/build/mutate
goal=93
jobs=1 only='*' quick=0 resume=0 publish=0
while (($# > 0)); do
    case $1 in
    --only) only=$2 && shift ;;
    --jobs) jobs=$2 && shift ;;
    --quick) quick=1 ;;
    --resume) resume=1 ;;
    --publish) publish=1 ;;
    *)
        sed -n '3,8s/^# *//p' "$0" >&2
        exit 2
        ;;
    esac
    shift
done
command -v patch >/dev/null || { echo "patch is needed" >&2; exit 1; }
compilers=$(($(nproc) / jobs > 0 ? $(nproc) / jobs : 1))

# ---- the list ----

field() { sed -n "/^---/q; s/^$2: *//p" "$here/bugs/$1.patch"; }
names=()
for file in "$here"/bugs/*.patch; do
    name=$(basename "$file" .patch)
    # shellcheck disable=SC2053 # the right side is a pattern
    [[ $name == $only ]] || continue
    for wanted in room breaks catch; do
        [[ -n $(field "$name" $wanted) ]] || { echo "bugs/$name.patch has no line '$wanted:'" >&2; exit 2; }
    done
    names+=("$name")
done
((${#names[@]} > 0)) || { echo "no bug has a name like '$only'" >&2; exit 2; }

# The order of work: a header that was changed and put back is built again by every stage that follows, so the stages that
# take long to build come first, and headers last in each.
in_order() {
    local name stage
    for name in "${names[@]}"; do
        read -r stage _ < <(field "$name" catch)
        case $stage in explore) stage=1 ;; tsan) stage=2 ;; asan) stage=3 ;; release) stage=4 ;; *) stage=5 ;; esac
        echo "$stage$(grep -c '^+++ .*\.h' "$here/bugs/$name.patch") $name"
    done | sort | cut -d ' ' -f 2
}

# ---- copies of the tree ----

files_of() { (cd "$1" && find . -path ./build -prune -o -name '.git*' -prune -o -type f -print | sort); }

# refresh TREE: what differs from the work tree is copied, with the time of the copy: so whatever was built from a bug is
# built again, also after a run that was interrupted.
refresh() {
    local tree=$1 file
    mkdir -p "$tree"
    while IFS= read -r file; do
        cmp -s "$root/$file" "$tree/$file" && continue
        mkdir -p "$tree/$(dirname "$file")"
        cp "$root/$file" "$tree/$file"
    done < <(files_of "$root")
    comm -13 <(files_of "$root") <(files_of "$tree") | while IFS= read -r file; do rm -f "$tree/$file"; done
}

# ---- catchers ----

# try TREE LOG STAGE PROGRAM [CASE]: 0: all passed. 1: something failed; says what. 2: it could not be found out; says why.
try() {
    local tree=$1 log=$2 stage=$3 program=$4 case=${5:-} status
    if [[ $stage == explore ]]; then
        (cd "$tree" && JOBS=$compilers tests/explore/run.sh "$program") >"$log" 2>&1 </dev/null
        status=$?
        if grep -q '^not ok 1 ' "$log"; then
            echo "it does not build"
            return 2
        fi
        ((status != 0)) || return 0
        sed -n 's/^not ok [0-9]* - \([a-z0-9_]*\).*/explore: \1/p' "$log" | head -n 1
        return 1
    fi
    (cd "$tree" && JOBS=$compilers TEST_STOP=1 tools/test.sh -p "$program" ${case:+-c "$case"} "$stage") >"$log" 2>&1 </dev/null
    status=$?
    if grep -q '^   FAILED build' "$log"; then
        echo "it does not build"
        return 2
    fi
    if ((status == 0)); then
        [[ $(tail -n 1 "$log") != 0\ passed* ]] && return 0
        echo "no case of $program ran in the stage $stage"
        return 2
    fi
    # "stage: program: 3 - case [workers=2]"
    sed -n '/^Failed:/,$ { /^  /p }' "$log" | head -n 1 | sed -E 's/^ *([a-z0-9]+): /\1 /; s/: [0-9]+ (- )?/: /'
    return 1
}

# try_rest TREE LOG STAGE: what the stage has besides, the quick ones first.
try_rest() {
    local group who status
    [[ $3 != explore ]] || return 0
    for group in unit fault battery programs examples apps stress; do
        who=$(try "$1" "$2.$group" "$3" "$group/*")
        status=$?
        if ((status == 1)); then
            echo "$who"
            return 1
        fi
    done
    return 0
}

seconds_since() { awk -v from="$1" -v to="$EPOCHREALTIME" 'BEGIN { printf "%.0f", to - from }'; }

# ---- one bug ----

# bug TREE NAME: leaves a line "verdict<tab>who<tab>seconds" in NAME.result. Verdicts: caught, elsewhere (not by who
# should have), survived, broken (no verdict about the tests is possible).
bug() {
    local tree=$1 name=$2 log=$work/log/$2 start=$EPOCHREALTIME verdict who status file catch
    [[ ! -e $work/result/$name ]] || return
    read -r -a catch < <(field "$name" catch)
    if ! (cd "$tree" && patch -p1 --fuzz=0 --no-backup-if-mismatch -r - <"$here/bugs/$name.patch") >"$log.patch" 2>&1; then
        verdict=broken who="it does not apply any more: $(grep -m 1 FAILED "$log.patch")"
    else
        who=$(try "$tree" "$log" "${catch[@]}")
        status=$?
        case $status in
        1) verdict=caught ;;
        2) verdict=broken ;;
        *)
            verdict=survived
            if ((!quick)) && [[ -z $(field "$name" survives) ]]; then
                who=$(try_rest "$tree" "$log" "${catch[0]}") || verdict=elsewhere
            fi
            ;;
        esac
    fi
    while IFS= read -r file; do
        cp "$root/$file" "$tree/$file"
    done < <(sed -n 's|^+++ b/\([^\t]*\).*|\1|p' "$here/bugs/$name.patch")
    printf '%s\t%s\t%s\n' "$verdict" "$who" "$(seconds_since "$start")" >"$work/result/$name"
    printf '%-10s %-36s %s\n' "$verdict" "$name" "$who"
}

# Each copy takes the next of the given things until there are none; what is done with one is a function's name.
in_copies() {
    local what=$1 k item
    shift
    rm -rf "$work/taken"
    mkdir -p "$work/taken"
    for ((k = 1; k <= jobs; k++)); do
        for item in "$@"; do
            mkdir "$work/taken/${item//[\/ *]/_}" 2>/dev/null || continue
            "$what" "$work/tree-$k" "$item"
        done &
    done
    wait
}

# What the catchers are built from.
digest() {
    (cd "$root" && find CMakeLists.txt CMakePresets.json cmake src include apps examples tests tools -path tests/mutate -prune -o \
        -type f -print0 | sort -z | xargs -0 sha256sum | sha256sum | cut -c 1-16)
}

# A catcher without any bug: must pass, or its failures would mean nothing. One that has passed on these sources will again.
check_catcher() {
    local words who stem=${2//[\/ *]/_} log
    log=$work/log/without_$stem
    [[ ! -e $passed/$stem ]] || return
    read -r -a words <<<"$2"
    if who=$(try "$1" "$log" "${words[@]}"); then
        touch "$passed/$stem"
        return
    fi
    echo "without any bug '$2' fails: $who (${log#"$root"/})"
    touch "$work/failed"
}

# ---- all ----

trap 'trap - INT TERM; kill 0; exit 130' INT TERM
mkdir -p "$work/log" "$work/result"
rm -f "$work/failed"
((resume)) || rm -f "$work"/result/*
for ((k = 1; k <= jobs; k++)); do refresh "$work/tree-$k" & done
wait
passed=$work/passed/$(digest)
mkdir -p "$passed"
mapfile -t catchers < <(for name in "${names[@]}"; do [[ -e $work/result/$name ]] || field "$name" catch; done | sort -u)
echo "== ${#catchers[@]} catchers, without any bug"
in_copies check_catcher "${catchers[@]}"
[[ ! -e $work/failed ]] || exit 1
echo "== ${#names[@]} bugs"
mapfile -t ordered < <(in_order)
in_copies bug "${ordered[@]}"

caught=0 wrong=0
table=$work/results.md
{
    echo "# Bugs that were put into the library, and who noticed"
    echo
    echo "Made by \`make mutate\`; [README.md](README.md) says how. A stage and a program are those of \`tools/test.sh\`."
    echo
    echo "| bug | room | what was broken | caught by | s |"
    echo "|---|---|---|---|---|"
} >"$table"
for name in "${names[@]}"; do
    IFS=$'\t' read -r verdict who seconds <"$work/result/$name"
    survives=$(field "$name" survives)
    case $verdict in
    caught | elsewhere)
        caught=$((caught + 1))
        [[ $verdict == caught && -z $survives ]] || { wrong=$((wrong + 1)) && who+=" (not what the list says)"; }
        ;;
    survived)
        who="nobody: ${survives:-the list says that it is caught}"
        [[ -n $survives ]] || wrong=$((wrong + 1))
        ;;
    *) wrong=$((wrong + 1)) ;;
    esac
    echo "| [\`$name\`](bugs/$name.patch) | $(field "$name" room) | $(field "$name" breaks) | $who | $seconds |" >>"$table"
done
printf '\n%d of %d caught.\n' "$caught" "${#names[@]}" >>"$table"
echo
sed -n 's/^| \[`\([^`]*\)`\][^|]*/| \1 /p' "$table" | awk -F ' *[|] *' '{ printf "%-34s %-9s %-52s %5s s\n    %s\n", $2, $3, $5, $6, $4 }'
((publish == 0)) || cp "$table" "$here/results.md"
echo
((wrong == 0)) || echo "$wrong did not end as bugs/ says; the output of each is in ${work#"$root"/}/log/."
echo "$caught of ${#names[@]} caught"
((wrong == 0 && caught * 100 >= goal * ${#names[@]}))
