/* sched.h - the worker, what it owns and what it shares; and the calls through which the rooms above use the scheduler.
 *
 * A worker is an OS thread that runs fibers. struct worker_core belongs to its owner: others only read some of its
 * fields, and set `ring`. (They are relaxed atomics because a race detector sees the fibers of one worker as threads.)
 * struct runq belongs to the owner under a biased lock; struct worker_remote is for all threads. A function that takes
 * a worker_core *, or a worker * named `w`, runs on that worker.
 */
#ifndef CC_SCHED_SCHED_H
#define CC_SCHED_SCHED_H

#include "arch/self.h"
#include "fiber/cxx.h"
#include "fiber/pool.h"
#include "fiber/stack.h"
#include "fiber/state.h"
#include "os/futex.h"
#include "os/thread.h"
#include "sched/turn_log.h"
#include "sync/bias.h"
#include "sync/ring.h"
#include "trace/counters.h"
#include "trace/recorder.h"

struct worker;
struct CCIsland;

/* What must not happen before the old stack is quiet; runs first on the next one. */
typedef void (*after_fn)(struct worker *w, void *arg);

/* A worker's own runnable fibers. runq.h has the rules. */
struct runq {
    struct bias bias;
    _Atomic uint32_t count;     /* of all three below */
    struct fiber *_Atomic slot; /* just woken: runs next */
    struct link fifo;           /* woken and yielded, oldest first */
    struct link fresh;          /* never run, newest first */
    _Atomic uint32_t preempt;   /* the turn, its lower half, that has lasted too long; 0: none. Any thread (NEXT-3) */
    _Atomic uint32_t timed;     /* of so many operations the first that is a move is timed (contention.h) */
};

struct worker_core {
    struct fiber *_Atomic current; /* NULL: the worker runs on its own stack */
    after_fn _Atomic after;
    void *_Atomic after_arg;
    _Atomic uint64_t turns;           /* counts the fibers that got the CPU; others read it to see progress */
    _Atomic uint64_t poll_at;         /* the turn at which the worker polls */
    struct record_ring *_Atomic ring; /* its ring of the recorder; NULL: nothing is recorded (record.h) */
    _Atomic uint32_t streak;          /* turns in a row given to the slot */
    _Atomic uint32_t share_at;        /* a spawn shares with searching workers when this many fibers wait */
    _Atomic uint64_t deferred;        /* the turn in which it last left a wake to the watcher (watch.c) */
    unsigned owner;                   /* this worker's number plus one, as in a state word */
    uint64_t tag;                     /* the same, with the number of the runtime's start: never reused, never 0 */
    struct cxx_globals *_Atomic cxx;  /* of its thread */
    struct fiber *_Atomic pending;    /* taken from a queue, waits for a stack */
    struct fiber *_Atomic behalf;     /* trace: the ended fiber whose joiners the worker is waking */
    struct fiber_cache fibers;
    struct stack_cache stacks;
    struct context native; /* the worker's own stack */
    struct san san;
    struct counters counters;
};

struct worker_remote {
    struct fiber *_Atomic inbox; /* the newest; any thread may push, any may take all (an island's: only its owner) */
    _Atomic uint32_t inbox_len;
    _Atomic uint32_t wake;                   /* futex: enum wake_word; of an island: see island.c */
    _Atomic uint64_t woken;                  /* fibers that OS threads have woken and sent to this worker */
    struct link idle;                        /* on sched.idle.list, under its lock */
    bool asleep;                             /* under sched.idle.lock */
    int waker_cpu;                           /* of the waker, plus one; 0: unknown. Set before `wake` (IDLE-9) */
    bool kept_off;                           /* the thread is kept off that CPU; set before `wake` */
    _Atomic uint32_t status;                 /* enum worker_status */
    _Atomic int32_t tid;                     /* the system's number for its thread */
    _Atomic uint32_t naps;                   /* of its thread: cc__thread_count_naps */
    _Atomic uintptr_t stack_low, stack_high; /* the part of its thread's stack that the worker itself uses */
};

/* The state of a worker's thread, which may end while the worker remains (elastic.c). Written under sched.idle.lock; of
 * an island, under the lock in island.c. */
enum worker_status {
    WORKER_EMPTY, /* no thread */
    WORKER_OPEN,
    WORKER_CLOSED, /* its thread has retired, and has to be joined */
};

