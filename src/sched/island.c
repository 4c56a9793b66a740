/* island.c - the workers of islands: fibers reach them by inbox only, and their threads sleep by themselves.
 *
 *   EMPTY --cc__island_open--> OPEN --its thread ends, joined--> EMPTY, or CLOSED at the end of the runtime
 */
#include "sched/island.h"

#include "arch/cpu.h"
#include "base/fatal.h"
#include "base/mem.h"
#include "os/clock.h"
#include "sched/driver.h"
#include "sched/idle.h"
#include "sched/inbox.h"
#include "sched/policy.h"
#include "sched/sysmon.h"
#include "sched/upcalls.h"
#include "sched/wake.h"
#include "trace/trace.h"

#include <errno.h>
#include <string.h>

/* remote.wake of an island's worker. */
enum { ISLAND_AWAKE, ISLAND_ASLEEP };
/* island.baton: which of the two runs, in a simulation. */
enum { BATON_SIM, BATON_ISLAND };

static pthread_mutex_t changing = PTHREAD_MUTEX_INITIALIZER; /* guards taking and freeing places */

int cc__island_find(const CCIsland *island, struct worker **worker) {
    if (island->owner > cc__sched.max + cc__get(&cc__sched.islands)) return ESRCH;
    *worker = &cc__sched.workers[island->owner - 1];
    return (*worker)->core.tag == island->tag && cc__get(&(*worker)->remote.status) == WORKER_OPEN ? 0 : ESRCH;
}

/* ---- routes ---- */

static void wake(struct worker *w) { /* ISLAND-2 */
    uint32_t asleep = ISLAND_ASLEEP;
    if (cc__get_seq(&w->remote.wake) == ISLAND_ASLEEP && cc__cas_seq(&w->remote.wake, &asleep, ISLAND_AWAKE))
        cc__futex_wake(&w->remote.wake, 1);
}

void cc__island_send(struct worker *w, struct fiber *f) {
    cc__inbox_push(w, f);
    wake(w);
    if (cc__sched.simulated) cc__upcall_sim_point();
}

uint32_t cc__island_route(struct worker *w, struct link *list, uint32_t n) {
    if (likely(!cc__island_any()) || n == 0) return n;
    for (struct link *l = cc__get(&list->next); l != list;) {
        struct link *next = cc__get(&l->next);
        struct fiber *f = cc__fiber_of(l);
        if (w != NULL ? cc__island_apart(w, f) : cc__island_worker(f) != NULL) {
            cc__list_remove(l);
            cc__sched_send(f);
            n--;
        }
        l = next;
    }
    return n;
}

void cc__island_spawn(struct worker *w, struct worker *target, struct fiber *f, enum fiber_args args) {
    if (target == NULL) {
        cc__sched_spawn(NULL, f, args);
        return;
    }
    cc__add_seq(&target->island.arrived, 1); /* before the fiber can end (ISLAND-3) */
    cc__state_spawn(f, 0, args);             /* its worker becomes the owner when it takes it from the inbox (RUNQ-2) */
    if (w == NULL || cc__worker_is_island(w))
        cc__add_seq(&cc__sched.foreign_spawned, 1); /* an island's own counter counts the fibers that it keeps */
    else
        cc__count(w, spawned);
    cc__island_send(target, f);
}

struct island_name cc__island_name(const struct worker *w) {
    struct island_name name;
    uint64_t words[sizeof name / sizeof(uint64_t)];
    for (size_t i = 0; i < array_len(words); i++) words[i] = cc__get(&w->island.name[i]);
    memcpy(name.text, words, sizeof name);
    name.text[sizeof name - 1] = '\0';
    return name;
}

/* ---- alarms ---- */

uint64_t cc__islands_next_alarm(bool exact) {
    uint64_t first = UINT64_MAX;
    for (unsigned i = 0, n = cc__get(&cc__sched.islands); i < n; i++) {
        uint64_t due = cc__drivers_next_due(cc__island_alarms_at(i), exact);
        if (due < first) first = due;
    }
    return first;
}

uint32_t cc__islands_poll_alarms(uint64_t now, struct link *list) {
    uint32_t fired = 0;
    for (unsigned i = 0, n = cc__get(&cc__sched.islands); i < n; i++)
        fired += cc__drivers_poll_own(cc__island_alarms_at(i), now, list);
    return fired;
}

uint32_t cc__island_poll_alarms(struct worker *w, uint64_t now, struct link *list) { /* ISLAND-4 */
    struct link due;
    cc__list_init(&due);
    uint32_t fired = cc__drivers_poll_own(cc__island_alarms(w), now, &due);
    if (fired == 0) return 0;
    cc__add_seq(&w->island.arrived, fired); /* ISLAND-3 */
    for (struct link *l = cc__get(&due.next); l != &due; l = cc__get(&l->next))
        cc__state_move(cc__fiber_of(l), w->core.owner);
    cc__list_append_all(list, &due);
    return fired;
}

