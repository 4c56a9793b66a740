/* island.h - a separate worker: no other worker takes its fibers, and it takes none of theirs.
 *
 * The workers of islands follow those of the pool in cc__sched.workers. The state word of a fiber has the number of the
 * worker that it last ran on, and so tells which island the fiber belongs to, if any.
 *
 * ISLAND-1  A fiber that has run on an island runs on that island's worker only. A thread that makes it ready elsewhere
 *           pushes it to that worker's inbox, which no other worker takes. Fibers of the pool that an island makes
 *           ready go to the pool by the route that OS threads use.
 * ISLAND-2  A sender pushes to the inbox, then checks whether the worker sleeps; the worker announces that it sleeps,
 *           then checks the inbox. Both sides are seq_cst, so one of them sees the other.
 * ISLAND-3  The worker's thread ends when the island is closed and all its fibers have ended: those that arrived from
 *           elsewhere and those that its own fibers started.
 * ISLAND-4  A timed spawn (timer/timed_spawn.h) that an island's fiber arms is an alarm. It belongs to no island: the
 *           worker that fires it runs it. That is the island's own, or one of the pool, if the island is busy or has
 *           ended. An island that ends makes sure that a worker of the pool wakes for its alarms.
 */
#ifndef CC_SCHED_ISLAND_H
#define CC_SCHED_ISLAND_H

#include "base/fatal.h"
#include "sched/sched.h"

#include <ccc/cc_task.h>

/* What a handle points to; the room island/ embeds it. */
struct CCIsland {
    unsigned owner; /* the number of its worker, plus one */
    uint64_t tag;   /* of that worker: an island of an earlier start of the runtime matches nothing */
};

/* Finds its worker. 0; ESRCH: the runtime has been shut down since. Inside the runtime. */
int cc__island_find(const CCIsland *island, struct worker **worker);

/* The island whose on_start or on_end the calling thread runs, or NULL. */
struct CCIsland *cc__island_hooked(void);

/* ---- which ---- */

/* A copy of its name. Any thread: while its place is given to another island, it may be a part of each. */
struct island_name {
    char text[16];
};
struct island_name cc__island_name(const struct worker *w);

CC_INLINE bool cc__island_any(void) {
    return unlikely(cc__get(&cc__sched.islands) != 0);
}

CC_INLINE bool cc__worker_is_island(const struct worker *w) {
    return cc__island_any() && w->core.owner > cc__sched.max;
}

/* The island's worker that a fiber belongs to; NULL: any of the pool. For a fiber that is RUNNABLE, PARKED or RUNNING,
 * and not fresh outside of a queue. */
CC_INLINE struct worker *cc__island_worker(struct fiber *f) {
    unsigned owner = cc__word_owner(cc__get(&f->word));
    return unlikely(owner > cc__sched.max) ? &cc__sched.workers[owner - 1] : NULL;
}

/* Whether a fiber that `w` has made ready must not run on it. */
CC_INLINE bool cc__island_apart(struct worker *w, struct fiber *f) {
    if (likely(!cc__island_any())) return false;
    return cc__island_worker(f) != (cc__worker_is_island(w) ? w : NULL);
}

/* ISLAND-1, checked in debug builds whenever a fiber gets the CPU. */
CC_INLINE void cc__island_check(struct worker *w, struct fiber *f) {
    (void)w, (void)f;
#ifdef CC_DEBUG
    if (cc__island_any() && (cc__worker_is_island(w) || cc__island_worker(f) != NULL)) {
        unsigned owner = cc__word_owner(cc__get(&f->word));
        cc__assert(owner == w->core.owner, "ISLAND-1: a fiber of an island gets the CPU of another worker");
    }
#endif
}

/* ---- routes ---- */

/* Sends a RUNNABLE fiber that is in no queue to its island. Any thread, inside the runtime. */
void cc__island_send(struct worker *w, struct fiber *f);
/* Sends those of n fibers that `w` must not run (NULL: those of islands) where they belong. Returns how many remain. */
uint32_t cc__island_route(struct worker *w, struct link *list, uint32_t n);

/* Makes a filled, IDLE record runnable there; target NULL: in the pool, by a fiber of an island. w: the calling worker,
 * or NULL. */
void cc__island_spawn(struct worker *w, struct worker *target, struct fiber *f, enum fiber_args args);

/* ---- alarms ---- */

/* Which source of the drivers (driver.h) has the alarms of that island's worker; its own timers are in another. */
CC_INLINE unsigned cc__island_alarms(const struct worker *w) { /* ISLAND-4 */
    return w->core.owner - 1 + ISLANDS_MAX;
}
/* The same for the island in place `place`, from 0. */
CC_INLINE unsigned cc__island_alarms_at(unsigned place) {
    return cc__sched.max + ISLANDS_MAX + place;
}

/* When the next alarm of any island is due, one that has ended included; UINT64_MAX: never. Any thread. */
uint64_t cc__islands_next_alarm(bool exact);
/* Claims the fibers of all alarms that are due, appends them to `list`, and returns their number. The caller runs them,
 * as a worker of the pool. */
uint32_t cc__islands_poll_alarms(uint64_t now, struct link *list);
/* The same for the alarms of the calling worker, which is an island's and will run them. */
uint32_t cc__island_poll_alarms(struct worker *w, uint64_t now, struct link *list);

/* ---- its worker ---- */

/* The worker has nothing to run: sleeps. False: its thread has to end. */
bool cc__island_idle(struct worker *w);

/* In a simulation: waits until the simulator gives it a fiber. NULL: its thread has to end. */
struct fiber *cc__island_sim_next(struct worker *w);
/* The simulator lets the island run that fiber, and waits until it has stopped. */
void cc__island_sim_run(struct worker *w, struct fiber *f);

/* In a simulation: ends the threads of islands that are closed and whose fibers have ended. */
void cc__islands_sim_end(void);

/* Whether all islands sleep, with empty queues. Any thread, inside the runtime. */
bool cc__islands_asleep(void);

/* Opens an island: a worker with its own thread. 0; ENOMEM; EAGAIN: no thread, or there are ISLANDS_MAX. Inside the
 * runtime. */
int cc__island_open(const struct island_setup *setup, struct worker **worker);
/* Its thread ends when all its fibers have ended. */
void cc__island_close(struct worker *w);
/* Its thread has announced its end: joins it, and frees its place. */
void cc__island_join(struct worker *w);

/* At the runtime's end: stops all that are still open. */
void cc__islands_stop(void);

#endif
