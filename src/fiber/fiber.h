/* fiber.h - the fiber record: what a fiber is when it is not running.
 *
 * Two cache lines. A spawn touches nothing else: the stack comes with the first run and goes with the last. The
 * first line is all that a switch touches; the second is for the start and the end. Until the first run the
 * place of the saved context holds the arguments; after the end it holds the result.
 *
 * Who may touch what: `word` through state.h only. `link` and `stack` belong to whoever holds the fiber: the
 * queue that it is on, or the worker that runs it; while it is parked `link` is a note of what it waits for. `join` and
 * what follows it is guarded by `join_lock`, once the fiber is published.
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

/* How the argument travels; in the reason field of the state word until the first run. */
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

/* In `scope`: the fiber was cancelled, and perhaps shields itself; wait/cancel.h has these bits one by one. */
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
    _Atomic uint32_t handles;  /* how many may still join or detach; changed under join_lock */
    struct wait_queue joiners; /* of arm.link: parked in join; join_lock */
    union {
        struct fiber *_Atomic free_next; /* in a pool; apart from `link`, which queues use */
        _Atomic uintptr_t scope;         /* while it lives: the innermost scope that it is in, and CANCEL_ bits */
    };
    uint32_t slot;               /* constant: the record's number */
    _Atomic uint32_t generation; /* grows with every tenant; join_lock */
};

_Static_assert(sizeof(struct fiber) == 2 * CC_LINE, "a spawn touches 128 bytes");
_Static_assert(offsetof(struct fiber, context) + sizeof(struct context) == CC_LINE, "a switch touches one line");

CC_INLINE struct fiber *cc__fiber_of(struct link *link) {
    return container_of(link, struct fiber, link);
}

/* ---- what a parked fiber waits for ----
 *
 * Written by the fiber when it parks, into the links that no queue uses then. For whoever looks from outside: valid
 * if the state word, ticket included, is the same before and after the look. */

CC_INLINE void cc__fiber_note_object(struct fiber *f, const void *object) {
    cc__set(&f->link.next, (struct link *)(uintptr_t)object);
}
CC_INLINE void cc__fiber_note_turn(struct fiber *f, uint64_t turn) {
    cc__set(&f->link.prev, (struct link *)(uintptr_t)turn);
}
CC_INLINE uintptr_t cc__fiber_object(struct fiber *f) {
    return (uintptr_t)cc__get(&f->link.next);
}
/* In which turn of its worker it parked; the worker's turn log gives the time (sched/turn_log.h). */
CC_INLINE uint64_t cc__fiber_turn(struct fiber *f) {
    return (uint64_t)(uintptr_t)cc__get(&f->link.prev);
}

struct fiber_extra;

/* What a fiber has only while it owns a stack; at the top of that stack. The first line is written at the start, the
 * second by fibers that are in a scope. */
struct fiber_cold {
    char name[CC_FIBER_NAME_MAX];
    struct fiber_block *block;            /* ARGS_BLOCK */
    struct fiber_extra *extra;            /* its local values (task/local.c); NULL until it has some */
    CCDefer *deferred;                    /* newest first; the last one is the fiber's own boundary (defer.h) */
    void *base;                           /* the scope that it was started in; NULL: none */
    _Alignas(CC_LINE) struct link member; /* in its innermost scope's list */
    struct fiber *fiber;                  /* for a scope that finds this */
    CCFiberId reader;                     /* whose `reads` it is */
    uint64_t reads;                       /* the read locks that it holds (lock/holder.h) */
};

_Static_assert(sizeof(struct fiber_cold) == 2 * CC_LINE, "two lines at the top of the stack");

#endif
