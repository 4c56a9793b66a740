/* recorder.h - the recorder: the latest events of each worker, in its own ring.
 *
 * Off, it costs one load at each switch, wake and spawn. On, an event is one record of 16 bytes, or several in a row,
 * written by the worker without a lock. That happens on the fast paths (sched/record.h). Where a time takes more than
 * an instruction, wakes and spawns take their slow paths (sched/trace_route.c). Threads that are not workers share the
 * last ring, under a lock.
 *
 *   head   63 .................. 16 15 ...... 6 5 .. 0      body
 *          when                     argument    kind
 *
 *   RUN        what the one that ran did: YIELD, END, 0     slot: the fiber gets the CPU
 *   PARK       reason                                       object | number of the stack << 48; of the one that runs
 *   SWITCH     reason                                       object << 16 | slot: PARK, then RUN, without a stack
 *   YIELD, END -                                            -, of the one that runs
 *   WAKE       enum wake_reason                             slot
 *   SPAWN      -                                            slot | generation << 32
 *   SPAWN_AT   in place of the time: the call               function
 *   SPAWN_IN   -                                            the scope; if it is in one
 *   SCOPE      -                                            the nursery; SPAWN_IN with the scope around it, and its
 *                                                           name as text follow
 *   SCOPE_END  -                                            the nursery
 *   REGION     -                                            address of its name, which lasts
 *   REGION_END -                                            -
 *   NOTE       -                                            -; text follows
 *   EVENT      number in events.def                         -; text follows
 *   TEXT       bytes in here; in place of the time: 6 bytes the next 8 bytes
 *
 * When: at level 0 the worker's turn, else the CPU's counter of cycles or, where that is no clock, nanoseconds; the
 * lower 48 bits. In a simulation: its time, or one more than the last record's. A name of a fiber is TEXT behind its
 * SPAWN.
 *
 * RECORDER-1  A ring has one writer at a time. It stores the record, then the number of records, each with a release: a
 *             reader that has read a word of record n finds that there are at least n. A reader copies, then loads the
 *             number again, and drops what may have been overwritten meanwhile: no record that it keeps is torn.
 * RECORDER-2  Rings stay allocated until the process ends: a worker may write to one after the recorder was stopped, or
 *             after a start with more records has replaced it.
 */
#ifndef CC_TRACE_RECORDER_H
#define CC_TRACE_RECORDER_H

#include "sync/atomic.h"

#include <ccc/cc_island.h>
#include <ccc/cc_sched.h>

enum record_kind {
#define RECORD(id, name) REC_##id,
#include "trace/events.def"
    RECORD_KINDS,
};

/* The numbers of the events, for REC_EVENT. */
enum event_number {
#define EVENT(id, category, name, text, parameters, arguments) EVENT_##id,
#define EVENT_OF EVENT
#include "trace/events.def"
    EVENTS,
};

enum { RECORD_ARG_SHIFT = 6, RECORD_TIME_SHIFT = 16, RECORD_OBJECT_BITS = 48, RECORD_TEXT = 14 };
#define RECORD_TIME_MASK ((UINT64_C(1) << (64 - RECORD_TIME_SHIFT)) - 1)

_Static_assert(RECORD_KINDS <= 1 << RECORD_ARG_SHIFT && EVENTS <= 1 << (RECORD_TIME_SHIFT - RECORD_ARG_SHIFT),
               "kind and argument have their fields");

/* SWITCH is for the first slots; a fiber with a higher slot is recorded as PARK and RUN. The slots of the first
 * RECORD_NEAR fibers follow from their addresses: their number is in a cache line that a switch does not touch. */
enum { RECORD_SLOT_BITS = 16, RECORD_NEAR = 8192 };

CC_INLINE uint64_t cc__record_switch_body(uintptr_t object, uint32_t slot) {
    return (uint64_t)object << RECORD_SLOT_BITS | slot;
}
CC_INLINE uint32_t cc__record_switch_slot(uint64_t body) {
    return (uint16_t)body;
}
CC_INLINE uint64_t cc__record_switch_object(uint64_t body) {
    return body >> RECORD_SLOT_BITS;
}

struct record {
    _Atomic uint64_t head, body;
};

struct record_ring {
    _Alignas(CC_LINE) _Atomic uint64_t next; /* how many records were ever written */
    uint64_t size;                           /* a power of two */
    _Atomic uint64_t begin;                  /* earlier records belong to an earlier recording */
    _Atomic uint32_t turns; /* level 0, times are turns: of how many slots switches are recorded inline; else: 0 */
    uint32_t mask;          /* (size - 1) * sizeof(struct record) */
    uintptr_t first;        /* the record of the fiber with slot 0; those of RECORD_NEAR slots are behind it. Constant
                               while a runtime runs */
    struct record_ring *replaced; /* the smaller one that was here before; NULL: none */
    _Atomic uint64_t island[2];   /* the name of the island whose worker it is attached to, as bytes; 0: of none */
    _Alignas(CC_LINE) struct record at[];
};

_Static_assert(offsetof(struct record_ring, at) == CC_LINE, "a record touches one line of its ring's head");

enum {
    RECORDER_OTHERS = CC_WORKERS_MAX + CC_ISLANDS_MAX,
    RECORDER_RINGS = RECORDER_OTHERS + 1,
    RECORDER_LEVELS = 3,
};

