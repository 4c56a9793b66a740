/* stall.c - reports a fiber that occupies its worker for too long, with its backtrace. Called by sysmon once per stall.
 */
#include "diag/dump.h"

#include "inspect/threads.h"
#include "os/clock.h"
#include "record/record.h"
#include "sched/island.h"

#include <stdio.h>

/* No worker sleeps, and none can be added. */
static void say_at_limit(struct out *out) {
    unsigned open = cc__sched_open();
    if (open < cc__sched.max || want_idle(cc__get_seq(&cc__sched.want)) != 0) return;
    cc__out(out, "    %s busy, and there may be no more: CC_MAX_WORKERS, which is %u, would allow it\n",
            open == 1 ? "the only worker is" : "all workers are", cc__sched.max);
}

void cc__upcall_stalled(struct worker *w, uint64_t ns) {
    struct fiber *f = cc__get(&w->core.current);
    struct view v;
    if (f == NULL || !cc__view_take(cc__view_slot(f), true, &v) || v.state != FIBER_RUNNING) return;
    struct out out = {0};
    cc__probe3(stall, w->core.owner - 1, f, ns);
    if (!cc__dump_begin_until(cc__clock_real() + DUMP_SOON_NS)) return;
    char who[96];
    struct thread_call call;
    bool known = cc__threads_call(cc__get(&w->remote.tid), &call);
    cc__view_trim(&v);
    cc__describe_fiber(&v, who, sizeof who);
    unsigned behind = cc__get(&w->runq.count) + cc__get(&w->remote.inbox_len);
    char where[48];
    if (cc__worker_is_island(w))
        snprintf(where, sizeof where, "its island");
    else
        snprintf(where, sizeof where, "worker %u", w->core.owner - 1);
    cc__out(
        &out, "ccc: stall: %s has kept %s for %.3g s without a pause, and %s; %u fiber%s behind it in the queue%s\n",
        who, where, (double)ns * 1e-9,
        !known         ? "still runs"
        : call.running ? "computes"
                       : "is blocked in a system call",
        behind, behind == 1 ? " is" : "s are", cc__worker_is_island(w) ? "; an island's fibers are not stolen" : "");
    cc__dump_frames(&out, &v, "    ");
    cc__dump_missing(&out);
    if (v.frames == 0 && cc__inspect_missing() == NULL)
        cc__out(&out, "    (its thread does not respond: no backtrace)\n");
    if (!cc__worker_is_island(w)) say_at_limit(&out);
    cc__dump_events(&out, w->core.owner - 1, "    ");
    cc__out_flush(&out);
    cc__dump_end();
    cc__record_save(false);
}
