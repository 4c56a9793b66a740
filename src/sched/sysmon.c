/* sysmon.c - a thread that monitors the workers while any of them works.
 *
 * While all workers are busy it ticks, every 250 us at first and ever more rarely, down to every 10 ms (after which a
 * worker counts as stuck; 5 ms while events are awaited), samples whether there are enough workers (pressure.c), and
 * asks those whose poll is late to poll (NEXT-1), and fibers whose turn is too long to yield (NEXT-3). While some are
 * busy it ticks every 100 ms, 10 ms if an island is, and reports a worker that stays in one turn for seconds. (Fibers
 * that wait behind a stuck worker are then found by the watcher of watch.c.) When all have slept for a while, it checks
 * for deadlocks and then sleeps indefinitely; if tasks have not ended, after some more checks at increasing intervals,
 * eight seconds in all.
 *
 *   ASLEEP --a worker goes to work--> SLOW --no worker sleeps--> FAST --one sleeps for three ticks--> SLOW
 *      ^----------------all sleep, and the checks are done----------------'
 *
 * A worker that goes to work raises the mode (cc__sysmon_nudge), and pays for waking sysmon; bursts that follow each
 * other within 30 ms pay once. Sysmon lowers the mode.
 *
 * SYSMON-1  A worker that goes to work leaves the sleepers, then loads `mode`. Sysmon stores `mode`, then reads the
 *           sleepers. One of the two sees the other: no worker works unmonitored (IDLE-6).
 * SYSMON-2  This thread runs no fibers, and never waits for one.
 */
#include "sched/sysmon.h"

#include "base/fatal.h"
#include "base/mem.h"
#include "fiber/stack.h"
#include "os/clock.h"
#include "os/cpus.h"
#include "sched/driver.h"
#include "sched/elastic.h"
#include "sched/idle.h"
#include "sched/inject.h"
#include "sched/island.h"
#include "sched/next.h"
#include "sched/policy.h"
#include "sched/pressure.h"
#include "sched/upcalls.h"

#include <errno.h>

struct sysmon cc__sysmon = {.mode = SYSMON_FAST}; /* without the thread no worker nudges */

static _Atomic uint64_t stall_ns; /* 0: stalls are not reported */
static _Atomic uint32_t preempts = 1;
static _Atomic uint32_t word; /* futex; changes with every request to tick */
static _Atomic uint32_t asked, recheck, stop, there;
static pthread_t thread;
static _Atomic int32_t tid;

/* Used by the sysmon thread only. */
struct state {
    struct worker_sample *samples;
    bool fast;        /* at the last tick */
    bool island_runs; /* one has had a turn between the last two ticks */
    unsigned yields;  /* ticks left that come often, because marked turns have ended by yields (NEXT-3) */
    uint64_t tick;
    unsigned quiet; /* consecutive fast ticks at which a worker slept */
    uint64_t epoch; /* at the last tick at which all slept */
    uint64_t rest_since;
    unsigned checks;           /* calls of cc__upcall_quiet so far; 2: done */
    uint64_t pause;            /* before the checks are repeated although no worker has woken */
    uint64_t retry;            /* when that is; UINT64_MAX: never */
    uint64_t trim_at, cpus_at; /* when unused stacks are returned, and the CPUs counted, next */
};

static struct state state;

/* ---- for others ---- */

static void wake_thread(void) {
    cc__add_seq(&word, 1);
    cc__futex_wake(&word, 1);
}

void cc__sysmon_nudge_slow(void) {
    uint32_t need = want_idle(cc__get_seq(&cc__sched.want)) == 0 ? SYSMON_FAST : SYSMON_SLOW; /* SYSMON-1 */
    uint32_t mode = cc__get_seq(&cc__sysmon.mode);
    while (mode < need) {
        if (!cc__cas_seq(&cc__sysmon.mode, &mode, need)) continue;
        wake_thread();
        return;
    }
}

int cc__sysmon_thread(void) {
    return cc__get(&tid);
}

bool cc__sysmon_ask(void) {
    cc__set_seq(&asked, 1);
    wake_thread();
    return cc__get(&there);
}

void cc__sysmon_ask_later(void) {
    cc__set_seq(&asked, 1);
}

void cc__sysmon_recheck(void) {
    cc__set_seq(&recheck, 1);
    if (cc__get_seq(&cc__sysmon.mode) == SYSMON_ASLEEP) wake_thread(); /* pairs with go_to_sleep */
}

void cc__sysmon_set_stall(uint64_t ns) {
    cc__set(&stall_ns, ns);
}

void cc__sysmon_set_preempt(bool on) {
    cc__set(&preempts, on);
}

bool cc__sysmon_may_preempt(void) {
    return cc__get(&preempts) != 0;
}

