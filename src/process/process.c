/* process.c - starting, stopping and reaping a child process, and waiting for its end.
 *
 * One fiber does all of it, from the start to the collection of the status, so a process always has an owner. The fiber
 * is a child of the nursery that the process belongs to: the nursery waits for it, and cancels it to stop the process.
 */
#include "process/process.h"

#include "base/error.h"
#include "base/fatal.h"
#include "base/mem.h"
#include "io/fd.h"
#include "os/clock.h"
#include "os/descriptor.h"
#include "process/launch.h"
#include "sched/upcalls.h"
#include "sim/sim.h"
#include "sync/backoff.h"
#include "wait/cancel.h"

#include <ccc/cc_fd.h>
#include <ccc/cc_nursery.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>

enum { FALLBACK_MS = 10, KILLED_MS = 5 };

/* ---- references ---- */

static void drop_many(CCProcess *p, uint32_t n) {
    if (n == 0 || cc__sub(&p->refs, n) != n) return;
    cc__mem_free(p);
}

static void drop(CCProcess *p) { /* PROCESS-3 */
    drop_many(p, 1);
}

/* ---- waiters ---- */

static void link_locked(struct arm *arm) {
    CCProcess *p = arm->object;
    (void)cc__add(&p->refs, 1);
    cc__list_push_back(&p->waiters, &arm->link);
    arm->linked = true;
}

/* The wait was ended by something else. */
static void unlink_arm(struct arm *arm) {
    CCProcess *p = arm->object;
    cc__lock_take(&p->lock);
    if (arm->linked) cc__list_remove(&arm->link);
    arm->linked = false;
    cc__lock_release(&p->lock);
    drop(p);
}

static bool is_done(CCProcess *p) {
    return cc__get_acquire(&p->done) != 0; /* pairs with complete_locked */
}

/* Claims all waiters; returns how many references they held, which the caller drops. */
static uint32_t complete_locked(CCProcess *p, struct wakes *wakes) { /* PROCESS-2 */
    uint32_t left = 0;
    cc__set_release(&p->done, 1);
    while (!cc__list_empty(&p->waiters)) {
        struct arm *arm = container_of(cc__list_pop_front(&p->waiters), struct arm, link);
        CCProcessStatus *status = arm->value;
        if (!cc__arm_claim_locked(wakes, arm, p->error)) continue; /* it unlinks itself */
        if (status != NULL) *status = p->status;
        left++;
    }
    return left;
}

static int wait_locked(CCProcess *p, CCProcessStatus *status, uint64_t deadline) {
    struct waiter waiter;
    int rc = cc__waiter_init(&waiter, cc__worker(), deadline);
    if (rc != 0) {
        cc__lock_release(&p->lock);
        return rc;
    }
    struct arm arm = {.waiter = &waiter, .value = status, .object = p, .lock = &p->lock};
    link_locked(&arm);
    enum wake_reason reason = cc__wait_locked(&waiter, &p->lock, (struct wait_what){PARK_PROCESS, p});
    if (reason == WAKE_OBJECT) return arm.error;
    unlink_arm(&arm);
    return reason == WAKE_TIMER ? ETIMEDOUT : ECANCELED;
}

static int take_status(CCProcess *p, CCProcessStatus *status) {
    if (status != NULL) *status = p->status;
    return p->error;
}

static int wait_within(CCProcess *p, CCProcessStatus *status, uint64_t deadline) {
    if (p == NULL) return EINVAL;
    if (is_done(p)) return take_status(p, status);
    cc__lock_take(&p->lock);
    if (cc__get(&p->done) == 0) return wait_locked(p, status, deadline);
    cc__lock_release(&p->lock);
    return take_status(p, status);
}

int cc_process_wait(CCProcess *p, CCProcessStatus *status) {
    return wait_within(p, status, WAIT_FOREVER);
}

int cc_process_wait_try(CCProcess *p, CCProcessStatus *status) {
    if (p == NULL) return EINVAL;
    return is_done(p) ? take_status(p, status) : EAGAIN;
}

int cc_process_wait_until(CCProcess *p, CCProcessStatus *status, CCDeadline deadline) {
    return wait_within(p, status, cc__wait_deadline(deadline));
}

/* ---- as an arm of a select ---- */

static int look(struct worker *w, const CCCase *c) {
    (void)w;
    if (c->process == NULL) return EINVAL;
    return is_done(c->process) ? LOOK_READY : LOOK_NOT_READY;
}

static int try(const CCCase *c) {
    return is_done(c->process) ? take_status(c->process, c->value) : ARM_WAIT;
}

static unsigned prepare(struct arm *arm, const CCCase *c) {
    arm->object = c->process;
    arm->lock = &c->process->lock;
    return WAKE_OBJECT;
}

