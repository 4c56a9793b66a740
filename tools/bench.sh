#!/usr/bin/env bash
# bench.sh [NAME...] - runs the measurements of bench/ with one and with two workers.
set -u
cd "$(dirname "$0")/.." || exit 1
cmake --preset release >/dev/null && cmake --build --preset release -j "${JOBS:-$(nproc)}" >/dev/null || exit 1

names=("$@")
if ((${#names[@]} == 0)); then
    for source in bench/*.c; do
        [[ -e $source ]] && names+=("$(basename "$source" .c)")
    done
fi
status=0
for name in "${names[@]}"; do
    for workers in 1 2; do
        echo "== $name, workers=$workers"
        CC_WORKERS=$workers "build/release/bench/$name" || status=1
    done
done
exit $status
