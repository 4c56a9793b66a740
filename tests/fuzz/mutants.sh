#!/usr/bin/env bash
# mutants.sh [SECONDS [DIRECTORY [TEXT]]] - breaks a copy of the library in known ways and counts the executions that the fuzzer of
# operations needs to detect it; TAP. A mutant that survives SECONDS (default: 60) is not detected.
#
# With TEXT, only those whose name contains it. The mutants are the patches in mutants/; tests/mutate/README.md describes the format.
set -u
cd "$(dirname "$0")/../.." || exit 1
seconds=${1:-60} text=${3:-} out=$(realpath -m "${2:-build/fuzz-mutants}") here=$PWD
clang=$(compgen -c clang | grep -xE 'clang(-[0-9]+)?' | sort -V | tail -n 1)
[[ -n $clang ]] || { echo "1..0 # SKIP there is no clang"; exit 77; }
make="make -s -j $(nproc) -f tests/fuzz/ops/Makefile CC=$clang OUT=out out/ops"
mkdir -p "$out" && cd "$out" || exit 1
rm -rf src tests include && cp -r "$here/src" "$here/tests" "$here/include" . || exit 1
$make >build.log 2>&1 || { tail build.log; exit 1; }
number=0 status=0
for patch in "$here"/tests/fuzz/mutants/*.patch; do
    name=$(basename "$patch" .patch)
    [[ $name == *"$text"* ]] || continue
    number=$((number + 1))
    if ! patch -p1 --fuzz=0 -s --no-backup-if-mismatch -r - <"$patch" >patch.log 2>&1; then
        sed 's/^/# /' patch.log
        echo "not ok $number $name # does not apply: tests/mutate/rebase.sh"
        status=1
    elif ! $make >build.log 2>&1; then
        tail -n 5 build.log | sed 's/^/# /'
        echo "not ok $number $name # does not compile"
        status=1
    else
        rm -rf corpus && mkdir corpus
        head -c 12 /dev/zero >corpus/nothing # from nothing, not from the seeds
        ASAN_OPTIONS=quarantine_size_mb=16 timeout $((seconds + 60)) out/ops -max_len=600 -timeout=10 -max_total_time="$seconds" \
            -artifact_prefix=out/ -print_final_stats=1 corpus >log 2>&1 </dev/null
        rc=$?
        runs=$(sed -n 's/^stat::number_of_executed_units: *//p' log)
        why=$(grep -m 1 -E '^WRONG|runtime error|ERROR: AddressSanitizer|^ccc:|ERROR' log)
        if ((rc != 0)); then
            echo "ok $number $name # ${runs:-?} executions: ${why:-status $rc}"
        else
            echo "not ok $number $name # lives after ${runs:-?}"
            status=1
        fi
    fi
    while IFS= read -r file; do cp "$here/$file" "$file"; done < <(sed -n 's|^+++ b/\([^\t]*\).*|\1|p' "$patch")
done
echo "1..$number"
exit $status
