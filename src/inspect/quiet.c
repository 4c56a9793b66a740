/* quiet.c - compares the process's threads with the list of those known to wait. */
#include "inspect/waits.h"

#include "blocking/blocking.h"
#include "inspect/sample.h"
#include "inspect/threads.h"
#include "sched/driver.h"
#include "sched/sysmon.h"
#include "sched/upcalls.h"
#include "signal/signal.h"
#include "wait/blocked.h"

#include <signal.h>

enum { THREADS_MAX = 2048 };

static struct {
    _Atomic uint32_t in_use; /* the arrays below */
    _Atomic uint64_t ours;   /* signals that the runtime itself handles */
    _Atomic int32_t own[QUIET_THREADS];
    int tids[THREADS_MAX];
    struct blocked_seen blocked[THREADS_MAX];
} quiet;

void cc__quiet_forget(void) {
    cc__set(&quiet.in_use, 0);
    for (unsigned i = 0; i < QUIET_THREADS; i++) cc__set(&quiet.own[i], 0);
}

void cc__quiet_thread_is_ours(unsigned place, int tid) {
    cc__set(&quiet.own[place], tid);
}

void cc__quiet_signal_is_ours(int signal) {
    (void)cc__or(&quiet.ours, UINT64_C(1) << (signal - 1));
}

#define BIT(signal) (UINT64_C(1) << ((signal)-1))

/* A handler may end the program, or leave a call of the library by a jump. Signals for a thread's own faults do not
 * count: no thread runs. */
bool cc__quiet_signals_may_come(void) {
    uint64_t own_faults =
        BIT(SIGSEGV) | BIT(SIGBUS) | BIT(SIGFPE) | BIT(SIGILL) | BIT(SIGTRAP) | BIT(SIGABRT) | BIT(SIGSYS);
    uint64_t ours = cc__get(&quiet.ours) | (cc__sample_is_alone() ? BIT(CC_SAMPLE_SIGNAL) : 0);
    return (cc__threads_caught() & ~(own_faults | ours)) != 0;
}

static bool is_worker(int tid) {
    for_all_workers(i, w) if (cc__get(&w->remote.tid) == tid) return true;
    for (unsigned i = 0; i < QUIET_THREADS; i++)
        if (cc__get(&quiet.own[i]) == tid) return true;
    return tid == cc__sysmon_thread() || tid == cc__signal_thread();
}

/* BLOCKED-1. */
static bool is_blocked_thread(int tid, unsigned blocked) {
    for (unsigned i = 0; i < blocked; i++) {
        const struct blocked_seen *g = &quiet.blocked[i];
        if (g->tid == tid) return g->waits && g->deadline == WAIT_FOREVER;
    }
    return false;
}

static bool list_and_compare(int but, bool runs) {
    unsigned blocked = cc__blocked_list(quiet.blocked, THREADS_MAX);
    int n = cc__threads_list(quiet.tids, THREADS_MAX);
    if (n < 0 || n > THREADS_MAX || blocked > THREADS_MAX) return false;
    unsigned strangers = 0;
    for (int i = 0; i < n; i++)
        strangers += quiet.tids[i] != but && !(runs && is_worker(quiet.tids[i])) &&
                     !is_blocked_thread(quiet.tids[i], blocked) && !cc__blocking_is_idle(quiet.tids[i]);
    return strangers == 0;
}

/* runs: a runtime runs and cannot stop meanwhile; else workers count as unknown. False also if another thread is
 * checking. */
static bool threads_are_known(int but, bool runs) {
#ifdef CC_TSAN
    /* The race detector's own threads, one more with every fork, cannot be told from the program's. */
    (void)but, (void)runs, (void)list_and_compare;
    return false;
#else
    if (cc__swap_seq(&quiet.in_use, 1) != 0) return false;
    bool known = list_and_compare(but, runs);
    cc__set_seq(&quiet.in_use, 0);
    return known;
#endif
}

bool cc__quiet_for_good(void) {
    return cc__upcall_unfinished() && !cc__drivers_pending() && cc__sched_all_asleep() &&
           !cc__quiet_signals_may_come() && threads_are_known(0, true);
}

bool cc__quiet_but_me(void) {
    return cc__sched_all_asleep() && threads_are_known(cc__thread_id(), true);
}

bool cc__quiet_threads(void) {
    return threads_are_known(0, false);
}
