#!/bin/sh
# ccpigz.sh - ccpigz beside pigz and gzip: time, CPU time, memory and size, in one run; --help has the options. The work is
# done by tools/bench/ccpigz.py.
cd "$(dirname "$0")/.." && exec python3 tools/bench/ccpigz.py "$@"
