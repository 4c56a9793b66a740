/* island.h - a worker that is apart: nobody takes fibers from it, and it takes none of others.
 *
 * Islands' workers lie behind those of the pool in cc__sched.workers. The state word of a fiber has the number of the
 * worker that it last ran on; so it tells on which island a fiber is, if on any.
 *
 * ISLAND-1  A fiber that has run on an island runs on that island's worker only. Whoever makes it ready elsewhere
 *           pushes it to that worker's inbox, which nobody else takes; and what an island makes ready that is not its
 *           own goes to the others the way that OS threads use.
 * ISLAND-2  Publish to the inbox, then look whether the worker sleeps; against: say that it sleeps, then look at the
 *           inbox. Sequentially consistent on both sides, so one of them sees the other.
 * ISLAND-3  The worker's thread ends when the island is closed and all its fibers have ended: those that came from
 *           elsewhere and those that its own started.
 */
#ifndef CC_SCHED_ISLAND_H
#define CC_SCHED_ISLAND_H

#include "base/fatal.h"
#include "sched/sched.h"

#include <ccc/cc_task.h>

/* What a handle points to; the room island/ has more behind it. */
struct CCIsland {
    unsigned owner; /* the number of its worker, plus one */
    uint64_t tag;   /* of that worker: an island of an earlier start matches nothing */
};

/* Its worker: 0; ESRCH: the runtime has been shut down since. Inside the runtime. */
int cc__island_find(const CCIsland *island, struct worker **home);

/* ---- which ---- */

CC_INLINE bool cc__island_any(void) {
    return unlikely(cc__get(&cc__sched.islands) != 0);
}

CC_INLINE bool cc__worker_is_island(const struct worker *w) {
    return cc__island_any() && w->core.owner > cc__sched.max;
}

/* The island's worker that a fiber is at home on; NULL: any of the pool. For one that is RUNNABLE, PARKED or RUNNING,
 * and not fresh in somebody's hands. */
CC_INLINE struct worker *cc__island_home(struct fiber *f) {
    unsigned owner = cc__word_owner(cc__get(&f->word));
    return unlikely(owner > cc__sched.max) ? &cc__sched.workers[owner - 1] : NULL;
}

/* A fiber that `w` has made ready is not to run on it. */
CC_INLINE bool cc__island_apart(struct worker *w, struct fiber *f) {
    if (likely(!cc__island_any())) return false;
    return cc__island_home(f) != (cc__worker_is_island(w) ? w : NULL);
}

/* ISLAND-1, in debug builds, whenever a fiber gets the CPU. */
CC_INLINE void cc__island_check(struct worker *w, struct fiber *f) {
    (void)w, (void)f;
#ifdef CC_DEBUG
    if (cc__island_any() && (cc__worker_is_island(w) || cc__island_home(f) != NULL)) {
        unsigned owner = cc__word_owner(cc__get(&f->word));
        cc__assert(owner == w->core.owner, "ISLAND-1: a fiber of an island gets the CPU of another worker");
    }
#endif
}

/* ---- routes ---- */

/* A fiber that is RUNNABLE, in nobody's queue, to where it belongs. By any thread, inside the runtime. */
void cc__island_send(struct worker *home, struct fiber *f);
/* Of n fibers those that `w` must not run (NULL: those of islands) go where they belong. Returns how many are left. */
uint32_t cc__island_route(struct worker *w, struct link *list, uint32_t n);

/* A filled, IDLE record becomes runnable there; home NULL: in the pool, by a fiber of an island. w: the calling worker,
 * or NULL. */
void cc__island_spawn(struct worker *w, struct worker *home, struct fiber *f, enum fiber_args args);

/* A fiber that was started on `home` has ended on `w` (NULL: a thread), before it began: if one of them is an island,
 * it counts that. */
void cc__island_ended_elsewhere(struct worker *home, struct worker *w);

/* ---- its worker ---- */

/* It has nothing to run: sleeps. False: its thread is to end. */
bool cc__island_idle(struct worker *w);

/* In a simulation: waits until the simulator gives it a fiber. NULL: its thread is to end. */
struct fiber *cc__island_sim_next(struct worker *w);
/* The simulator lets it run that fiber, and goes on when it has come back. */
void cc__island_sim_run(struct worker *home, struct fiber *f);

/* In a simulation: the threads of those that are closed, and whose fibers have ended, end. */
void cc__islands_sim_end(void);

/* Every one of them sleeps, and none has anything in a queue. Any thread, inside the runtime. */
bool cc__islands_asleep(void);

/* A worker with a thread of its own. 0; ENOMEM; EAGAIN: no thread, or there are ISLANDS_MAX; an error of the affinity.
 * Inside the runtime. */
int cc__island_open(const struct island_setup *setup, struct worker **home);
/* Its thread ends when all its fibers have. */
void cc__island_close(struct worker *home);
/* Its thread has said that it ends: its place is free again. */
void cc__island_join(struct worker *home);

/* At the runtime's end: all that are still open. */
void cc__islands_stop(void);

#endif
