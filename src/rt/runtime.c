/* runtime.c - builds everything and tears it down in mirror order.
 *
 *   STOPPED --start--> RUNNING --shutdown: all tasks ended--> STOPPING --> STOPPED
 *   any --fork, in the child--> FORKED: nothing works but exec and _exit
 *
 * RT-1  A thread that is not a worker is counted while it is inside (enter, leave). STOPPING is published
 *       before the count is looked at, and the count before the state: one of the two sees the other, so
 *       nothing is torn down under anybody's feet.
 * RT-2  Fibers keep the runtime up by being there: it stops only when no task is active. A thread that is inside may
 *       start one after STOPPING, and stay inside until it ends (cc_run): then the runtime is RUNNING again.
 * RT-3  A thread that wakes a fiber is counted before the fiber can run, hence before it can end: the look at the
 *       count, which comes after the look at the tasks, sees it.
 * RT-4  Shutdown: (1) wait for the tasks to end, for as long as the caller says; (2) refuse new ones; (3) cancel the
 *       waits of those that are left, and again what they wait for next; (4) wait until all have ended: then every
 *       queue and inbox is empty, since whoever is in one is active; (5) the workers leave. Who does not end keeps the
 *       runtime up, and is named.
 * RT-5  Nobody waits for a shutdown while holding a lock that a thread inside may want: the shutdown would wait for
 *       that thread. Who takes a channel's bias away holds the channel's lock and has to enter
 *       (cc__upcall_enter_locked). So the door has two steps. STOPPING keeps new ones out, but not those. When nobody
 *       is inside the count is closed, in one step with the look at it; from then on everybody is kept out, and what
 *       follows takes no lock of a channel.
 */
#include "base/fatal.h"
#include "base/san.h"
#include "diag/diag.h"
#include "fiber/pool.h"
#include "fiber/stack.h"
#include "inspect/sample.h"
#include "io/io.h"
#include "lock/parking_lot.h"
#include "os/clock.h"
#include "os/signals.h"
#include "os/vm.h"
#include "panic/panic.h"
#include "rt/config.h"
#include "sched/elastic.h"
#include "sched/sysmon.h"
#include "sched/upcalls.h"
#include "sched/wake.h"
#include "sim/sim.h"
#include "sync/backoff.h"
#include "task/task.h"
#include "timer/timer.h"
#include "trace/timing.h"
#include "trace/trace.h"
#include "wait/blocked.h"
#include "wait/cancel.h"

#include <ccc/cc_sim.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

enum rt_state { RT_STOPPED, RT_RUNNING, RT_STOPPING, RT_FORKED };

#define INSIDE_CLOSED (UINT32_C(1) << 31) /* RT-5 */

static struct {
    _Atomic uint32_t state;
    _Atomic uint32_t inside; /* threads that are not workers, between enter and leave, or INSIDE_CLOSED; futex */
    pthread_mutex_t change;  /* start and shutdown, one at a time */
    pthread_once_t once;
    struct config config;
} rt = {.change = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT};

/* ---- fork ---- */

/* RT-6  In a forked child the other threads are gone, and what they were about to do is left half done. While the
 *       runtime was stopped, the child may start it: so the locks that are taken without a runtime are free, and the
 *       lists behind them empty. Every lock of that kind has a function in the list below. */
static void in_forked_child(void) { /* RT-6 */
    static void (*const forget[])(void) = {
        cc__trace_forget,  cc__blocked_forget, cc__join_forget, cc__local_forget,         cc__parking_lot_forget,
        cc__report_forget, cc__hosted_forget,  cc__io_forget,   cc__diag_deadlock_forget, cc__diag_dump_forget,
    };
    if (cc__trace_on(TRACE_TIMING)) cc__timing_forget();
    for (size_t i = 0; i < array_len(forget); i++) forget[i]();
    if (cc__get(&rt.state) == RT_STOPPED) {
        rt.change = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
        cc__set(&rt.inside, 0);
        return;
    }
    cc__set(&rt.state, RT_FORKED);
    cc__worker_set(NULL);
    cc__sim_forget();
}

CC_AT_LOAD(watch_forks) {
    pthread_atfork(NULL, NULL, in_forked_child);
}

