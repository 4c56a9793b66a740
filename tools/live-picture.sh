#!/usr/bin/env bash
# live-picture.sh [NAME] - takes the picture of the live page in docs/plots: of examples/hangs/circle.c, or of another of the hangs. Needs Chromium.
set -eu
cd "$(dirname "$0")/.."
name=${1:-circle}
cmake --preset release >/dev/null
cmake --build --preset release --target "examples_hangs_$name" examples_hangs_circle >/dev/null
tests/browser/run.sh hangs build/release docs/plots "$name"
ls -l "docs/plots/live-$name.png"
