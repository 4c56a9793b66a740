#!/usr/bin/env bash
# selftest.sh COMMAND... - runs the selftest program and compares its verdicts with the expected ones.
#
# Comments are ignored, because they contain times and signal numbers.
set -u
verdicts=$(TEST_WORKER_LIST=1,3 TEST_TIMEOUT="${TEST_TIMEOUT:-1}" "$@" </dev/null 2>/dev/null | grep -v '^# ')

diff -u --label expected --label printed - <(sed 's/ *$//' <<<"$verdicts") <<'END'
1..23
ok 1 - passes
not ok 2 - fails_a_check
not ok 3 - fails_in_a_thread
not ok 4 - crashes
not ok 5 - exits_early
ok 6 - exits_when_done
not ok 7 - exits_with_a_status
not ok 8 - hangs
ok 9 - leaves_a_child
ok 10 - is_skipped # SKIP for a reason
ok 11 - has_workers [workers=1]
ok 12 - has_workers [workers=3]
not ok 13 - fails_with_one_worker [workers=1]
ok 14 - fails_with_one_worker [workers=3]
ok 15 - dies_as_expected
ok 16 - dies_by_status
ok 17 - dies_by_signal
not ok 18 - dies_by_wrong_signal
not ok 19 - dies_silently
not ok 20 - lives
not ok 21 - dies_of_a_check
not ok 22 - hangs_instead_of_dying
ok 23 - is_skipped_instead_of_dying # SKIP
END