static CC_NORETURN CC_COLD void refuse_after_fork(void) {
    cc__fatal(
        "the runtime was used in a child process after fork; the child has none of its workers. Call exec or _exit in the child, or "
        "fork before the runtime starts");
}

void cc__upcall_orphaned(void) {
    refuse_after_fork();
}

/* ---- start ---- */

static void at_exit(void) {
    if (cc__get(&rt.state) == RT_RUNNING && rt.config.stats) cc__diag_stats();
    if (cc__get(&rt.state) == RT_RUNNING && rt.config.pressure_stats) cc__diag_pressure();
    if (cc__get(&rt.state) == RT_RUNNING && rt.config.leak_report) cc__diag_leaks("when the program exits");
    cc__diag_timing();
    if (cc__get(&rt.state) != RT_RUNNING) return;
    cc__elastic_exit();
    /* Memory that the C library has for a thread counts as possibly lost while the thread lives. */
    if (cc__san_on_valgrind() && cc__worker() == NULL && cc__sched_active() == 0) (void)cc_runtime_shutdown(0);
}

static void first_time(void) {
    atexit(at_exit);
}

static int start_locked(const CCRuntimeConfig *wanted) {
    struct config config;
    int rc = cc__config_read(wanted, &config);
    if (rc != 0) return rc;
    pthread_once(&rt.once, first_time);
    if (config.sim_seed != 0 && cc__sim_seed() == 0) cc__config_simulate(config.sim_seed, false); /* it was set since */
    if (config.sim_seed != 0 && !cc__sim_open()) return ENOMEM;
    rt.config = config;
    cc__trace_set(config.trace);
    cc__vm_init();
    cc__pool_init();
    cc__stack_init(config.stack_size);
    cc__panic_aborts(config.panic_abort);
    cc__sysmon_set_stall(config.stall_ns);
    cc__diag_deadlock_aborts(config.deadlock_abort);
    cc__diag_deadlock_status(config.deadlock_status);
    if (config.debug_locks || config.sim_seed != 0) cc__diag_watch_locks(config.debug_locks);
    cc__fault_install(cc__diag_fault);
    cc__barrier_init(config.membarrier);
    if (!config.membarrier) cc__parking_lot_disable_fast_unlock(); /* an earlier life may have had it */
    cc__drivers[0] = &cc__timer_driver;
    if (cc__drivers[1] == NULL) cc__drivers[1] = &cc__io_driver; /* a test may have put one of its own there */
    rc = cc__sched_start(config.workers, config.max_workers, config.queue_slots, config.sim_seed != 0);
    if (rc != 0) {
        if (config.sim_seed != 0) cc__sim_close();
        cc__fault_remove();
        cc__stack_destroy();
        cc__pool_destroy();
        return rc;
    }
    if (config.verbose && config.sim_seed != 0)
        cc__warn("simulated with seed %llu", (unsigned long long)config.sim_seed);
    if (config.verbose)
        cc__warn("%u worker%s, up to %u, %zu KiB stacks, guards by %s, %s barriers", config.workers,
                 config.workers == 1 ? "" : "s", config.max_workers, cc__stack_default() / 1024,
                 cc__vm_guard_is_free() ? "advice" : "mprotect", cc__barrier_asymmetric ? "asymmetric" : "symmetric");
    cc__diag_dump_on(config.dump_signal);
    cc__set_seq(&rt.state, RT_RUNNING);
    cc__sched_route_traces();
    return 0;
}

int cc_runtime_init(const CCRuntimeConfig *config) {
    if (cc_in_fiber() || cc__worker_ending()) return EDEADLK;
    if (cc__get(&rt.state) == RT_FORKED) refuse_after_fork();
    pthread_mutex_lock(&rt.change);
    int rc = cc__get(&rt.state) == RT_RUNNING ? EALREADY : start_locked(config);
    pthread_mutex_unlock(&rt.change);
    return rc;
}

/* ---- threads that are not workers ---- */

static void leave(void) {
    /* seq_cst: RT-1. The last one out tells a shutdown that waits. */
    if (cc__sub_seq(&rt.inside, 1) == 1 && cc__get_seq(&rt.state) != RT_RUNNING) cc__futex_wake(&rt.inside, INT32_MAX);
}

/* How often the calling thread is inside. One that is keeps the runtime up, also when that is about to stop: it may
 * enter again at any time. */
