/* policy.h - the thresholds of stealing, sharing, waking, polling, idling and growing, and the predicates that use
 * them.
 *
 * Each number says where it comes from: measured (on a virtual machine with two cores), a bound (of the rule that is
 * cited), or a guess. To tune the scheduler for another machine, change this file only.
 *
 * Workers. No more workers are awake than there are usable CPUs: a worker beyond them gets no thread until another one
 * is blocked (elastic.c, pressure.c), and is put to sleep if CPUs are taken away. All of bench/work with four times as
 * many workers as CPUs show the benefit. Decision 033
 *
 * Wakes. To wake another worker takes a system call and 10 to 20 us of the waker's time, and the woken worker's search
 * takes as much again. Most fibers that are made ready are soon run by their own worker; then the wake was wasted. So
 * an owner wakes sleepers while there is credit: a wake, search or steal that paid earns some, in proportion to the
 * work that was done elsewhere, and a wasted one takes one off. Without credit the wake is deferred, but only while
 * there is a watcher: at its next tick it steals what waits behind a long turn, and that earns credit. So the delay is
 * bounded in time, whatever happened before. A wake after which the worker found only a timer that was due was wasted,
 * too: otherwise a sequence of timers keeps up wakes that are not needed. bench/work/service_30k with two workers
 * shows the benefit: 0.1 to 0.3 wakes a request, and 29 to 45 us of CPU time, without; 0.01 to 0.03, and 26 to 35,
 * with it.
 */
#ifndef CC_SCHED_POLICY_H
#define CC_SCHED_POLICY_H

#include "sched/sched.h"

#define POLICY_MS UINT64_C(1000000)

/* ---- turns and polls (runq.h, next.c) ---- */

enum {
    SLOT_STREAK = 16,            /* turns in a row for the slot. Guess */
    SLOT_NS = 16 * 1000,         /* the same in time, or one turn: the others wait for them. Bound: NEXT-1 */
    RUNQ_MANY = 32,              /* ready fibers that exceed the L1 cache: prefetch their stacks. Guess */
    PREFETCH_LINES = 13,         /* of each: the frames of a fiber that waits in a join. Measured: decision 016 */
    FIRST_TURN_NS = 1000,        /* assumed average of a turn until the first poll. Guess */
    FIRST_SLOW_NS = 16 * 1000,   /* assumed length of the slowest turn. Guess */
    POLL_NS = 50 * 1000,         /* between two polls: about two wakes (28 us measured), long against 64 turns. Guess */
    INTERVAL_MAX = 256,          /* turns between two polls. Bound: NEXT-1 */
    POLL_LATE_NS = 1000 * 1000,  /* a poll is late: turns have become longer since it was planned. Guess */
    POLL_SOON_NS = 3 * 1000,     /* a poll for a timer is not planned sooner than that: one takes 150 ns. Guess */
    POLL_AGAIN_NS = 1000,        /* nor does it happen sooner when turns are shorter than the slowest. Guess */
    JOINER_FRESH_POLLS = 16,     /* polls after which a joiner admits the oldest fresh fiber: 0.2 to 0.8 ms. Guess */
    OTHERS_LATE_NS = 100 * 1000, /* a poll fires timers of another worker that are this late. Measured: decision 016 */
    HELP_NS = 10 * 1000 * 1000,  /* how often busy workers steal from one that stays in its turn. Bound: NEXT-1 */
    RING_WORKERS = 8,            /* workers that share a ring of the global queue. Measured: see cc__policy_rings */
    OTHER_RINGS = 8,             /* every so many takes begin at another ring. Bound: INJECT-3 */
    GLOBAL_BATCH = 64,           /* fibers that a poll takes from the global queue. Guess */
    INBOX_LONG = 256,            /* a longer inbox is left alone: wakes go to the global queue. Guess */
    /* Fibers whose timers fired go to the front of the FIFO, for FRONT_PRICE turns each. A turn that begins on the
     * worker's own stack counts twice: so such fibers get at most every second turn. Bound: NEXT-1 */
    FRONT_PRICE = 4,
    FRONT_CREDIT_MAX = 128, /* turns that can be saved for that. Guess */
    FRONT_RESERVE = 64,     /* credit that events leave to timers. Measured: bench/io, with tickers */
};

/* ---- sharing and stealing (runq.c, steal.c) ---- */

