/* elastic.c - starts and retires the threads of workers; the worker itself remains.
 *
 * Owns:    remote.status, idle.open, sched.count.
 * Partner: sysmon.c decides when to add workers; idle.c lets a sleeper retire whose time is over.
 *
 *   EMPTY --cc__elastic_open--> OPEN --cc__elastic_close_locked--> CLOSED --joined, cc__elastic_open--> OPEN
 *
 * Between its close and the end of its thread a retiring worker is DRAINING: it takes no fibers, and moves those in its
 * inbox to the global queue.
 *
 * ELASTIC-1  A worker that ever had a thread stays among the first `count`: every poll of all workers covers its inbox
 *            and its timers, whether it has a thread or not.
 * ELASTIC-2  A worker retires from the list of sleepers: it leaves the list under the lock, with another sleeper still
 *            on it. A notifier that comes too late for the first finds the second on the list, or awake and about to
 *            poll.
 * ELASTIC-3  A worker has one thread at a time: the last one is joined before the next one starts. So its state (its
 *            biased lock, its tag, its channels) continues as if it had slept.
 * ELASTIC-4  The first `base` workers have threads, and never retire.
 * ELASTIC-5  When the program exits, every retired thread has been joined, and no more retire: tools that look for
 *            threads that were not joined find none.
 */
#include "sched/elastic.h"

#include "base/fatal.h"
#include "os/clock.h"
#include "sched/idle.h"
#include "sched/inbox.h"
#include "sched/inject.h"
#include "sched/policy.h"
#include "sched/pressure.h"
#include "sched/upcalls.h"
#include "trace/trace.h"

#include <pthread.h>

static _Atomic uint64_t retire_ns = RETIRE_NS;
static _Atomic uint64_t grown, retired;
static pthread_mutex_t joining = PTHREAD_MUTEX_INITIALIZER; /* serialises joins: by sysmon, and at the exit */
static _Atomic bool exiting;                                /* written under sched.idle.lock */

void cc__elastic_set_retire(uint64_t ns) {
    cc__set(&retire_ns, ns);
}

uint64_t cc__elastic_grown(void) {
    return cc__get(&grown);
}

uint64_t cc__elastic_retired(void) {
    return cc__get(&retired);
}

/* ---- open ---- */

static void set_status(struct worker *w, enum worker_status status) {
    cc__lock_take(&cc__sched.idle.lock);
    bool was_open = cc__worker_open(w);
    cc__set(&w->remote.status, status);
    uint32_t open = cc__sched_open();
    cc__set(&cc__sched.idle.open, open + (status == WORKER_OPEN) - was_open);
    /* seq_cst: a thread that counts the workers after a heavy barrier misses none whose thread ran before the barrier
     * (cc__sched_contest). */
    if (cc__get(&cc__sched.count) < w->core.owner) cc__set_seq(&cc__sched.count, w->core.owner);
    cc__lock_release(&cc__sched.idle.lock);
}

/* ELASTIC-3. The caller holds `joining`. */
static void join_retired(struct worker *w) {
    if (cc__get(&w->remote.status) != WORKER_CLOSED) return;
    cc__thread_join(w->thread);
    set_status(w, WORKER_EMPTY);
}

static void *thread_main(void *w) {
    cc__thread_if_ended(cc__upcall_thread_ended);
    (void)cc__worker_main(w);
    cc__thread_if_ended(NULL);
    return NULL;
}

static int open_one(struct worker *w) {
    join_retired(w);
    set_status(w, WORKER_OPEN);
    bool extra = w->core.owner > cc__get(&cc__sched.base);
    if (extra) cc__bump(&grown); /* before it can retire */
    int error = cc__thread_start(&w->thread, thread_main, w);
    if (error != 0) {
        set_status(w, WORKER_EMPTY);
        if (extra) cc__set(&grown, cc__get(&grown) - 1);
    }
    return error;
}

unsigned cc__elastic_open(unsigned n, int *error) {
    unsigned opened = 0;
    *error = 0;
    pthread_mutex_lock(&joining);
    for (unsigned i = 0; i < cc__sched.max && opened < n && *error == 0; i++) {
        struct worker *w = &cc__sched.workers[i];
        if (cc__worker_open(w)) continue;
        *error = open_one(w);
        if (*error == 0) opened++;
    }
    pthread_mutex_unlock(&joining);
    return opened;
}