static _Thread_local unsigned depth __attribute__((tls_model("initial-exec")));

int cc__upcall_enter(bool start) {
    if (unlikely(depth > 0)) {
        if (cc__get(&rt.state) == RT_FORKED) refuse_after_fork();
        cc__upcall_hold();
        return 0;
    }
    for (;;) {
        cc__add_seq(&rt.inside, 1);
        uint32_t state = cc__get_seq(&rt.state);
        if (likely(state == RT_RUNNING)) {
            depth++;
            return 0;
        }
        leave();
        if (state == RT_FORKED) refuse_after_fork();
        if (!start) return state == RT_STOPPED ? ESRCH : ECANCELED;
        if (cc__worker_ending()) return ECANCELED; /* which waits for us */
        int rc = cc_runtime_init(NULL);            /* waits for a shutdown that is under way */
        if (rc != 0 && rc != EALREADY) return rc;
    }
}

bool cc__upcall_enter_locked(void) {
    if (depth > 0) return cc__upcall_enter(false) == 0;
    for (struct backoff backoff = {0};; cc__backoff(&backoff)) {
        bool closed = (cc__add_seq(&rt.inside, 1) & INSIDE_CLOSED) != 0;
        uint32_t state = cc__get_seq(&rt.state);
        if (state == RT_RUNNING || (state == RT_STOPPING && !closed)) { /* RT-5 */
            depth++;
            return true;
        }
        leave();
        if (state == RT_FORKED) refuse_after_fork();
        if (state == RT_STOPPED) return false;
        if (closed && cc__worker_ending() && cc__sched_active() == 0) return false; /* the end waits for this thread */
    }
}

void cc__upcall_leave(void) {
    depth--;
    leave();
}

void cc__upcall_hold(void) {
    depth++;
    cc__add_seq(&rt.inside, 1);
}

/* ---- shutdown ---- */

/* False: a thread inside has started a task, and may stay inside until that ends (cc_run). */
static bool close_count(void) {
    for (uint32_t inside = 0; !cc__cas_seq(&rt.inside, &inside, INSIDE_CLOSED); inside = 0) {
        if (cc__sched_active() != 0) return false;
        cc__futex_wait(&rt.inside, inside, cc__clock_real() + 1000 * 1000); /* a task that starts wakes nobody here */
    }
    return true;
}

/* The state says already what those find who come now: RUNNING, or that there is nothing to enter. */
static void open_count(void) {
    cc__and_seq(&rt.inside, ~INSIDE_CLOSED);
}

/* Ends every wait. */
static void cancel_waits(void) {
    for (uint32_t slot = 0; slot < cc__pool_size(); slot++) {
        struct fiber *f = cc__pool_at(slot);
        uint64_t word = cc__get_acquire(&f->word);
        enum fiber_state state = cc__word_state(word);
        if (state == FIBER_PARKED || state == FIBER_PARKING) (void)cc__fiber_wake(f, word & WORD_TICKET, WAKE_CANCEL);
    }
}

/* Cancels again and again: what one wave sets free may wait again. */
static bool drain_by_cancelling(uint64_t until) {
    for (uint64_t step = 1000 * 1000;; step = step < 8 * 1000 * 1000 ? step * 2 : step) {
        cancel_waits();
        uint64_t now = cc__clock_now();
        uint64_t next = now + step < until ? now + step : until;
        if (cc__sched_drain(next)) return true;
        if (next == until) return false;
    }
}

/* Everybody out. False: somebody was quicker and has started another task. */
static bool close_door(void) {
    cc__set_seq(&rt.state, RT_STOPPING);
    if (close_count() && cc__sched_active() == 0) return true;
    cc__set_seq(&rt.state, RT_RUNNING);
    open_count();
    return false;
}

/* Waits for all tasks to end, first patiently, then refusing new ones and cancelling waits; leaves with the
 * door closed. */
