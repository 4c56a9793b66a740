/* runtime.c - start and shutdown.
 *
 *   STOPPED --start--> RUNNING --shutdown: all tasks ended--> STOPPING --> STOPPED
 *   any --fork, in the child--> FORKED: nothing works but exec and _exit
 *
 * RT-1  A thread that is not a worker is counted while it is inside (enter, leave). A shutdown stores STOPPING, then
 *       loads the count; a thread increments the count, then loads the state: one of the two sees the other, so nothing
 *       is freed while a thread uses it.
 * RT-2  Fibers keep the runtime up: it stops only when no task is active. A thread that is inside may start one after
 *       STOPPING, and stay inside until it ends (cc_run): then the runtime is RUNNING again.
 * RT-3  A thread that wakes a fiber is counted before the fiber can run, hence before it can end: a shutdown reads the
 *       count after the number of tasks, and sees the thread.
 * RT-4  Shutdown: (1) wait for the tasks to end, up to the caller's timeout; (2) refuse new ones; (3) cancel the waits
 *       of the remaining ones, repeatedly; (4) wait until all have ended: then every queue and inbox is empty, since a
 *       fiber in one is active; (5) stop the workers. A task that does not end keeps the runtime up, and is reported.
 *       Abandoned blocking calls are waited for like tasks; they cannot be cancelled. Idle threads of pools end when
 *       no caller is left.
 * RT-5  No thread waits for a shutdown while it holds a lock that a thread inside may want: the shutdown would wait for
 *       that thread. A thread that revokes a channel's bias holds the channel's lock and has to enter
 *       (cc__upcall_enter_locked). So a shutdown refuses entries in two steps. STOPPING refuses all but those. When no
 *       thread is inside, one compare-and-swap closes the count; from then on every entry is refused, and the rest of
 *       the shutdown takes no channel's lock.
 */
#include "base/fatal.h"
#include "base/san.h"
#include "blocking/pool.h"
#include "diag/diag.h"
#include "fiber/pool.h"
#include "fiber/stack.h"
#include "inspect/sample.h"
#include "inspect/waits.h"
#include "io/io.h"
#include "key/key.h"
#include "live/live.h"
#include "lock/holder.h"
#include "lock/parking_lot.h"
#include "net/net.h"
#include "os/clock.h"
#include "os/loaded.h"
#include "os/signals.h"
#include "os/vm.h"
#include "panic/panic.h"
#include "record/record.h"
#include "rt/config.h"
#include "sched/elastic.h"
#include "sched/island.h"
#include "sched/sysmon.h"
#include "sched/upcalls.h"
#include "sched/wake.h"
#include "signal/signal.h"
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
    _Atomic bool starting;   /* still STOPPED, but partly initialised */
    pthread_mutex_t change;  /* start and shutdown, one at a time */
    pthread_once_t once;
    struct config config;
} rt = {.change = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT};

/* ---- fork ---- */

/* RT-6  In a forked child the other threads do not exist, and their operations are left unfinished. If the runtime was
 *       stopped, the child may start it: so the locks that are taken without a runtime are released here, and the lists
 *       that they protect emptied. Every such lock has a function in the list below. A runtime that was being started
 *       or stopped is unusable in the child. */
