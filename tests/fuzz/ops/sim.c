/* sim.c - simulated time: it stands still while the worker has a fiber to run, and jumps to the next timer when not.
 *
 * The linker redirects the library's calls of cc__clock_now, cc__clock_look and cc__futex_wait to this file. Only the
 * worker uses simulated time: the other threads (the one that waits for the run's end, sysmon) use real time. The
 * worker does not search before it sleeps, because the search would never end while the clock stands still.
 */
#include "ops.h"

#include "os/clock.h"
#include "os/futex.h"
#include "sched/sched.h"
#include "sched/watch.h"

static atomic_bool simulated;
static uint64_t now_ns; /* the worker's, while it is simulated */

uint64_t __real_cc__clock_now(void);
uint64_t __wrap_cc__clock_now(void);
uint64_t __wrap_cc__clock_look(void);
void __real_cc__futex_wait(_Atomic uint32_t *word, uint32_t expected, uint64_t until);
void __wrap_cc__futex_wait(_Atomic uint32_t *word, uint32_t expected, uint64_t until);

uint64_t __wrap_cc__clock_now(void) {
    return simulated && cc__worker() != NULL ? now_ns : __real_cc__clock_now();
}

uint64_t __wrap_cc__clock_look(void) {
    return __wrap_cc__clock_now();
}

void __wrap_cc__futex_wait(_Atomic uint32_t *word, uint32_t expected, uint64_t until) {
    if (simulated && cc__worker() != NULL) {
        if (cc__get_acquire(word) != expected) return;
        model_idle(until);
        if (until != CC_FUTEX_FOREVER) {
            if (until > now_ns) now_ns = until;
            return;
        }
    }
    __real_cc__futex_wait(word, expected, until);
}

/* The one worker sleeps, or is about to: no time that it has noted is later than the simulated one begins. */
void sim_start(void) {
    cc__sched.searchers_max = 0;
    cc__watch_set_timer_slack(0); /* the model predicts when each timer fires */
    now_ns = UINT64_C(1000000000) * 1000000000;
    simulated = true;
}

/* Unrecovered panics are an ordinary end here, and resolving names would take most of the time. */
void __wrap_cc__report_unstopped(const CCPanic *info);
void __wrap_cc__report_unstopped(const CCPanic *info) {
    (void)info;
}
