/* runtime.h - the runtime in the target: workers, fibers, scopes, found by the library's table (inspect/layout.h).
 *
 * LOOK-1  What was read of a fiber is consistent if its state word, ticket included, was the same before and after;
 *         else it is read again, and finally shown as changing state (VIEW-2 in the library). */
#ifndef CCPS_RUNTIME_H
#define CCPS_RUNTIME_H

#include "base/inspect.h"
#include "inspect/layout.h"

enum { NAME_MAX_SEEN = 128, FRAMES_SEEN = 24, WORKERS_SEEN = 1024, REASONS_SEEN = 32 };
/* Upper bounds for sizes that are accepted: records of fibers, turn logs, descriptors of stacks. */
enum { RECORD_MAX = 1024, LOG_MAX = 1024, STACK_HEAD_MAX = 128 };

/* As in fiber/state.h. */
enum fiber_is { IS_IDLE, IS_RUNNABLE, IS_RUNNING, IS_PARKING, IS_PARKED, IS_DONE };

/* A stack, which all fibers with the same frames share; it stays. */
struct stack_seen {
    unsigned frames;
    struct doubt doubt;
    const struct stack_seen
        *trimmed[2]; /* without the library's own frames, of a fiber that waits, that runs; NULL: not yet */
    const void *frame[];
};

struct fiber_seen {
    uint64_t at; /* its record */
    uint32_t slot, generation;
    enum fiber_is state;
    bool moves;        /* it kept changing state */
    bool started;      /* has a stack */
    unsigned reason;   /* parked: why */
    int worker;        /* runs it, or ran it last; -1: none */
    uint64_t object;   /* parked: what it waits for */
    uint64_t from, to; /* parked: not before, and not after this moment; 0, UINT64_MAX: not known */
    uint64_t site, fn;
    uint64_t scope;     /* its innermost; 0: none */
    uint64_t low, high; /* its stack */
    char *name;         /* NULL: it has none */
    char *line;         /* what it does, in words; NULL: not said yet */
    const struct stack_seen *stack;
};

struct worker_seen {
    uint64_t current; /* a fiber's record; 0: none */
    uint64_t turns, polled_at;
    uint32_t queued, inbox, timers;
    bool asleep, open; /* open: it has a thread */
    int tid;
};

struct scope_seen {
    uint64_t at, parent, deadline;
    uint32_t children, members;
    bool nursery, cancelled, shown;
    char name[NAME_MAX_SEEN];
};

struct blocked_seen {
    unsigned reason;
    uint64_t object, since;
    int tid;
};

struct counts {
    uint64_t switches, spawned, ended, parks[REASONS_SEEN], wakes_local, wakes_remote, timers_fired, steals, shared,
        sleeps;
};

extern struct layout layout;

/* Finds the library's table, and fails with a message that says why. */
void runtime_find(void);

/* The target's time: for a process, now; for a core file or a simulation, when a worker last read the clock. */
uint64_t runtime_now(void);
/* Whether that is the time. */
bool runtime_now_is_exact(void);

/* All workers that ever had a thread, those of islands too: from that number on the next one; WORKERS_SEEN: there is
 * none. */
unsigned runtime_from(unsigned index);
#define for_workers(i) for (unsigned i = runtime_from(0); i < WORKERS_SEEN; i = runtime_from(i + 1))
/* The name of the island of which it is the worker; "": it is none. At most NAME_MAX_SEEN bytes. */
void runtime_island(int worker, char *name);
unsigned runtime_open(void); /* workers that have a thread, without islands */
uint64_t runtime_worker_at(unsigned index);
struct worker_seen runtime_worker(unsigned index);
uint64_t runtime_global_queue(void);
struct counts runtime_counts(unsigned worker);
uint64_t runtime_foreign_spawned(void);
/* How many fibers have been started and have not ended. */
uint64_t runtime_active(void);

/* ---- fibers.c ---- */

/* The stack with these frames. */
const struct stack_seen *stack_with(const void *const *frame, unsigned frames, struct doubt doubt);

/* All live fibers, by slot. frames: with their stacks. */
struct fiber_seen *runtime_fibers(size_t *count, bool frames);
/* Reads one of them again. False: it has ended. */
bool runtime_look(struct fiber_seen *fiber, bool frames);
/* How many records could not be read then. */
uint64_t runtime_unread(void);
void runtime_free(struct fiber_seen *fibers, size_t count);

/* ---- */

struct scope_seen runtime_scope(uint64_t at, bool *found);

/* OS threads that wait in the library; at most `max`. */
unsigned runtime_blocked(struct blocked_seen *seen, unsigned max);

#endif