/* Of an island's worker (island.h). */
struct island_setup {
    const char *name; /* NULL: none */
    void (*on_start)(void *context);
    void (*on_end)(void *context);
    void *context;
    void (*ended)(void *arg); /* called last on its thread */
    void *ended_arg;
    struct CCIsland *island; /* the user's handle */
    int cpu;                 /* -1: any */
};
struct worker_island {
    _Atomic uint64_t arrived;   /* fibers started there from elsewhere; summed over all islands in this place */
    _Atomic uint32_t closing;   /* its thread ends when all its fibers have */
    _Atomic uint32_t baton;     /* simulation: futex */
    struct fiber *_Atomic next; /* simulation: the fiber that it has to run */
    struct island_setup setup;
    _Atomic uint64_t name[2]; /* 16 bytes; reports read them at any time (cc__island_name) */
};

/* A worker's uses of channels that another worker has used before. */
struct moves {
    _Atomic uint32_t count;
    _Atomic uint32_t timed; /* of those since `since`; they took `ns` */
    _Atomic uint64_t ns, longest, since;
    _Atomic bool give_back; /* the worker stops, and leaves its fibers to others */
};

struct worker {
    _Alignas(CC_LINE) struct worker_core core;
    _Alignas(CC_LINE) struct runq runq;
    _Alignas(CC_LINE) struct worker_remote remote;
    /* The owner's, off the hot path. */
    _Alignas(CC_LINE) uint64_t rng;
    _Atomic uint64_t payoff_deadline; /* its own work has to last until then, or sharing fibers did not pay */
    _Atomic uint32_t worth_ns;        /* less work is not shared (cc__policy_worth_next) */
    _Atomic uint32_t gave;            /* fibers that it has shared and that, as far as it knows, were not taken yet */
    _Atomic uint64_t polled_at;       /* when the worker last polled, in which turn, and the average length of a turn */
    _Atomic uint64_t polled_turn;     /* then (cc__next_plan) */
    _Atomic uint32_t turn_ns;
    _Atomic uint32_t slow_ns; /* the slowest recent average: each poll takes off a thirty-second */
    uint32_t interval;        /* turns between two polls, at most */
    uint64_t helped_at;       /* when it last checked for stuck workers */
    uint32_t credit;          /* turns for which fibers may still enter at the front (FRONT_PRICE) */
    uint64_t events_turn;     /* by then the fibers that events have made ready have had their turns (NEXT-2) */
    uint64_t slots_since;     /* since this poll only slots had turns, if any had (slot_first) */
    uint64_t preempted_at;    /* when a fiber last yielded because its turn was long (NEXT-3) */
    uint32_t fresh_gone;      /* so many fresh fibers went before it */
    uint32_t joiner_polls;    /* by joiners (cc__next_poll_for_joiner) */
    uint32_t takes;           /* from the global queue (INJECT-3) */
    struct moves moves;       /* see contention.h */
    bool fair_fresh;          /* which goes next among the oldest: fresh or fifo */
    bool rested;              /* has been idle since it last ran something */
    bool searching;           /* is counted as a searcher */
    bool called;              /* was woken to search */
    bool woken_for_work;      /* was woken for the work that it has done since it last slept */
    bool watched;             /* has been the watcher since it last ran something */
    bool polled;              /* the same for the poller */
    uint64_t no_stack_until;  /* a wait for a stack has failed: no other wait before this time */
    bool skip_search;         /* its last search or stolen work did not pay: back to sleep without a search, once */
    uint32_t skips;           /* how often to sleep without a search while all others sleep */
    uint32_t received;        /* fibers received from other workers since it last was idle; a fresh one counts twice */
    uint64_t busy_since;      /* when it last stopped being idle */
    uint64_t lock_waits;      /* how often fibers had waited for locks on it by then */
    struct worker *victim;    /* from whose queue it has stolen since it last was idle, and in which of its turns */
    uint64_t victim_turn;
    uint32_t victim_left; /* fibers that the steal has left in its queue */
    uint64_t *deferrals;  /* every worker's `deferred` at its last tick as the watcher */
    uint32_t quiet;       /* its consecutive ticks, as the watcher, at which nothing waited and nothing was deferred */
    uint64_t idle_since;  /* when it last ran out of work */
    uint64_t *seen;       /* every worker's turns at the last tick */
    struct unwind_memo *memo; /* of recorded stacks (trace_route.c); NULL: none yet */
    struct turn_log turn_log;
    pthread_t thread; /* to the race detector, its address stands for what fibers have written to the worker */
    void *signal_stack;
    struct worker_island island;
};

/* sched.want: how many workers search for work, how many sleep, and whether one of these is the watcher, which handles
 * deferred wakes. One load tells a producer whether anyone has to be notified. */