/* ---- its worker ---- */

/* The schedule explorer's clock stops while other threads can run: with a search it would never see a sleep. */
#ifdef CC_EXPLORED
enum { SEARCHES = false };
#else
enum { SEARCHES = true };
#endif

static bool all_ended(struct worker *w) { /* ISLAND-3; by its own thread */
    uint64_t ended = cc__get(&w->core.counters.ended), spawned = cc__get(&w->core.counters.spawned);
    return cc__get_seq(&w->island.arrived) + spawned == ended;
}

static bool is_over(struct worker *w) {
    if (cc__get_seq(&cc__sched.stop)) return true;
    return cc__get_seq(&w->island.closing) && all_ended(w);
}

/* A worker of the pool has to wait for descriptors when all of them sleep. */
static void let_others_listen(void) {
    const struct driver *d = cc__drivers_blocking();
    if (d != NULL && d->pending()) cc__idle_listen();
}

static bool has_alarms(struct worker *w) {
    return cc__drivers_next_due(cc__island_alarms(w), false) != UINT64_MAX;
}

/* When its first timer or alarm is due. */
static uint64_t next_due(struct worker *w) {
    uint64_t timer = cc__drivers_next_due(w->core.owner - 1, false);
    uint64_t alarm = cc__drivers_next_due(cc__island_alarms(w), false);
    return alarm < timer ? alarm : timer;
}

/* An island's fibers, and its blocking calls, are often ready again soon. True: there is work, or may be. */
static bool search(struct worker *w) {
    uint64_t now = cc__clock_now(), end = now + SEARCH_NS, due = next_due(w);
    do {
        for (int i = 0; i < 16; i++) {
            if (!cc__inbox_empty(w)) return true;
            cc__cpu_relax();
        }
        now = cc__clock_now();
        if (now >= due) return true;
    } while (now < end);
    return false;
}

bool cc__island_idle(struct worker *w) {
    if (unlikely(cc__stack_short())) cc__stack_flush(&w->core.stacks);
    if (SEARCHES && search(w)) return true;
    let_others_listen();
    cc__set_seq(&w->remote.wake, ISLAND_ASLEEP); /* ISLAND-2; and orders `ended` before cc__idle_say_drained */
    cc__idle_say_drained();
    bool over = is_over(w);
    if (!over && cc__inbox_empty(w)) {
        uint64_t until = next_due(w);
        while (cc__get_seq(&w->remote.wake) == ISLAND_ASLEEP && cc__clock_now() < until)
            cc__futex_wait(&w->remote.wake, ISLAND_ASLEEP, until);
    }
    cc__set_seq(&w->remote.wake, ISLAND_AWAKE);
    cc__add_seq(&cc__sched.island_wakes, 1);
    cc__sysmon_nudge();                                 /* IDLE-6 */
    if (over && has_alarms(w)) cc__idle_leave_timers(); /* ISLAND-4 */
    return !over;
}

/* ---- in a simulation ---- */

static void await_baton(struct worker *w, uint32_t mine) {
    uint32_t baton;
    while ((baton = cc__get_acquire(&w->island.baton)) != mine) /* pairs with give_baton */
        cc__futex_wait(&w->island.baton, baton, CC_FUTEX_FOREVER);
}

static void give_baton(struct worker *w, uint32_t to) {
    cc__set_release(&w->island.baton, to); /* releases everything done so far */
    cc__futex_wake(&w->island.baton, 1);
}

struct fiber *cc__island_sim_next(struct worker *w) {
    struct fiber *f = cc__get(&w->core.pending);
    if (f != NULL) {
        cc__set(&w->core.pending, NULL);
        return f;
    }
    give_baton(w, BATON_SIM);
    await_baton(w, BATON_ISLAND);
    return cc__get(&w->island.next);
}

void cc__island_sim_run(struct worker *w, struct fiber *f) {
    cc__set(&w->island.next, f);
    give_baton(w, BATON_ISLAND);
    if (f != NULL) await_baton(w, BATON_SIM);
}

/* By the simulator's worker: in a simulation the island's own thread must not wake any thread. */
void cc__islands_sim_end(void) {
    for (unsigned i = 0, n = cc__get(&cc__sched.islands); i < n; i++) {
        struct worker *w = &cc__sched.workers[cc__sched.max + i];
        if (cc__get(&w->remote.status) != WORKER_OPEN || !cc__get(&w->island.closing) || !all_ended(w)) continue;
        struct island_setup setup = w->island.setup;
        cc__island_sim_run(w, NULL);
        cc__island_join(w);
        setup.ended(setup.ended_arg);
    }
}

/* ---- all of them ---- */

