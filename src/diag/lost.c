/* lost.c - reports, in debug builds, a wait that does not end although its descriptor is ready.
 *
 * Either an event of the poller was lost, which is a bug of the library, or the program has closed the descriptor
 * without telling the library. Called by sysmon while all workers sleep (cc__upcall_quiet).
 */
#include "base/fatal.h"
#include "diag/diag.h"
#include "diag/dump.h"
#include "io/fd.h"
#include "os/clock.h"
#include "os/descriptor.h"
#include "sched/idle.h"

void cc__diag_lost_events(void) {
    struct io_lost lost;
    uint64_t epoch = cc__idle_epoch();
    if (!cc__sched_all_asleep() || !cc__fd_find_lost(cc__clock_now(), &lost)) return;
    if (!cc__sched_all_asleep() || cc__idle_epoch() != epoch) return;
    struct view v;
    char who[96] = "an OS thread", kind[200];
    if (lost.fiber != NULL && cc__view_take(cc__view_slot(lost.fiber), false, &v))
        cc__describe_fiber(&v, who, sizeof who);
    cc__os_describe(lost.number, !lost.reads, kind, sizeof kind);
    if (lost.closed)
        cc__warn("%s waits for fd %d, which is closed, but not by cc_fd_close: the wait will not end", who,
                 lost.number);
    else
        cc__warn("%s waits for fd %d (%s), which has been %s for %.1f s: an event was lost (FD-1)", who, lost.number,
                 kind, lost.reads ? "readable" : "writable", (double)cc__get(&cc__fd_lost_after) * 1e-9);
}