const struct arm_ops cc__arm_exited = {
    .look = look, .try = try, .prepare = prepare, .link = link_locked, .unlink = unlink_arm};

/* ---- signals ---- */

static int signal_locked(CCProcess *p, int number, bool group) {
    return group && p->group ? cc__process_signal_group(&p->os, number) : cc__process_signal(&p->os, number);
}

static int send_signal(CCProcess *p, int number, bool group) {
    if (p == NULL) return EINVAL;
    cc__lock_take(&p->lock);
    int error = cc__get(&p->done) != 0 ? ESRCH : signal_locked(p, number, group); /* PROCESS-1 */
    cc__lock_release(&p->lock);
    return error;
}

int cc_process_signal(CCProcess *p, int number) {
    return send_signal(p, number, false);
}

int cc_process_signal_group(CCProcess *p, int number) {
    return send_signal(p, number, true);
}

/* ---- the fiber ---- */

/* Without a poller (no descriptor is left for one, or it is forbidden) the fiber polls periodically. */
static int pause_until(uint64_t deadline) {
    uint64_t soon = cc_after_ms(FALLBACK_MS).ns;
    if (deadline <= cc__clock_now()) return ETIMEDOUT;
    return cc_sleep_until((CCDeadline){soon < deadline ? soon : deadline});
}

/* 0: it has ended. ETIMEDOUT, ECANCELED. */
static int await_end(const CCProcess *p, uint64_t deadline) {
    for (;;) {
        struct io_use use;
        int error = cc__fd_find(p->os.pidfd, &use);
        uint32_t seen = error == 0 ? cc__fd_edges(use.fd, IO_READ) : 0;
        if (cc__poller_look(p->os.pidfd, POLLER_READ) > 0) return 0;
        if (error == 0) error = cc__fd_wait(&use, IO_READ, seen, deadline);
        if (error != 0 && error != ETIMEDOUT && error != ECANCELED) error = pause_until(deadline);
        if (error == ETIMEDOUT || error == ECANCELED) return error;
    }
}

/* The fiber was cancelled. A process that is suspended (by SIGSTOP, or by its terminal) handles no signal except
 * SIGKILL until it is continued. */
static void stop(CCProcess *p) {
    (void)send_signal(p, SIGTERM, true);
    (void)send_signal(p, SIGCONT, true);
    bool shielded = cc_shield_begin();
    bool ended = await_end(p, cc_after_ns(p->grace_ns).ns) == 0;
    if (!ended || p->group) (void)send_signal(p, SIGKILL, true); /* also the rest of the group */
    while (!ended && await_end(p, WAIT_FOREVER) != 0) {
        cc__process_block(&p->os, KILLED_MS); /* the fiber's waits are cancelled, so block; this is short */
        cc_yield();
    }
    cc_shield_end(shielded);
}

static void collect(CCProcess *p) {
    struct os_status status = {0};
    struct wakes wakes;
    cc__wakes_init(&wakes);
    for (struct backoff backoff = {0};; cc__backoff(&backoff)) {
        cc__lock_take(&p->lock);
        p->error = cc__process_reap(&p->os, &status); /* PROCESS-1 */
        if (p->error != EAGAIN) break;
        cc__lock_release(&p->lock); /* the pidfd becomes readable slightly before the status can be collected */
    }
    if (p->error != 0) p->error = ECHILD;
    p->status = (CCProcessStatus){
        .code = status.exited ? status.code : -1, .signal = status.exited ? 0 : status.code, .core = status.core};
    if (p->error != 0) p->status = (CCProcessStatus){.code = -1};
    int pidfd = p->os.pidfd;
    p->os.pidfd = -1;
    uint32_t left = complete_locked(p, &wakes);
    cc__lock_release(&p->lock);
    (void)cc__fd_close(pidfd);
    cc__wakes_flush(&wakes);
    drop_many(p, left + 1);
}

static void *watch(void *arg) {
    struct launch *l = arg;
    CCProcess *p = l->process;
    CCChan *started = cc_chan_ref(l->started);
    int error = cc_cancelled() ? ECANCELED : cc__process_start(&l->start, &p->os);
    (void)cc_chan_send_try(started, &error, sizeof error); /* `l` is no longer valid */
    cc_chan_free(started);
    if (error != 0) {
        drop(p);
        return NULL;
    }
    if (await_end(p, WAIT_FOREVER) != 0) stop(p);
    collect(p);
    return NULL;
}

/* ---- start ---- */