enum {
    SHARE_MAX = 256,          /* fibers moved between workers at a time: some microseconds. Guess */
    SHARE_AT_MAX = 64,        /* a spawner shares when 1, 2, 4 ... this many wait, anew after every poll. Guess */
    STEAL_PAYS_NS = 250,      /* stolen work must last longer than its move: two cache lines and the queue. Measured */
    WAKE_PAYS_NS = 25 * 1000, /* the same for work that a worker was woken for. Measured: 28 us; bench/work/nest */
    /* For each wait for a lock: the spin before it, the move back to the worker of the holder, and the slower lock.
     * Measured: bench/work/cache with 25 us takes twice the CPU time. Decision 053 */
    LOCK_WAIT_PAYS_NS = 400 * 1000,
    WORTH_NS = 1000, /* less work is not shared: four moves. Measured: with 8000 bench/sieve loses a core */
    /* The limit grows up to this where shared fibers come back (cc__policy_worth_next). Bound: by then all had a turn.
     * A poll takes off a sixteenth: half in 0.5 ms. Measured: with a sixty-fourth bench/sieve takes a third longer */
    WORTH_MAX_NS = 32 * 1000,
    WORTH_FORGOTTEN = 16,
    /* A turn that is observed to last this long is a long one. Measured: an interrupt takes up to 10 us, and fibers
     * that communicate should stay together. */
    STUCK_NS = 15 * 1000,
};

/* How many rings the global queue has for that many workers: at most RING_WORKERS share one. A cache line that more
 * CPUs write is in transit most of the time. Measured in the model of bench/cpus: with one ring a tree of tasks on 64
 * CPUs takes twice the time of 32, nine tenths of it for the ring. */
CC_INLINE unsigned cc__policy_rings(unsigned workers) {
    unsigned n = 1;
    while (n < RINGS_MAX && n * RING_WORKERS < workers) n *= 2;
    return n;
}

/* Whether there is something here that a searching worker should have. Fresh fibers are: their run time is unknown. For
 * the others the recent length of turns is known: if all of them will have had theirs within `worth_ns`, each is served
 * sooner here than elsewhere, and those that communicate stay together. A hint; any thread may ask. */
CC_INLINE bool cc__policy_worth_sharing(struct worker *w) {
    return !cc__list_empty(&w->runq.fresh) ||
           (uint64_t)cc__get(&w->runq.count) * cc__get(&w->turn_ns) >= cc__get(&w->worth_ns);
}

/* The least work that a worker shares after its next poll. If the searcher comes too late, the worker has moved its
 * fibers to the global queue and back: then the limit doubles. gave: it has shared some; came_back: and has taken some
 * back. Decision 048 */
CC_INLINE uint32_t cc__policy_worth_next(uint32_t worth, bool gave, bool came_back) {
    if (came_back) return worth < WORTH_MAX_NS / 2 ? worth * 2 : WORTH_MAX_NS;
    worth -= gave ? worth / 2 : worth / WORTH_FORGOTTEN;
    return worth > WORTH_NS ? worth : WORTH_NS;
}

/* Whether a worker that has nothing to do should ask for some of this one's fibers. One that will block in the poller
 * (polls) gets its next work there: it asks only for more than its own sleep and wake cost. A hint; any thread. */
CC_INLINE bool cc__policy_worth_asking(struct worker *w, bool polls) {
    uint32_t count = cc__get(&w->runq.count);
    if (count < 2 || !cc__policy_worth_sharing(w)) return false;
    return !polls || (uint64_t)count * cc__get(&w->turn_ns) >= WAKE_PAYS_NS;
}

/* How many of `count` fibers are moved at a time. */
CC_INLINE uint32_t cc__policy_half(uint32_t count) {
    uint32_t half = (count + 1) / 2;
    return half < SHARE_MAX ? half : SHARE_MAX;
}

/* How many of `count` fibers a worker shares with one that searches, while `waiting` fibers are in the global queue:
 * both get half. A searcher that has lost its CPU, or is still being woken, has not fetched those yet. Measured:
 * without the second part each of 20,000 short tasks was moved three times on a busy machine. Decision 055 */
CC_INLINE uint32_t cc__policy_share(uint32_t count, uint64_t waiting) {
    return count > waiting ? cc__policy_half(count - (uint32_t)waiting) : 0;
}