static bool wind_down(uint64_t timeout_ms) {                 /* RT-2 */
    uint64_t grace_ms = timeout_ms < 100 ? 100 : timeout_ms; /* a cancelled wait needs a moment to be noticed */
    uint64_t patient_until = cc_after_ms(timeout_ms).ns;
    while (cc__sched_drain(patient_until)) {
        if (close_door()) return true;
        if (cc__clock_now() >= patient_until) break;
    }
    if (rt.config.leak_report) cc__diag_leaks("when the runtime shuts down");
    cc__or_seq(&cc__sched.spawns, SPAWNS_REFUSED);
    cc__sched_contest(true);
    uint64_t until = cc_after_ms(grace_ms).ns;
    while (drain_by_cancelling(until))
        if (close_door()) return true;
    cc__sched_contest(false);
    cc__and_seq(&cc__sched.spawns, ~(uint32_t)SPAWNS_REFUSED);
    return false;
}

static int shutdown_locked(uint64_t timeout_ms) {
    if (cc__get(&rt.state) != RT_RUNNING) return 0;
    if (!wind_down(timeout_ms)) {
        unsigned long long active = cc__sched_active();
        cc__warn("shutdown: %llu task%s after %llu ms; the runtime goes on:", active,
                 active == 1 ? " still runs" : "s still run", (unsigned long long)timeout_ms);
        cc__diag_unfinished();
        return ETIMEDOUT;
    }
    if (rt.config.stats) cc__diag_stats();
    if (rt.config.pressure_stats) cc__diag_pressure();
    cc__diag_timing();
    cc__diag_dump_off();
    cc__sched_stop();
    if (rt.config.sim_seed != 0) cc__sim_close();
    cc__sample_remove();
    cc__hosted_trim();
    cc__fault_remove();
    cc__stack_destroy();
    cc__pool_destroy();
    cc__set_seq(&rt.state, RT_STOPPED);
    open_count();
    cc__blocked_look_alone();
    return 0;
}

int cc_runtime_shutdown(uint64_t timeout_ms) {
    if (cc_in_fiber() || cc__worker_ending()) return EDEADLK;
    if (cc__get(&rt.state) == RT_FORKED) refuse_after_fork();
    pthread_mutex_lock(&rt.change);
    int rc = shutdown_locked(timeout_ms);
    pthread_mutex_unlock(&rt.change);
    return rc;
}

/* ---- the rest of cc_sched.h ---- */

/* An OS thread is inside from the spawn to the end of the join: a runtime that stopped in between would take the
 * outcome
 * with it, and one that was about to stop would keep the join out while the task runs. */
int cc_run(CCTaskFn fn, void *arg, void **result) {
    CCTask task;
    struct worker *w = cc__worker();
    int rc = fn != NULL ? cc__task_enter(w, true) : EINVAL;
    if (rc != 0) return rc;
    rc = cc__upcall_spawn_in(0, &task, fn, arg, NULL, __builtin_return_address(0));
    if (rc == 0) rc = cc__cancel_join_owned(&task, result);
    cc__task_leave(w);
    return rc;
}

/* ---- cc_sim.h ---- */

enum { SIM_GRACE_MS = 1000 };

static int start_simulated(uint64_t seed, uint64_t before) {
    pthread_mutex_lock(&rt.change);
    int rc = EALREADY;
    if (cc__get(&rt.state) != RT_RUNNING) {
        cc__config_simulate(seed, true);
        rc = start_locked(NULL);
        if (rc != 0) cc__config_simulate(before, false);
    }
    pthread_mutex_unlock(&rt.change);
    return rc;
}

int cc_sim_run(uint64_t seed, CCTaskFn fn, void *arg, void **result) {
    if (seed == 0 || fn == NULL) return EINVAL;
    if (cc_in_fiber()) return EDEADLK;
    if (cc__get(&rt.state) == RT_FORKED) refuse_after_fork();
    uint64_t before = cc__sim_seed(); /* the environment's */
    int rc = start_simulated(seed, before);
    if (rc != 0) return rc;
    rc = cc_run(fn, arg, result);
    int ended = cc_runtime_shutdown(SIM_GRACE_MS);
    if (ended == 0) cc__config_simulate(before, false);
    return rc != 0 ? rc : ended;
}

uint64_t cc_sim_seed(void) {
    return cc__sim_seed();
}

unsigned cc_worker_count(void) {
    if (cc__worker() != NULL) return cc__sched_open();
    if (cc__upcall_enter(false) != 0) return 0;
    unsigned count = cc__sched_open();
    cc__upcall_leave();
    return count;
}