/* ---- ticks ---- */

/* Returns whether a turn has begun within TICK_EVENTS: ticks can be closer together than turns. */
static bool sample_workers(struct state *s, uint64_t now) {
    struct worker_sample *samples = s->samples;
    uint64_t stall = cc__get(&stall_ns);
    bool switched = false;
    s->island_runs = false;
    for_all_workers(i, w) {
        /* The fiber first: the turn of one that is seen has begun, and counts. In the opposite order a turn that begins
         * in between seems to last since the worker went idle, or since the system was started. */
        bool runs = cc__get_acquire(&w->core.current) != NULL; /* pairs with run() of worker.c */
        uint64_t turns = cc__get(&w->core.turns);
        cc__next_poll_soon(w, now); /* NEXT-1 */
        if (turns != samples[i].turns || !runs) {
            if (samples[i].marked && cc__get(&w->runq.preempt) == 0) s->yields = PREEMPT_TICKS;
            switched = switched || turns != samples[i].turns;
            s->island_runs = s->island_runs || (turns != samples[i].turns && i >= cc__sched.max);
            samples[i] = (struct worker_sample){.turns = turns, .since = now};
            continue;
        }
        switched = switched || now - samples[i].since < TICK_EVENTS;
        if (i < cc__sched.max && now - samples[i].since >= PREEMPT_NS && cc__get(&preempts)) {
            cc__set(&w->runq.preempt, (uint32_t)turns); /* NEXT-3 */
            samples[i].marked = true;
        }
        if (stall == 0 || samples[i].reported || now - samples[i].since < stall) continue;
        samples[i].reported = true;
        cc__upcall_stalled(w, now - samples[i].since);
    }
    return switched;
}

/* This thread was woken so much too late that the process was stopped meanwhile, by a signal or a debugger: that time
 * counts for no worker. */
static void discount(struct worker_sample *samples, uint64_t late) {
    for_all_workers(i, w) {
        samples[i].since += late;
        if (samples[i].cpu_at != 0) samples[i].cpu_at += late;
    }
}

static bool all_sleep(void) {
    cc__lock_take(&cc__sched.idle.lock);
    bool all = want_idle(cc__get_seq(&cc__sched.want)) == cc__sched_open() && cc__islands_asleep();
    cc__lock_release(&cc__sched.idle.lock);
    return all;
}

/* Returns until when to sleep: now, if a worker has become busy meanwhile. */
static uint64_t go_to_sleep(uint64_t now) {
    cc__set_seq(&cc__sysmon.mode, SYSMON_ASLEEP); /* SYSMON-1: before the load */
    if (all_sleep() && !cc__get_seq(&recheck)) return UINT64_MAX;
    cc__set_seq(&cc__sysmon.mode, SYSMON_SLOW);
    return now;
}

/* A tick while all workers sleep. */
static uint64_t tick_quiet(struct state *s, uint64_t now) {
    uint64_t epoch = cc__idle_epoch();
    bool asked_again = cc__swap(&recheck, 0) != 0;
    if (epoch != s->epoch || asked_again) {
        s->epoch = epoch;
        s->rest_since = now;
        s->checks = 0;
        s->pause = PAUSE_MIN;
        s->retry = UINT64_MAX;
    }
    if (now >= s->retry) {
        s->checks = 0;
        s->retry = UINT64_MAX;
    }
    uint64_t due = s->rest_since + (s->checks == 0 ? QUIET_FIRST : QUIET_SECOND);
    if (s->checks < 2 && now < due) return due;
    if (s->checks == 0) {
        bool unfinished = cc__upcall_unfinished();
        s->checks = unfinished && cc__upcall_quiet(0) ? 1 : 2;
        s->rest_since = now;
        if (s->checks == 1) return now + QUIET_SECOND;
        if (unfinished && s->pause <= PAUSE_MAX) s->retry = now + s->pause;
        s->pause *= 2;
    } else if (s->checks == 1) {
        (void)cc__upcall_quiet(1);
        s->checks = 2;
    }
    if (cc__stack_spare()) return s->trim_at; /* return spare stacks first */
    uint64_t until = go_to_sleep(now);
    return until < s->retry ? until : s->retry;
}

static uint64_t slowest_tick(void) {
    const struct driver *driver = cc__drivers_blocking();
    uint64_t pace = cc__pressure_pace();
    return driver != NULL && driver->pending() && pace > TICK_EVENTS ? TICK_EVENTS : pace;
}