/* Whether stolen work lasted long enough. received: fibers; a fresh one counts twice, because it contends with its
 * siblings for a lock, say of a nursery. lock_waits: how often one of them has waited for a lock; then the holder makes
 * it ready on its own worker. interrupted: the worker was woken for the work, or has interrupted a victim that has
 * ended its turn meanwhile. */
CC_INLINE bool cc__policy_steal_paid(uint32_t received, uint64_t lock_waits, uint64_t ns, bool interrupted) {
    uint64_t least = (uint64_t)received * STEAL_PAYS_NS + lock_waits * LOCK_WAIT_PAYS_NS;
    return ns >= least && (!interrupted || ns >= WAKE_PAYS_NS);
}

/* ---- contention for channels (contention.c) ---- */

enum {
    /* For a move to be timed so many operations are, until one is a move. Measured: with 1 bench/work/actors takes 2.5
     * times as long as on one worker where moves are expensive */
    MOVES_TRIES = 4,
    MOVES_TIMED = 16,   /* of so many moves one is timed, with three reads of the clock. Guess */
    MOVES_JUDGED = 128, /* moves until the worker decides: 60 to 200 us where they matter. Guess */
    /* What the moves cost, in times of the operations: the values move, too, and the records of those who wait.
     * Measured: 2.2 to 7.8 in ten programs. Decision 054 */
    MOVES_COST_TIMES = 3,
    /* For so long after a worker has stopped the watcher ticks slowly: its next attempt would cost as much. Guess */
    CONTENDED_NS = 5 * 1000 * 1000,
};

/* Whether `awake` workers get less done together than one of them would alone: each loses more than its share. ns: what
 * the operations took after which lines have moved, in a time of `span`. */
CC_INLINE bool cc__policy_contended(uint64_t ns, uint64_t span, unsigned awake) {
    return awake > 1 && MOVES_COST_TIMES * ns * awake >= span * (awake - 1);
}

/* ---- searching, waking, watching (idle.c, watch.c) ---- */

enum {
    SEARCH_NS = 20 * 1000, /* about one wake (28 us measured): searching is cheaper than sleeping too early */
    /* A sleep that ends with a timer takes 15 us of CPU time, most of it in the kernel and the hypervisor. Timers are
     * exact as long as idle workers wake for them less than 3,000 times a second. Beyond that `slack` is kept between
     * two wakes: it grows while a wake fires few timers, and shrinks while it fires many. Measured: service_5k takes 26
     * us of CPU time a request with exact timers, 14 with 1 ms of slack. Bound: a deferred timer fires within
     * TIMER_SLACK_NS. Decision 047 */
    TIMER_SLACK_NS = 1000 * 1000,
    TIMER_SLACK_MIN_NS = 250 * 1000,
    TIMER_WAKES = 32,           /* wakes after which slack is decided anew. Guess */
    TIMER_NEAR_NS = 333 * 1000, /* wakes that are this far apart, on average, take 5 % of a CPU. Bound */
    TIMER_FAR_NS = 500 * 1000,  /* wakes that would be this far apart need no slack. Guess */
    TIMER_FEW = 3,              /* timers fired by a wake, on average: 5 us of CPU time for each. Guess */
    TIMER_MANY = 16,
    TIMER_PAUSE_NS = 10 * 1000 * 1000, /* so long without a wake for timers: they are exact again. Guess */
    OTHERS_SLEEP_SKIPS = 15,           /* sleeps without a search after a wasted one while all others slept. Guess */
    /* Wakes that keep the woken worker off the waker's CPU, at 2 us each (measured), after one that ran there. The next
     * one tries again whether the system does it by itself. Guess. Decision 051 */
    APART_WAKES = 1000,
    LINGER_NS = 1000 * 1000, /* cancellations that are closer together share a membarrier, of some 10 us. Guess */
    WAKE_CREDIT = 8,         /* wasted wakes that are allowed in a row, at most. Guess */
    /* Short work that was taken from behind a long turn earns one wake each. A stage of a pipeline whose adjacent
     * stages run elsewhere never ends its turn: each batch would wake a worker for a microsecond of work. Bound: wakes
     * for short work take a tenth of a CPU. Decision 049 */
    SHORT_WORK_NS = 250 * 1000,
    /* A tick of the watcher takes 3 us of CPU time on a bare machine, 11 to 17 us on a virtual one (measured). If a
     * turn was long within EAGER_NS: tick often, for a bound of 250 us on a deferred wake (bench/tail). Otherwise the
     * bound is 1 ms: long turns are then too rare to count among a thousand wakes, and the ticks would take as much CPU
     * time as the requests of service_5k. Decisions 019, 033 */
    WATCH_EAGER_NS = 120 * 1000,
    WATCH_NS = 800 * 1000,
    LONG_TURN_NS = 60 * 1000, /* average of the turns since the last poll. Guess */
    EAGER_NS = 100 * 1000 * 1000,
    WATCH_TIMERS_NS =
        5 * 1000 * 1000,     /* nothing is deferred: only timers of a worker in a long turn may be late. Guess */
    WATCH_QUIET = 4,         /* ticks without a waiting fiber after which wakes are no longer deferred. Guess */
    BACKLOG_NS = 250 * 1000, /* a queue that advances but holds more work needs help. Bound: as WATCH_EAGER_NS */
};