static void in_forked_child(void) { /* RT-6 */
    static void (*const forget[])(void) = {
        cc__trace_forget,         cc__blocked_forget,   cc__join_forget,   cc__local_forget,
        cc__parking_lot_forget,   cc__report_forget,    cc__stack_forget,  cc__io_forget,
        cc__blocking_forget,      cc__net_forget,       cc__quiet_forget,  cc__sample_forget,
        cc__diag_deadlock_forget, cc__diag_dump_forget, cc__signal_forget, cc__key_forget,
        cc__recorder_forget,      cc__record_forget,    cc__live_forget,   cc__holder_forked,
    };
    if (cc__trace_on(TRACE_TIMING)) cc__timing_forget();
    for (size_t i = 0; i < array_len(forget); i++) forget[i]();
    if (cc__get(&rt.state) == RT_STOPPED && !cc__get(&rt.starting)) {
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

CC_COLD void cc__upcall_orphaned(void) {
    cc__fatal(
        "the runtime was used in a child process after fork; the child has none of its workers. Call exec or _exit in the child, or "
        "fork before the runtime starts");
}

/* ---- start ---- */

static void at_exit(void) {
    if (cc__get(&rt.state) == RT_RUNNING && rt.config.stats) cc__diag_stats();
    if (cc__get(&rt.state) == RT_RUNNING && rt.config.pressure_stats) cc__diag_pressure();
    if (cc__get(&rt.state) == RT_RUNNING && rt.config.leak_report) cc__diag_leaks("when the program exits");
    cc__diag_timing();
    if (cc__get(&rt.state) != RT_RUNNING) return;
    cc__record_save(true);
    cc__live_exit();
    cc__elastic_exit();
    cc__blocking_exit();
    /* Valgrind reports the C library's memory of a live thread as possibly lost. */
    if (!cc__san_on_valgrind() || cc__worker() != NULL) return;
    if (cc__sched_active() == 0)
        (void)cc_runtime_shutdown(0);
    else
        cc__sched_exit();
}

static void first_time(void) {
    atexit(at_exit);
    const char *sanitizer = cc__san_missing();
    if (sanitizer != NULL)
        cc__warn("this program is built with -fsanitize=%s, and this libccc has no copy for it: what the sanitizer "
                 "reports about fibers may be false. Build libccc with CC_SANITIZER_VARIANTS=ON and not as Debug",
                 sanitizer);
}

static int build_locked(const CCRuntimeConfig *wanted) {
    struct config config;
    int rc = cc__config_read(wanted, &config);
    if (rc != 0) return rc;
    pthread_once(&rt.once, first_time);
    if (config.sim_seed != 0 && !cc__sim_open()) return ENOMEM;
    rt.config = config;
    rc = cc__record_configure(config.record_file, config.record_level);
    if (rc == 0) rc = cc__record_attach(config.max_workers);
    if (rc != 0) {
        if (config.sim_seed != 0) cc__sim_close();
        return rc;
    }
    cc__vm_init();
    cc__pool_init();
    cc__stack_init(config.stack_size);
    if (config.debug_locks || config.sim_seed != 0) cc__diag_watch_locks(config.debug_locks);
    cc__fault_install(cc__diag_fault, config.record_file != NULL ? cc__upcall_aborts : NULL);
    cc__fatal_also(cc__upcall_dies);
    cc__barrier_init(config.membarrier);
    if (!config.membarrier) cc__parking_lot_disable_fast_unlock(); /* an earlier start may have enabled it */
    cc__drivers[0] = &cc__timer_driver;
    if (cc__drivers[1] == NULL) cc__drivers[1] = &cc__io_driver; /* a test may have installed its own */
    struct sched_size size = {config.min_workers, config.workers, config.max_workers, config.adapts};
    rc = cc__sched_start(size, config.queue_slots, config.sim_seed != 0);
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
    cc__sched_route_records();
    cc__live_folder(config.view_folder);
    if (config.view) cc__live_begin(&config.view_config);
    return 0;
}

static int start_locked(const CCRuntimeConfig *wanted) {
    cc__set(&rt.starting, true);
    int rc = build_locked(wanted);
    cc__set(&rt.starting, false);
    return rc;
}

/* Before rt.change is taken (os/loaded.h). */
static void keep_loaded(void) {
    static _Atomic bool kept;
    if (!cc__get(&kept)) cc__loaded_keep(); /* idempotent */
    cc__set(&kept, true);
}

/* How often the calling thread has entered. A thread that is inside keeps the runtime up, also one that is about to
 * stop: so it may always enter again. */
static _Thread_local unsigned depth __attribute__((tls_model("initial-exec")));

/* Whether a shutdown waits for what the calling thread does: the runtime runs until then, and the thread must not wait
 * for a shutdown. */
static bool is_awaited(void) {
    return depth > 0 || cc__pool_is_own() || cc__island_hooked() != NULL;
}

int cc_runtime_init(const CCRuntimeConfig *config) {
    if (cc_in_fiber() || cc__worker_ending()) return EDEADLK;
    if (cc__get(&rt.state) == RT_FORKED) cc__upcall_orphaned();
    if (is_awaited()) return EALREADY;
    keep_loaded();
    pthread_mutex_lock(&rt.change);
    int rc = cc__get(&rt.state) == RT_RUNNING ? EALREADY : start_locked(config);
    pthread_mutex_unlock(&rt.change);
    return rc;
}

/* ---- threads that are not workers ---- */

static void leave(void) {
    /* seq_cst: RT-1. The last one wakes a waiting shutdown. */
    if (cc__sub_seq(&rt.inside, 1) == 1 && cc__get_seq(&rt.state) != RT_RUNNING) cc__futex_wake(&rt.inside, INT32_MAX);
}

int cc__upcall_enter(bool start) {
    if (unlikely(depth > 0)) {
        if (cc__get(&rt.state) == RT_FORKED) cc__upcall_orphaned();
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
        if (state == RT_FORKED) cc__upcall_orphaned();
        if (!start) return state == RT_STOPPED ? ESRCH : ECANCELED;
        if (cc__worker_ending()) return ECANCELED; /* the shutdown waits for this thread */
        int rc = cc_runtime_init(NULL);            /* waits for a shutdown in progress */
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
        if (state == RT_FORKED) cc__upcall_orphaned();
        if (state == RT_STOPPED) return false;
        if (closed && cc__worker_ending() && cc__sched_active() == 0) return false; /* as in cc__upcall_enter */
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

void cc__upcall_hold_for_another(void) {
    cc__add_seq(&rt.inside, 1);
}

void cc__upcall_take_over(void) {
    depth++;
}

/* ---- shutdown ---- */

/* False: a thread inside has started a task, and may stay inside until that ends (cc_run). */
static bool close_count(void) {
    for (uint32_t inside = 0; !cc__cas_seq(&rt.inside, &inside, INSIDE_CLOSED); inside = 0) {
        if (cc__sched_active() != 0) return false;
        cc__futex_wait(&rt.inside, inside, cc__clock_real() + 1000 * 1000); /* 1 ms: a new task does not wake it */
    }
    return true;
}

/* The state has been set before: RUNNING or STOPPED decides about new entries. */
static void open_count(void) {
    cc__and_seq(&rt.inside, ~INSIDE_CLOSED);
}

/* The fiber waits for a blocking call that has started: only its end ends the wait. */
static bool is_in_call(struct fiber *f, uint64_t word) {
    unsigned reason = cc__word_reason(word);
    return (reason == PARK_BLOCKING || reason == PARK_FILE) && (cc__get(&f->scope) & CANCEL_HELD) != 0;
}

/* Ends every wait. */
static void cancel_waits(void) {
    for (uint32_t slot = 0; slot < cc__pool_size(); slot++) {
        struct fiber *f = cc__pool_at(slot);
        uint64_t word = cc__get_acquire(&f->word);
        enum fiber_state state = cc__word_state(word);
        bool waits = state == FIBER_PARKED || state == FIBER_PARKING;
        if (waits && !is_in_call(f, word)) (void)cc__fiber_wake(f, word & WORD_TICKET, WAKE_CANCEL);
    }
}

/* Waits until there are neither tasks nor abandoned blocking calls. False: timed out. */
static bool drain(uint64_t until) {
    return cc__sched_drain(until) && cc__blocking_drain(until);
}

/* Cancels repeatedly: a fiber whose wait was cancelled may wait again. */
static bool drain_by_cancelling(uint64_t until) {
    for (uint64_t step = 1000 * 1000;; step = step < 8 * 1000 * 1000 ? step * 2 : step) {
        cancel_waits();
        uint64_t now = cc__clock_now();
        uint64_t next = now + step < until ? now + step : until;
        if (drain(next)) return true;
        if (next == until) return false;
    }
}

/* Refuses entries and waits until no thread is inside. False: another task was started meanwhile. */
static bool close_entries(void) {
    cc__set_seq(&rt.state, RT_STOPPING);
    if (close_count() && cc__sched_active() == 0 && cc__blocking_calls() == 0) return true;
    cc__set_seq(&rt.state, RT_RUNNING);
    open_count();
    return false;
}

/* How long a shutdown waits after cancelling: fibers need some time to react. */
static uint64_t grace_ms(uint64_t timeout_ms) {
    return timeout_ms < 100 ? 100 : timeout_ms;
}

/* Waits for all tasks to end: first up to the caller's timeout, then refusing new ones and cancelling waits. True:
 * entries are closed. */
static bool wind_down(uint64_t timeout_ms) { /* RT-2 */
    uint64_t patient_until = cc_after_ms(timeout_ms).ns;
    while (drain(patient_until)) {
        if (close_entries()) return true;
        if (cc__clock_now() >= patient_until) break;
    }
    if (rt.config.leak_report) cc__diag_leaks("when the runtime shuts down");
    cc__or_seq(&cc__sched.spawns, SPAWNS_REFUSED);
    cc__sched_contest(true);
    uint64_t until = cc_after_ms(grace_ms(timeout_ms)).ns;
    while (drain_by_cancelling(until))
        if (close_entries()) return true;
    cc__sched_contest(false);
    cc__and_seq(&cc__sched.spawns, ~(uint32_t)SPAWNS_REFUSED);
    return false;
}

static int shutdown_locked(uint64_t timeout_ms) {
    if (cc__get(&rt.state) != RT_RUNNING) return 0;
    cc__live_ending(true);
    if (!wind_down(timeout_ms)) {
        cc__live_ending(false);
        unsigned long long active = cc__sched_active(), calls = cc__blocking_calls();
        const char *what = active != 0 ? "task" : "blocking call";
        if (active == 0) active = calls;
        cc__warn(
            "shutdown: %llu %s%s after %llu ms, and another %llu ms with waits cancelled; the runtime keeps running:",
            active, what, active == 1 ? " still runs" : "s still run", (unsigned long long)timeout_ms,
            (unsigned long long)grace_ms(timeout_ms));
        cc__diag_unfinished();
        return ETIMEDOUT;
    }
    cc__live_end();
    if (rt.config.stats) cc__diag_stats();
    if (rt.config.pressure_stats) cc__diag_pressure();
    cc__diag_timing();
    cc__record_save(true);
    cc__dump_signal_remove();
    cc__blocking_stop();
    cc__sched_stop();
    if (rt.config.sim_seed != 0) cc__sim_close();
    cc__sample_remove();
    cc__fault_remove();
    cc__stack_destroy();
    cc__pool_destroy();
    cc__set_seq(&rt.state, RT_STOPPED);
    open_count();
    cc__blocked_check_alone();
    return 0;
}

int cc_runtime_shutdown(uint64_t timeout_ms) {
    if (cc_in_fiber() || cc__worker_ending() || is_awaited()) return EDEADLK;
    if (cc__get(&rt.state) == RT_FORKED) cc__upcall_orphaned();
    pthread_mutex_lock(&rt.change);
    int rc = shutdown_locked(timeout_ms);
    pthread_mutex_unlock(&rt.change);
    return rc;
}

/* ---- the rest of cc_sched.h ---- */

/* An OS thread is inside from the spawn to the end of the join: a runtime that stopped in between would free the
 * outcome, and one that is about to stop would refuse the join while the task runs. */
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
    keep_loaded();
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
    if (cc_in_fiber() || cc__worker_ending()) return EDEADLK;
    if (cc__get(&rt.state) == RT_FORKED) cc__upcall_orphaned();
    if (is_awaited()) return EALREADY;
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
    if (cc__worker() != NULL) return cc__sched_workers();
    if (cc__upcall_enter(false) != 0) return 0;
    unsigned count = cc__sched_workers();
    cc__upcall_leave();
    return count;
}
