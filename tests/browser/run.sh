#!/usr/bin/env bash
# run.sh answers|hangs [BUILD [MORE...]] - the live page and the programs of others: its answers by parsers of JSON and OpenMetrics (answers.py), or the page in a
# browser, which has to lead to the culprit of each hang of docs/hangs.md (hangs.py). TAP on standard output.
set -u
cd "$(dirname "$0")/../.." || exit 1
# Debian's python3-prometheus-client is for Debian's Python, which may not be the first one.
python=${PYTHON:-python3}
if [[ -z ${PYTHON:-} ]] && ! python3 -c 'import prometheus_client' 2>/dev/null && /usr/bin/python3 -c 'import prometheus_client' 2>/dev/null; then
    python=/usr/bin/python3
fi
command -v "$python" >/dev/null || { echo "1..0 # SKIP python3 is not there: tools/deps.sh test installs it"; exit 0; }
what=$1
build=${2:-build/release}
shift; shift
exec "$python" "tests/browser/$what.py" "$build" "$@"