extern struct recorder {
    _Atomic uint32_t level;    /* 0: off; else the level plus one */
    _Atomic uint32_t recorded; /* the same for the recording that the rings hold */
    _Atomic uint32_t cycles;   /* times are CPU cycles */
    _Atomic uint64_t last;     /* in a simulation: its newest time; all times differ */
    _Atomic uint64_t since_cycles, since_ns;
    _Atomic uint64_t until_ns; /* when it was stopped; 0: it is on */
    uint64_t size;             /* of a ring, in records, at least; only grows. Written under the lock of starts */
    /* By worker, including those of islands; the last one is for all other threads. */
    struct record_ring *_Atomic ring[RECORDER_RINGS];
} cc__recorder;

CC_INLINE unsigned cc__record_kind(uint64_t head) {
    return (unsigned)(head & ((1u << RECORD_ARG_SHIFT) - 1));
}
CC_INLINE unsigned cc__record_arg(uint64_t head) {
    return (unsigned)(head >> RECORD_ARG_SHIFT) & ((1u << (RECORD_TIME_SHIFT - RECORD_ARG_SHIFT)) - 1);
}

/* Whether events are recorded; a hint while that changes. */
CC_INLINE bool cc__recorder_on(void) {
    return cc__get(&cc__recorder.level) != 0;
}
/* 0 to 2; meaningful while it is on. */
CC_INLINE unsigned cc__recorder_level(void) {
    uint32_t level = cc__get(&cc__recorder.level);
    return level != 0 ? level - 1 : 0;
}

CC_INLINE bool cc__ring_has_turns(struct record_ring *r) {
    return cc__get(&r->turns) != 0;
}

/* One record, by the ring's writer. */
CC_INLINE void cc__record_write(struct record_ring *r, uint64_t head, uint64_t body) { /* RECORDER-1 */
    uint64_t n = cc__get(&r->next);
    struct record *at = (struct record *)((char *)r->at + ((uint32_t)n * (uint32_t)sizeof(struct record) & r->mask));
    cc__set_release(&at->head, head);
    cc__set_release(&at->body, body);
    cc__set_release(&r->next, n + 1);
}

/* The same from the parts of its head. */
CC_INLINE void cc__record_at(struct record_ring *r, uint64_t when, enum record_kind kind, unsigned arg, uint64_t body) {
    cc__record_write(r, when << RECORD_TIME_SHIFT | (uint64_t)arg << RECORD_ARG_SHIFT | (uint64_t)kind, body);
}

/* A thread that is not a worker has no turns: its records have the time in ns at level 0. */
#define RECORD_NO_TURN UINT64_MAX

/* The current time. turn: the worker's, or RECORD_NO_TURN. */
uint64_t cc__record_time(uint64_t turn);
/* One record with the current time. */
void cc__record(struct record_ring *r, uint64_t turn, enum record_kind kind, unsigned arg, uint64_t body);
/* Records of text, behind another one; at most 255 bytes. */
void cc__record_text(struct record_ring *r, const char *text);

/* Writes a record for the calling thread, which may be any, followed by text unless that is NULL. Implemented in
 * sched/, which knows whether it is a worker. Does nothing if the recorder is off. */
CC_COLD void cc__record_here(enum record_kind kind, unsigned arg, uint64_t body, const char *text);

/* The same for a wake. */
struct fiber;
CC_COLD void cc__record_wake(const struct fiber *f, unsigned by);

/* The same for a fiber that is about to start: SPAWN and what follows it. */
CC_COLD void cc__record_spawn(uint32_t slot, uint32_t generation, const void *site, const void *fn, const void *scope,
                              const char *name);

/* A nursery begins, inside `parent` or NULL: SCOPE and what follows it. */
CC_COLD void cc__record_scope(const void *scope, const void *parent, const char *name);

/* The ring of the threads that are not workers: NULL, or owned by the caller until the release. */
struct record_ring *cc__recorder_take_others(void);
void cc__recorder_release_others(void);

/* A record that was copied. */
struct record_copy {
    uint64_t head, body;
};

/* The newest records of a ring, at most `max`, oldest first. Returns how many. *lost: how many more there were, which
 * were overwritten or left out. Any thread. */
uint64_t cc__record_copy(struct record_ring *r, struct record_copy *to, uint64_t max, uint64_t *lost);

/* Starts recording: rings for `workers` workers, of at least `size` records, a power of two. ENOMEM; EALREADY. Code
 * that starts a runtime or adds workers attaches the rings to them. */
int cc__recorder_start(unsigned level, unsigned workers, uint64_t size);
/* A runtime with that many workers starts while it is on: the recording starts over. ENOMEM. */
int cc__recorder_restart(unsigned workers);
bool cc__recorder_stop(void);
/* The ring of a worker, created if there is none; NULL: the recorder is off, or there is no memory. */
struct record_ring *cc__recorder_ring(unsigned worker);
/* Sets the name of the island that the worker belongs to; "": it belongs to the pool. */
enum { RECORD_ISLAND_NAME = 16 };
void cc__record_ring_name(struct record_ring *r, const char *island);
void cc__record_ring_named(struct record_ring *r, char island[RECORD_ISLAND_NAME]);
/* In a forked child: resets the locks, whose holders no longer exist. */
void cc__recorder_forget(void);

/* ---- stacks, at level 2 ---- */

enum { RECORD_FRAMES = 16, RECORD_STACKS = 4096 };

/* The number of a stack, from 1; 0: the table is full. */
unsigned cc__record_stack(const void *const *frames, unsigned count);
/* Copies its frames; returns how many. */
unsigned cc__record_stack_frames(unsigned number, const void **frames);

#endif