/* Not cancelled: the fiber uses the caller's frame. A shutdown ends the wait repeatedly: retry. */
static int await_start(struct launch *l) {
    CCTask fiber = l->process->fiber;
    int report = 0, rc;
    size_t chosen = 0;
    CCCase cases[] = {CC_RECV(l->started, &report, NULL), CC_JOIN(&fiber, NULL, NULL)};
    bool held = cc__cancel_hold();
    for (struct backoff backoff = {0};
         (rc = cc_select_ordered(cases, 2, CC_SELECT_FIRST, CC_FOREVER, &chosen)) == ECANCELED;)
        cc__backoff(&backoff);
    cc__cancel_unhold(held);
    cc__assert(rc == 0, "PROCESS-4: a start is waited for to its end");
    /* The select may see the fiber's end before its report, although the report was sent earlier. */
    if (chosen == 0 || cc_chan_recv_try(l->started, &report, sizeof report) == 0) return report;
    drop(l->process); /* the fiber never ran, because no stack could be allocated */
    return cases[1].error;
}

static int spawn_fiber(struct launch *l) {
    char name[CC_FIBER_NAME_MAX];
    (void)snprintf(name, sizeof name, "process %s", l->process->name);
    CCSpawnOptions options = {.name = name};
    if (l->nursery != NULL) return cc_nursery_spawn_ex(l->nursery, &l->process->fiber, watch, l, &options);
    return cc_spawn(&l->process->fiber, watch, l, &options);
}

static int start_watched(struct launch *l) {
    int kept = cc__errno_get();
    l->started = cc_chan_create(sizeof(int), 1);
    cc__errno_set(kept);
    if (l->started == NULL) return ENOMEM;
    (void)cc__add(&l->process->refs, 1); /* the fiber's */
    int error = spawn_fiber(l);
    if (error != 0)
        drop(l->process);
    else
        error = await_start(l);
    cc_chan_free(l->started);
    return error;
}

static CCProcess *new_process(const CCProcessOptions *options) {
    CCProcess *p = cc__mem_alloc(sizeof *p);
    if (p == NULL) return NULL;
    cc__list_init(&p->waiters);
    cc__set(&p->refs, 1);
    p->os.pidfd = -1;
    p->group = options->group != CC_PROCESS_GROUP_SAME;
    uint64_t grace = options->grace_ms != 0 ? options->grace_ms : CC_PROCESS_GRACE_MS;
    p->grace_ns = grace < UINT64_MAX / 1000000 ? grace * 1000000 : UINT64_MAX;
    for (int i = 0; i < 3; i++) cc__set(&p->streams[i], -1);
    return p;
}

/* It has ended, or was never started. */
static void give_up(CCProcess *p) {
    (void)cc_task_detach(&p->fiber);
    for (int i = 0; i < 3; i++) (void)cc_process_close(p, i);
    drop(p);
}

/* Asked inside the runtime, because the entry of an OS thread may start a simulation. */
static int refuse_simulation(void) {
    bool thread = cc__worker() == NULL;
    int error = thread ? cc__upcall_enter(true) : 0;
    if (error != 0) return error;
    if (cc__sim_seed() != 0) error = ENOTSUP;
    if (thread) cc__upcall_leave();
    return error;
}

int cc_process_start(CCProcess **process, const CCProcessOptions *options) {
    if (process == NULL) return EINVAL;
    *process = NULL;
    int error = cc__launch_check(options);
    if (error == 0) error = refuse_simulation();
    if (error == 0) error = cc_check_cancel();
    if (error != 0) return error;
    CCProcess *p = new_process(options);
    if (p == NULL) return ENOMEM;
    struct launch l;
    error = cc__launch_prepare(&l, p, options);
    if (error == 0) error = start_watched(&l);
    cc__launch_end(&l);
    if (error == 0)
        *process = p;
    else
        give_up(p);
    return error;
}

/* ---- the rest ---- */

void cc_process_free(CCProcess *p) {
    if (p == NULL) return;
    bool held = cc__cancel_hold();
    if (!is_done(p)) (void)cc_task_cancel(&p->fiber);
    for (struct backoff backoff = {0}; wait_within(p, NULL, WAIT_FOREVER) == ECANCELED;) cc__backoff(&backoff);
    cc__cancel_unhold(held);
    give_up(p);
}

int cc_process_pid(const CCProcess *p) {
    return p != NULL ? p->os.pid : 0;
}

static int stream_of(const CCProcess *p, int stream) {
    return p != NULL ? cc__get(&p->streams[stream]) : -1;
}

int cc_process_stdin(const CCProcess *p) {
    return stream_of(p, 0);
}

int cc_process_stdout(const CCProcess *p) {
    return stream_of(p, 1);
}

int cc_process_stderr(const CCProcess *p) {
    return stream_of(p, 2);
}

int cc_process_close(CCProcess *p, int stream) {
    if (p == NULL || stream < 0 || stream > 2) return EINVAL;
    int fd = cc__get(&p->streams[stream]);
    while (fd >= 0 && !cc__cas(&p->streams[stream], &fd, -1)) {
    }
    return fd >= 0 ? cc__fd_close(fd) : EBADF;
}