/* Makes the first n workers permanent, if all of them have threads. */
static void raise_base(unsigned n) {
    cc__lock_take(&cc__sched.idle.lock);
    bool open = true;
    for (unsigned i = 0; i < n; i++) open = open && cc__worker_open(&cc__sched.workers[i]);
    if (open) cc__set(&cc__sched.base, n);
    cc__lock_release(&cc__sched.idle.lock);
}

void cc__elastic_adapt(unsigned cpus) {
    unsigned wanted = cpus < cc__sched.asked ? cpus : cc__sched.asked, missing = 0;
    if (wanted > cc__get(&cc__sched.base)) {
        int error;
        for (unsigned i = 0; i < wanted; i++) missing += !cc__worker_open(&cc__sched.workers[i]);
        (void)cc__elastic_open(missing, &error);
        raise_base(wanted);
    }
    unsigned base = cc__get(&cc__sched.base);
    cc__set(&cc__sched.surplus, base > cpus ? base - cpus : 0);
}

void cc__elastic_exit(void) {
    cc__lock_take(&cc__sched.idle.lock);
    cc__set(&exiting, true);
    cc__lock_release(&cc__sched.idle.lock);
    pthread_mutex_lock(&joining);
    for (unsigned i = 0; i < cc__get(&cc__sched.count); i++) join_retired(&cc__sched.workers[i]);
    pthread_mutex_unlock(&joining);
}

/* Does not wait for a worker in a long turn, or one that never runs out of fibers. */
void cc__elastic_join_idle(void) {
    uint64_t until = cc__clock_real() + 500 * POLICY_MS;
    for (unsigned i = 0; i < cc__get(&cc__sched.count); i++)
        if (cc__get(&cc__sched.workers[i].remote.status) != WORKER_EMPTY &&
            !cc__thread_join_until(cc__sched.workers[i].thread, until))
            return;
}

void cc__elastic_join_all(void) {
    for (unsigned i = 0; i < cc__get(&cc__sched.count); i++)
        if (cc__get(&cc__sched.workers[i].remote.status) != WORKER_EMPTY) cc__thread_join(cc__sched.workers[i].thread);
    cc__set(&grown, 0);
    cc__set(&retired, 0);
}

/* ---- retire ---- */

static bool stays(struct worker *w) { /* ELASTIC-4 */
    return w->core.owner <= cc__get(&cc__sched.base);
}

uint64_t cc__elastic_until(struct worker *w, uint64_t now) {
    if (likely(stays(w))) return UINT64_MAX;
    uint64_t rest = cc__get(&retire_ns), end = w->idle_since + rest;
    return end > now ? end : now + (rest > RETIRE_AGAIN_NS ? rest : RETIRE_AGAIN_NS);
}

bool cc__elastic_over(struct worker *w) {
    if (stays(w) || cc__get(&cc__sched.stop) || cc__get(&exiting)) return false;
    /* The only sleeper does not retire: it may have to help the others (IDLE-4). */
    if (want_idle(cc__get(&cc__sched.want)) <= 1) return false;
    return cc__clock_now() - w->idle_since >= cc__get(&retire_ns);
}

void cc__elastic_close_locked(struct worker *w) {
    cc__set(&w->remote.status, WORKER_CLOSED);
    cc__set_release(&cc__sched.idle.open, cc__sched_open() - 1); /* after the list: see no_other_will_check */
    cc__bump(&retired);
}

void cc__elastic_drain(struct worker *w) {
    cc__event(worker_retires, w->core.owner - 1, cc__clock_now() - w->idle_since, cc__sched_open());
    cc__debug_assert(cc__get(&w->runq.count) == 0, "ELASTIC-2: a worker retires in front of its queue");
    struct link list;
    cc__list_init(&list);
    uint32_t n = cc__inbox_take(w, &list);
    if (n == 0) return;
    cc__inject_put_all(&list, n);
    cc__idle_notify(NULL);
}
