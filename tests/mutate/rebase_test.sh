#!/usr/bin/env bash
# rebase_test.sh - rebase.sh on a small repository: what it must repair, what it must leave to be done by hand, what --check must find.
set -u
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
export MUTATE_ROOT=$work GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=t GIT_AUTHOR_EMAIL=t@t GIT_COMMITTER_NAME=t GIT_COMMITTER_EMAIL=t@t
git init -q .
mkdir -p src/room tests/mutate/bugs tests/unit/room
touch tests/unit/room/counts.c

# Eight functions that differ in all lines, so that a change can be found again wherever it goes.
for name in alpha beta gamma delta epsilon zeta eta theta; do
    printf 'int %s(int count) {\n    int %s_sum = 0;\n    for (int i = 0; i < count; i++) %s_sum += i;\n' $name $name $name
    printf '    if (%s_sum > 100) note_%s(%s_sum);\n    return %s_sum;\n}\n\n' $name $name $name $name
done >src/room/sums.c
git add . && git commit -qm one

# bug NAME SED: a patch of src/room/sums.c.
bug() {
    { printf 'room: room\nbreaks: %s\ncatch: debug unit/room/counts\n' "$1" &&
        sed "$2" src/room/sums.c | diff -U3 --label a/src/room/sums.c --label b/src/room/sums.c src/room/sums.c -; } >"tests/mutate/bugs/$1.patch"
}
bug renamed-line 's/if (alpha_sum > 100)/if (alpha_sum > 99)/'
bug deleted-line '/note_beta/d'
bug context-changed 's/return gamma_sum/return gamma_sum + 1/'
bug moved-away 's/delta_sum > 100/delta_sum >= 100/'
bug rewritten 's/theta_sum += i/theta_sum -= i/'
git add . && git commit -qm two

failed=0
expect() { # what, command...
    local what=$1
    shift
    "$@" >"$work/out" 2>&1 && return
    echo "FAILED: $what"
    sed 's/^/    /' "$work/out"
    failed=1
}
not() { ! "$@"; }
says() { grep -q "$1" "$work/said" || { cat "$work/said"; return 1; }; }
bug_says() { grep -qF -e "$2" "tests/mutate/bugs/$1.patch" || { cat "tests/mutate/bugs/$1.patch"; return 1; }; }

expect "all apply at first" "$here/rebase.sh" --check

# Identifiers are renamed, a function goes to another file, one is written anew, the file moves.
sed -i 's/alpha_sum/alpha_total/g; s/note_beta/report_beta/g; s/int count/unsigned number/; s/i < count/i < number/' src/room/sums.c
sed -n '/^int delta/,/^}/p' src/room/sums.c >src/room/moved.c
sed -i '/^int delta/,/^}/d; /^int theta/,/^}/c int theta(unsigned number) { return number * (number - 1) / 2; }' src/room/sums.c
git mv src/room/sums.c src/room/totals.c
"$here/rebase.sh" --check >"$work/said" 2>&1 && { echo "FAILED: --check finds nothing"; failed=1; }
expect "--check names each" test "$(grep -c 'does not apply' "$work/said")" = 5
"$here/rebase.sh" >"$work/said" 2>&1 && { echo "FAILED: the rewritten function needs no hand"; failed=1; }
expect "four are mended" says '^4 rebased, 1 need a hand'
expect "the fifth is named" says '^BY HAND   rewritten: '
expect "a change on a renamed line" bug_says renamed-line '+    if (alpha_total > 99)'
expect "a deleted line that was renamed" bug_says deleted-line '-    if (beta_sum > 100) report_beta(beta_sum);'
expect "a file that moved" bug_says context-changed '+++ b/src/room/totals.c'
expect "a function that moved" bug_says moved-away '+++ b/src/room/moved.c'
expect "the header stays" bug_says moved-away 'catch: debug unit/room/counts'
rm tests/mutate/bugs/rewritten.patch
git add . && git commit -qm three
expect "what was mended applies" "$here/rebase.sh" --check
echo 'TEST(adds_up) {' >tests/unit/room/counts.c
sed -i 's|^catch:.*|& adds|' tests/mutate/bugs/renamed-line.patch
expect "a case that exists" "$here/rebase.sh" --check
sed -i 's|^catch:.*|&_nothing|' tests/mutate/bugs/renamed-line.patch
"$here/rebase.sh" --check >"$work/said" 2>&1 && { echo "FAILED: a case that is gone is not noticed"; failed=1; }
expect "a case that is gone is named" says 'renamed-line.patch is to be caught by a case of unit/room/counts with adds_nothing'
git mv tests/unit/room/counts.c tests/unit/room/adds.c
"$here/rebase.sh" --check >"$work/said" 2>&1 && { echo "FAILED: a test that is gone is not noticed"; failed=1; }
expect "a test that is gone is named" says 'renamed-line.patch is to be caught by unit/room/counts, which is neither'
sed -i '/^breaks/d' tests/mutate/bugs/moved-away.patch
"$here/rebase.sh" --check >"$work/said" 2>&1
expect "a header without a line is named" says "moved-away.patch has no line 'breaks:'"
exit $failed