/* The slack of timers after TIMER_WAKES wakes of idle workers for timers. gaps: the sum of the times from each wake to
 * the next timer, which would have been the next wake without slack; fired: the timers that these wakes have fired. */
CC_INLINE uint64_t cc__policy_timer_slack(uint64_t slack, uint64_t max, uint64_t gaps, uint64_t fired) {
    uint64_t min = max < TIMER_SLACK_MIN_NS ? max : TIMER_SLACK_MIN_NS;
    if (slack == 0) return gaps < (uint64_t)TIMER_WAKES * TIMER_NEAR_NS ? min : 0;
    if (gaps > (uint64_t)TIMER_WAKES * TIMER_FAR_NS) return 0;
    if (fired < (uint64_t)TIMER_WAKES * TIMER_FEW) return slack * 2 < max ? slack * 2 : max;
    return fired >= (uint64_t)TIMER_WAKES * TIMER_MANY && slack / 2 >= min ? slack / 2 : slack;
}

/* Workers that do not sleep, including those that are being woken. */
CC_INLINE unsigned cc__policy_awake(uint64_t want) {
    unsigned open = cc__sched_open(), idle = want_idle(want);
    return open > idle ? open - idle : 1;
}

/* No more workers are awake than there are CPUs for them; extra workers only replace those that are stuck. Bound: with
 * more, a searcher takes the CPU of one that has something to share. */
CC_INLINE bool cc__policy_may_search(uint64_t want) {
    return want_idle(want) >= cc__get(&cc__sched.surplus);
}
CC_INLINE bool cc__policy_may_wake(uint64_t want) {
    return want_idle(want) > cc__get(&cc__sched.surplus);
}

/* At most this many workers search at a time (IDLE-2). Guess. With 16 at most, the fibers of 64 CPUs do not spread: in
 * the model of bench/cpus pairs that talk then use half of them. */
CC_INLINE unsigned cc__policy_searchers_max(unsigned workers) {
    return workers > 3 ? workers / 2 : 1;
}

/* Whether an owner may leave a wake to the watcher. */
CC_INLINE bool cc__policy_defers(uint64_t want) {
    return want_watch(want) && (cc__get(&cc__sched.credit) == 0 || !cc__policy_may_wake(want));
}

CC_INLINE uint64_t cc__policy_watch_interval(uint64_t now) {
    bool eager = now - cc__get(&cc__sched.idle.long_turn_at) < EAGER_NS &&
                 now - cc__get(&cc__sched.idle.contended_at) >= CONTENDED_NS;
    return eager ? WATCH_EAGER_NS : WATCH_NS;
}

/* Whether this worker has more than it can run in time. While wakes pay, whatever is worth sharing counts. */
CC_INLINE bool cc__policy_backlog(struct worker *w) {
    uint32_t count = cc__get(&w->runq.count);
    if (count < 2 || !cc__policy_may_wake(cc__get(&cc__sched.want))) return false;
    return cc__get(&cc__sched.credit) != 0 ? cc__policy_worth_sharing(w)
                                           : (uint64_t)count * cc__get(&w->turn_ns) >= BACKLOG_NS;
}

