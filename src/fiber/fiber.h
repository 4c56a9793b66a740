/* fiber.h - the fiber record: what a fiber is when it is not running.
 *
 * Two cache lines. A spawn touches nothing else: the stack is assigned at the first run and released at the end. A
 * switch touches only the first line; the second is for the start and the end. Until the first run the saved context
 * holds the arguments instead; after the end it holds the result.
 *
 * Access: `word` only through state.h. `link` and `stack` belong to the holder of the fiber: the queue that it is on,
 * or the worker that runs it; while it is parked, `link` records what it waits for. `join_lock` guards `join` and the
 * members after it, once the fiber is published.
 */
#ifndef CC_FIBER_FIBER_H
#define CC_FIBER_FIBER_H

#include "fiber/defer.h"
#include "sync/atomic.h"
#include "sync/list.h"
#include "sync/lock.h"

#include <ccc/cc_sched.h>

struct stack;

enum { FIBER_INLINE_ARGS = 48 };

/* How the argument is passed; in the reason field of the state word until the first run. */
enum fiber_args {
    ARGS_POINTER, /* the user's pointer, in args */
    ARGS_INLINE,  /* a copy, in args */
    ARGS_BLOCK,   /* a struct fiber_block, in args: what does not fit into the record */
};

/* Spawn options and large arguments, allocated; freed when the fiber ends. */
struct fiber_block {
    char name[CC_FIBER_NAME_MAX];
    size_t stack_size; /* 0: default */
    size_t args_size;
    CCTaskFn fn;
    void *pointer; /* args_size == 0: the user's pointer */
    _Alignas(max_align_t) unsigned char args[];
};

/* In `scope`: the fiber was cancelled; a shield may hide that. wait/cancel.h has the single bits. */
#define FIBER_CANCELLED ((uintptr_t)3)
#define FIBER_SCOPE_BITS ((uintptr_t)63) /* all bits beside the address */

struct fiber {
    _Atomic uint64_t word; /* state.h */
    struct link link;      /* run queue or inbox */
    struct stack *_Atomic stack;
    union {
        struct context context;                /* while parked or runnable, after the first run */
        unsigned char args[FIBER_INLINE_ARGS]; /* before the first run */
        struct {
            void *result; /* after the end */
            int status;
        } outcome;
    };
    const void *site; /* where it was started: a return address */
    CCTaskFn fn;
    struct lock join_lock;
    _Atomic uint32_t handles;  /* handles that are not yet joined or detached; changed under join_lock */
    struct wait_queue joiners; /* of arm.link: parked in join; join_lock */
    union {
        struct fiber *_Atomic free_next; /* in a pool; separate from `link`, which queues use */
        _Atomic uintptr_t scope;         /* until it ends: its innermost scope, and CANCEL_ bits */
    };
    uint32_t slot;               /* constant: the record's number */
    _Atomic uint32_t generation; /* incremented for every task that uses the record; join_lock */
};

_Static_assert(sizeof(struct fiber) == 2 * CC_LINE, "a spawn touches 128 bytes");
_Static_assert(offsetof(struct fiber, context) + sizeof(struct context) == CC_LINE, "a switch touches one line");

CC_INLINE struct fiber *cc__fiber_of(struct link *link) {
    return container_of(link, struct fiber, link);
}

/* ---- what a parked fiber waits for ----
 *
 * Written by the fiber when it parks, into the links, which no queue uses then. An observer may use it if the state
 * word, ticket included, is the same before and after the read. */

CC_INLINE void cc__fiber_note_object(struct fiber *f, const void *object) {
    cc__set(&f->link.next, (struct link *)(uintptr_t)object);
}
CC_INLINE void cc__fiber_note_turn(struct fiber *f, uint64_t turn) {
    cc__set(&f->link.prev, (struct link *)(uintptr_t)turn);
}
CC_INLINE uintptr_t cc__fiber_object(struct fiber *f) {
    return (uintptr_t)cc__get(&f->link.next);
}
/* The turn of its worker in which it parked; the worker's turn log gives the time (sched/turn_log.h). */
CC_INLINE uint64_t cc__fiber_turn(struct fiber *f) {
    return (uint64_t)(uintptr_t)cc__get(&f->link.prev);
}

struct fiber_extra;

/* State of a fiber that has a stack; at the top of that stack. The first line is written at the start, the second by
 * fibers that need it. */
struct fiber_cold {
    char name[CC_FIBER_NAME_MAX];
    struct fiber_block *block;            /* ARGS_BLOCK */
    struct fiber_extra *extra;            /* its local values (task/local.c); NULL until the first */
    CCDefer *deferred;                    /* newest first; the last one is the fiber's own boundary (defer.h) */
    void *base;                           /* the scope that it was started in; NULL: none */
    _Alignas(CC_LINE) struct link member; /* in its innermost scope's list */
    struct fiber *fiber;                  /* for a scope that finds this on its list */
    CCFiberId reader;                     /* the owner of `reads` */
    uint64_t reads;                       /* the read locks that it holds (lock/holder.h) */
    CCDefer *mark;                        /* the newest mark on `deferred`; NULL: only its own boundary (DEFER-3) */
};

_Static_assert(sizeof(struct fiber_cold) == 2 * CC_LINE, "two lines at the top of the stack");

#endif