#define WANT_SEARCHING UINT64_C(1)
#define WANT_WATCH (UINT64_C(1) << 31)
#define WANT_IDLE (UINT64_C(1) << 32)
#define want_searching(want) ((uint32_t)(want) & (uint32_t)(WANT_WATCH - 1))
#define want_watch(want) (((want)&WANT_WATCH) != 0)
#define want_idle(want) ((uint32_t)((want) >> 32))

/* Bits that make spawns, and parks, take their slow paths. */
enum { SPAWNS_REFUSED = 1 /* no new tasks */, SPAWNS_TRACED = 2 };
enum { CANCELS_MADE = 1 /* since the start */, CANCELS_TRACED = 2 /* trace_route.c */ };

enum { RINGS_MAX = 16 };

struct sched {
    struct worker *workers; /* `max` of them, all set up at the start; followed by those of islands */
    _Atomic unsigned count; /* the first `count` are those that ever had a thread; only grows (ELASTIC-1) */
    unsigned asked, max;    /* how many workers were asked for, and may exist */
    /* The first `base` are permanent: as many of the `asked` as there are usable CPUs. Written under idle.lock; only
     * grows. */
    _Atomic unsigned base;
    _Atomic uint32_t surplus; /* how many of them exceed the usable CPUs, and have to sleep */
    _Atomic unsigned islands; /* places of islands that were ever used, from the first; only grows */
    _Atomic uint64_t island_wakes;
    unsigned searchers_max;
    bool simulated; /* sim/ chooses the fiber that runs, and all others wait */
    _Alignas(CC_LINE) _Atomic uint64_t want;
    _Atomic uint32_t credit;    /* how many wasted wakes are allowed before wakes are deferred (idle.c) */
    _Atomic uint32_t stop;      /* workers end when they find nothing */
    _Atomic uint32_t draining;  /* a thread waits for all tasks to end: workers that go idle notify it */
    _Atomic uint32_t spawns;    /* SPAWNS_ bits */
    _Atomic uint32_t contested; /* cc__sched_contest: the number of cancellers, and `lingers` */
    _Atomic uint32_t lingers;   /* 1: the last canceller has left its count behind for the next ones (CLAIM-3) */
    _Atomic uint32_t cancels;   /* CANCELS_ bits: parking fibers check them (wait/cancel.h) */
    _Atomic uint32_t drained;   /* futex: changes whenever a worker goes idle while draining */
    _Alignas(CC_LINE) struct {
        struct lock lock;
        _Alignas(CC_LINE) struct link list;   /* of worker_remote.idle: the sleepers */
        struct worker *_Atomic watcher;       /* the sleeper that ticks while others run; written under the lock */
        _Atomic uint64_t long_turn_at;        /* when a turn was last found to be long (idle.c, next.c) */
        _Atomic uint64_t short_work_at;       /* cc__policy_short_work */
        _Atomic uint64_t contended_at;        /* when a worker last stopped because of contention */
        struct worker *timer_sleeper;         /* the sleeper that wakes for the next timer */
        _Atomic uint64_t timer_sleeper_until; /* written under the lock */
        struct {                              /* IDLE-8 */
            _Atomic uint64_t at;              /* when an idle worker last woke to fire timers */
            _Atomic uint64_t slack;           /* the least time until the next such wake; 0: timers are exact */
            _Atomic uint32_t woken;           /* no worker has gone to sleep since then */
            _Atomic uint32_t wakes;           /* wakes since the slack was decided, ... */
            _Atomic uint64_t gaps, fired;     /* ... times from them to the next timer, and timers that they fired */
        } timers;
        _Atomic uint32_t apart;        /* how many wakes keep the woken thread off the waker's CPU (IDLE-9) */
        struct worker *_Atomic poller; /* the sleeper that blocks in a driver; set under the lock, cleared by itself */
        _Atomic uint32_t open;         /* workers that have a thread; written under the lock */
        _Atomic uint64_t epoch;        /* incremented whenever a worker leaves the list */
    } idle;
    /* The global queue: inject.c. */
    struct ring_mpmc rings[RINGS_MAX];
    unsigned ring_count; /* a power of two; fixed while the runtime runs */
    struct {
        struct lock lock;
        struct link list;
        _Atomic uint64_t count;
    } overflow;
    _Atomic uint32_t round_robin;
    /* Tasks started, and fibers that ended before they ran, by threads that are not workers. */
    _Atomic uint64_t foreign_spawned, foreign_ended;
    _Atomic uint64_t foreign_overflowed; /* as counters.overflows */
    _Atomic uint64_t cancelled_at;       /* when the last cancellation ended */
    struct {
        struct lock lock;
        bool wakes; /* one of `contested` is the trace's */
    } trace_route;
};