/* A wake, search or steal paid: it earns the wasted wakes that take as long as its work did. */
CC_INLINE void cc__policy_paid(uint64_t ns) {
    uint64_t earned = ns / WAKE_PAYS_NS;
    if (earned > WAKE_CREDIT) earned = WAKE_CREDIT;
    if (earned == 0) earned = 1;
    if (cc__get(&cc__sched.credit) < earned) cc__set(&cc__sched.credit, (uint32_t)earned);
}
/* Work that was taken from behind a long turn, and was too short to pay for itself: what it earns goes by the time
 * since the last such work. Nothing, if that was just now. */
CC_INLINE uint64_t cc__policy_short_work(uint64_t now) {
    uint64_t since = now - cc__get(&cc__sched.idle.short_work_at);
    cc__set(&cc__sched.idle.short_work_at, now);
    return since / SHORT_WORK_NS * WAKE_PAYS_NS;
}
CC_INLINE void cc__policy_unpaid(void) {
    uint32_t credit = cc__get(&cc__sched.credit);
    if (credit > 0) cc__set(&cc__sched.credit, credit - 1);
}

/* ---- how many workers (pressure.c, elastic.c) ---- */

#define POLICY_STUCK_NS (10 * POLICY_MS) /* a worker in one turn for this long is stuck. Guess */
#define POLICY_GROW_NS (10 * POLICY_MS)  /* between two additions. Guess */
#define NO_THREAD_NS (1000 * POLICY_MS)  /* until the next attempt when the system had no thread. Guess */
#define RETIRE_NS (500 * POLICY_MS)      /* until an extra worker retires: long against pauses between bursts. Guess */
#define RETIRE_AGAIN_NS POLICY_MS        /* the only sleeper does not retire, and tries again; no busy loop in tests */
enum { COMPUTING_SHARE = 8 };            /* a thread that used an eighth of the time is computing. Guess */

/* How many workers are added at a time (PRESSURE-1). */
CC_INLINE unsigned cc__policy_grow_by(unsigned open) {
    return open / 2 > 0 ? open / 2 : 1;
}

/* ---- sysmon (sysmon.c) ---- */

#define TICK_MIN (POLICY_MS / 4)      /* while all work; each tick is twice as long, up to POLICY_STUCK_NS. Guess */
#define TICK_EVENTS (5 * POLICY_MS)   /* while all work and events are awaited: two ticks. Bound: 10 ms */
#define PREEMPT_NS (2 * POLICY_MS)    /* a turn this long ends at a call that may switch, and ... Decision 052 */
#define TICK_SLOW (100 * POLICY_MS)   /* while some sleep: for stalls, which last seconds. Guess */
#define STOPPED_NS (1000 * POLICY_MS) /* a tick that is so late: the process was stopped, and no worker stalls. Guess */
#define TIMER_SOON_NS (2 * TICK_SLOW) /* sysmon sees timers that are due later in time. Bound: IDLE-5 */
#define QUIET_FIRST \
    (50 * POLICY_MS) /* the first check for a deadlock, after all have slept this long; the second after ... */
#define QUIET_SECOND (100 * POLICY_MS)
#define PAUSE_MIN \
    (250 * POLICY_MS) /* ... and again, each pause twice as long: a thread that ends notifies nobody. Guess */
#define PAUSE_MAX (4000 * POLICY_MS)
enum { PREEMPT_TICKS = 8 }; /* ... so many ticks are that close after one did. Guess */
enum { FRESH_MAX = 255 };   /* fresh fibers that go before a fiber that does so again. Guess: 8 us for each */
enum { QUIET_TICKS = 3 };   /* fast ticks with a sleeper before sysmon ticks slowly. Guess */

/* A fiber that arms such a timer and continues makes sure that a sleeper wakes for it. A wake takes 10 to 20 us: too
 * much for every request with a deadline of some seconds. */
CC_INLINE bool cc__policy_due_soon(uint64_t when, uint64_t now) {
    return when <= now || when - now < TIMER_SOON_NS;
}

#define TRIM_NS (90 * POLICY_MS)   /* at every slow tick: stacks that were not used since the last one are returned */
#define CPUS_NS (1000 * POLICY_MS) /* usable CPUs are counted again: 0.1 ms for a dozen small files. Guess */

/* ---- memory (worker.c) ---- */

#define STACK_WAIT_NS (1000 * POLICY_MS)    /* at the memory limit: how long to wait for another worker's stack, ... */
#define STACK_NO_WAIT_NS (1000 * POLICY_MS) /* ... and how long not to wait again. Guess */
enum { STACK_NAP_NS = 100 * 1000 };         /* Guess */

#endif