static uint64_t tick_fast(struct state *s, uint64_t now, bool somebody_sleeps) {
    if (!s->fast) {
        s->fast = true;
        s->tick = TICK_MIN;
        s->quiet = 0;
    }
    uint64_t due = cc__pressure_sample(s->samples, now);
    uint64_t slowest = s->yields != 0 ? PREEMPT_NS : slowest_tick();
    if (s->yields != 0) s->yields--;
    if (s->tick > slowest) s->tick = slowest;
    uint64_t next = now + s->tick;
    s->tick *= 2;
    if (!somebody_sleeps) {
        s->quiet = 0;
        return due < next ? due : next;
    }
    if (++s->quiet < QUIET_TICKS) return now + slowest;
    s->fast = false;
    cc__set_seq(&cc__sysmon.mode, SYSMON_SLOW); /* SYSMON-1: before the load */
    if (want_idle(cc__get_seq(&cc__sched.want)) == 0) cc__set_seq(&cc__sysmon.mode, SYSMON_FAST);
    return now;
}

/* For when no worker sleeps and none has begun a turn of late: one that has polls, if it is asked to, and admits fibers
 * with events before the others. Here they can only be appended to the global queue. */
static void poll_driver(uint64_t now) {
    const struct driver *driver = cc__drivers_blocking();
    struct link list;
    cc__list_init(&list);
    uint32_t n = driver != NULL ? driver->poll(0, now, &list) : 0;
    n = cc__island_route(NULL, &list, n);
    if (n == 0) return;
    cc__inject_put_all(&list, n);
    cc__idle_notify(NULL);
}

/* Tasks that are not urgent. */
static void maintain(struct state *s, uint64_t now) {
    if (now >= s->trim_at) {
        (void)cc__stack_trim();
        s->trim_at = now + TRIM_NS;
    }
    if (now >= s->cpus_at) {
        cc__elastic_adapt(cc__cpus_usable());
        s->cpus_at = now + CPUS_NS;
    }
}

/* Returns when to tick next. */
static uint64_t tick(struct state *s, uint64_t now) {
    if (cc__sched.simulated) return UINT64_MAX; /* only answers requests */
    bool switched = sample_workers(s, now);
    maintain(s, now);
    bool somebody_sleeps = want_idle(cc__get_seq(&cc__sched.want)) != 0;
    if (!somebody_sleeps && !switched) poll_driver(now);
    if (somebody_sleeps) cc__idle_check_timers(now);
    if (cc__get_seq(&cc__sysmon.mode) == SYSMON_FAST) return tick_fast(s, now, somebody_sleeps);
    if (somebody_sleeps && all_sleep()) return tick_quiet(s, now);
    cc__set_seq(&cc__sysmon.mode, somebody_sleeps ? SYSMON_SLOW : SYSMON_FAST);
    if (!somebody_sleeps) return now;
    return now + (s->island_runs ? cc__pressure_pace() : TICK_SLOW); /* NEXT-1: nobody else polls for an island */
}

static void *sysmon_main(void *arg) { /* SYSMON-2 */
    struct state *s = arg;
    cc__thread_name("ccc/sysmon");
    cc__stderr_bound();
    cc__set(&tid, cc__thread_id());
    for (;;) {
        uint32_t seen = cc__get_seq(&word);
        if (cc__get(&asked) && cc__swap(&asked, 0)) cc__upcall_asked(); /* first: a shutdown waits for it */
        if (cc__get_seq(&stop)) return NULL;
        uint64_t now = cc__clock_now(), until = tick(s, now);
        if (cc__get(&asked) && until > now + TICK_SLOW) until = now + TICK_SLOW; /* cc__sysmon_ask_later */
        if (until <= now) continue;
        cc__futex_wait(&word, seen, until);
        if ((now = cc__clock_now()) > until && now - until > STOPPED_NS) discount(s->samples, now - until);
    }
}

/* ---- start, stop ---- */

int cc__sysmon_start(bool adapts) {
    uint64_t now = cc__clock_now();
    state = (struct state){.samples = cc__mem_alloc((cc__sched.max + ISLANDS_MAX) * sizeof(struct worker_sample)),
                           .epoch = UINT64_MAX,
                           .trim_at = now + TRIM_NS,
                           .cpus_at = adapts ? now + CPUS_NS : UINT64_MAX};
    if (state.samples == NULL) return ENOMEM;
    cc__pressure_reset();
    cc__set(&asked, 0);
    cc__set(&recheck, 0);
    cc__set(&stop, 0);
    cc__set(&tid, 0);
    int error = cc__thread_start_deaf(&thread, sysmon_main, &state);
    if (error != 0) cc__mem_free(state.samples);
    cc__set(&there, error == 0);
    return error;
}

void cc__sysmon_stop(void) {
    cc__set_seq(&stop, 1);
    wake_thread();
    cc__thread_join(thread);
    cc__set(&there, 0);
    cc__set(&tid, 0);
    cc__mem_free(state.samples);
    cc__set_seq(&cc__sysmon.mode, SYSMON_FAST);
}