extern struct sched cc__sched;

enum { ISLANDS_MAX = 64 };
_Static_assert(CC_WORKERS_MAX + ISLANDS_MAX < 1023, "an owner has ten bits");

/* The owner of a worker's tag; above sched.max: that of an island. */
CC_INLINE unsigned cc__tag_owner(uint64_t tag) {
    return (unsigned)(tag & (WORD_OWNER >> WORD_OWNER_SHIFT));
}

/* Iterates over all workers that ever had a thread, those of islands included; UINT32_MAX: the end. */
CC_INLINE unsigned cc__sched_from(unsigned i) {
    if (i < cc__get(&cc__sched.count)) return i;
    if (i < cc__sched.max) i = cc__sched.max;
    /* Pairs with the store in island.c, which comes after the place was set up. */
    return i < cc__sched.max + cc__get_acquire(&cc__sched.islands) ? i : UINT32_MAX;
}
#define for_all_workers(i, w)                                                        \
    for (unsigned i = cc__sched_from(0); i != UINT32_MAX; i = cc__sched_from(i + 1)) \
        for (struct worker *w = &cc__sched.workers[i]; w != NULL; w = NULL)

_Static_assert((int)WAKE_OBJECT <= (int)COUNTED_REASONS, "every reason to park has a counter");

/* The calling thread's worker, or NULL. A switch may change the thread: call it again afterwards. */
CC_INLINE struct worker *cc__worker(void) {
    return cc__self_get();
}
CC_INLINE void cc__worker_set(struct worker *w) {
    cc__self_set(w);
}

/* --- for the rooms above --- */

/* Whether the calling thread was a worker, or a thread of a pool (blocking/), and runs its last destructors. A shutdown
 * may wait for its end, so it does not wait for others without a deadline, nor for the runtime to start or stop. */
bool cc__worker_ending(void);
void cc__worker_ends(void);

/* The running fiber; NULL outside of one. */
CC_INLINE struct fiber *cc__sched_current(struct worker *w) {
    return w ? cc__get(&w->core.current) : NULL;
}

void *cc__worker_main(void *worker);
/* Sets up a worker's place. False: no memory. */
bool cc__worker_init(struct worker *w, unsigned index);

/* A thread that is not a worker has ended a fiber that never ran. */
void cc__sched_ended_elsewhere(void);

/* How many workers have a thread now. Any thread, inside the runtime. */
CC_INLINE unsigned cc__sched_open(void) {
    return cc__get(&cc__sched.idle.open);
}

/* How many workers there are: those that were asked for, whether they have a thread or not; more while some are stuck.
 * Any thread, inside the runtime. */
CC_INLINE unsigned cc__sched_workers(void) {
    unsigned open = cc__sched_open();
    return open > cc__sched.asked ? open : cc__sched.asked;
}

/* Whether that worker has a thread. A hint, unless the caller holds sched.idle.lock. */
CC_INLINE bool cc__worker_open(struct worker *w) {
    return cc__get(&w->remote.status) == WORKER_OPEN;
}

/* Whether every worker sleeps, with all queues empty. A thread that is about to make a fiber runnable from outside is
 * not seen. Any thread, inside the runtime. */
bool cc__sched_all_asleep(void);

/* How many tasks have been started and have not ended; exact if it returns 0. */
uint64_t cc__sched_active(void);

/* --- for rt --- */

/* How many workers: `base` of them have threads from the start, and keep them; `workers` were asked for; at most `max`
 * may exist. */
struct sched_size {
    unsigned base, workers, max;
    bool adapts; /* to the number of usable CPUs, when that changes */
};
/* 0, ENOMEM, or an error of pthread_create. */
int cc__sched_start(struct sched_size size, size_t queue_slots, bool simulated);
/* After all tasks have ended. */
void cc__sched_stop(void);
/* The process exits while tasks have not ended: ends the threads of workers that have nothing to run. The runtime
 * cannot be used afterwards. */
void cc__sched_exit(void);
/* The categories of trace/trace.h have changed, or the runtime has just started: from now on traced parks, wakes and
 * spawns take their slow paths. */
void cc__sched_route_traces(void);
/* The recorder was started or stopped: sets the workers' rings. */
void cc__sched_route_records(void);
/* An island opens, in a place that is counted in sched.islands: sets its worker's name and its ring. */
void cc__sched_route_island(struct worker *w, const char *name);
/* Waits until no task is active. False: not by `until`. */
bool cc__sched_drain(uint64_t until);

#endif
