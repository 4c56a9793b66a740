#!/usr/bin/env bash
# live-picture.sh [NAME] - takes the picture of the live page in docs/plots: of examples/hangs/lock_order.c, or of another of the hangs. Needs Chromium.
set -eu
cd "$(dirname "$0")/.."
name=${1:-lock_order}
cmake --preset release >/dev/null
cmake --build --preset release --target "examples_hangs_$name" examples_hangs_lock_order >/dev/null
tests/browser/run.sh hangs build/release docs/plots "$name"
ls -l "docs/plots/live-$name.png"