bool cc__islands_asleep(void) {
    for (unsigned i = 0, n = cc__get(&cc__sched.islands); i < n; i++) {
        struct worker *w = &cc__sched.workers[cc__sched.max + i];
        if (cc__get(&w->remote.status) != WORKER_OPEN) continue;
        if (cc__get_seq(&w->remote.wake) != ISLAND_ASLEEP || !cc__inbox_empty(w) || cc__get(&w->runq.count) != 0)
            return false;
    }
    return true;
}

/* ---- open, close ---- */

/* Whose hook the thread runs. */
static _Thread_local struct CCIsland *hooked __attribute__((tls_model("initial-exec")));

CC_NOINLINE struct CCIsland *cc__island_hooked(void) {
    return hooked;
}

static void call_hook(const struct island_setup *setup, void (*hook)(void *context)) {
    if (hook == NULL) return;
    hooked = setup->island;
    if (cc__sched.simulated) cc__upcall_sim_hook(true);
    hook(setup->context);
    if (cc__sched.simulated) cc__upcall_sim_hook(false);
    hooked = NULL;
}

static void *island_main(void *arg) {
    struct worker *w = arg;
    struct island_setup setup = w->island.setup;
    cc__thread_if_ended(cc__upcall_thread_ended);
    cc__thread_name(cc__island_name(w).text);
    if (setup.cpu >= 0) (void)cc__thread_pin(setup.cpu);
    cc__thread_signals_take();
    cc__upcall_take_over();
    call_hook(&setup, setup.on_start);
    cc__upcall_leave();
    (void)cc__worker_main(w);
    call_hook(&setup, setup.on_end);
    cc__thread_if_ended(NULL);
    if (!cc__sched.simulated) setup.ended(setup.ended_arg);
    return NULL;
}

/* An empty place; NULL: there is none, or no memory, as *error says. */
static struct worker *take_place(int *error) {
    unsigned used = cc__get(&cc__sched.islands);
    for (unsigned i = 0; i < used; i++) {
        struct worker *w = &cc__sched.workers[cc__sched.max + i];
        if (cc__get(&w->remote.status) == WORKER_EMPTY) return w;
    }
    *error = used == ISLANDS_MAX ? EAGAIN : ENOMEM;
    if (used == ISLANDS_MAX) return NULL;
    struct worker *w = &cc__sched.workers[cc__sched.max + used];
    if (!cc__worker_init(w, cc__sched.max + used)) {
        cc__mem_free(w->seen);
        cc__mem_free(w->signal_stack);
        return NULL; /* the next attempt sets up the same place again */
    }
    cc__set_seq(&cc__sched.islands, used + 1); /* before its thread runs (cc__sched_contest) */
    return w;
}

int cc__island_open(const struct island_setup *setup, struct worker **worker) {
    int error = 0;
    pthread_mutex_lock(&changing);
    struct worker *w = take_place(&error);
    if (w != NULL) {
        w->island.setup = *setup;
        cc__sched_route_island(w, setup->name != NULL ? setup->name : "ccc/island");
        w->island.setup.name = NULL; /* the caller's, and copied */
        cc__set(&w->island.closing, 0);
        cc__set(&w->island.baton, BATON_ISLAND);
        cc__set(&w->remote.wake, ISLAND_AWAKE);
        if (cc__sched.simulated) cc__set(&w->core.poll_at, 0); /* SIM-3 */
        cc__set_seq(&w->remote.status, WORKER_OPEN);
        cc__sysmon_nudge();            /* IDLE-6 */
        cc__upcall_hold_for_another(); /* a shutdown waits for its start hook, which may use the runtime */
        error = cc__thread_start(&w->thread, island_main, w);
        if (error != 0) {
            cc__upcall_take_over();
            cc__upcall_leave();
            cc__set_seq(&w->remote.status, WORKER_EMPTY);
        }
    }
    pthread_mutex_unlock(&changing);
    if (w != NULL && error == 0 && cc__sched.simulated) await_baton(w, BATON_SIM); /* its hook has run */
    *worker = w;
    return error;
}

void cc__island_close(struct worker *w) {
    cc__set_seq(&w->island.closing, 1);
    wake(w);
}

/* Without the lock: thread-local destructors, which may create and free other islands, are not over yet. */
void cc__island_join(struct worker *w) {
    cc__thread_join(w->thread);
    pthread_mutex_lock(&changing);
    cc__set_seq(&w->remote.status, WORKER_EMPTY);
    pthread_mutex_unlock(&changing);
}

void cc__islands_stop(void) {
    pthread_mutex_lock(&changing);
    for (unsigned i = 0, n = cc__get(&cc__sched.islands); i < n; i++) {
        struct worker *w = &cc__sched.workers[cc__sched.max + i];
        if (cc__get(&w->remote.status) != WORKER_OPEN) continue;
        if (cc__sched.simulated)
            cc__island_sim_run(w, NULL);
        else
            wake(w);
        cc__thread_join(w->thread);
        cc__set_seq(&w->remote.status, WORKER_CLOSED);
    }
    pthread_mutex_unlock(&changing);
}
