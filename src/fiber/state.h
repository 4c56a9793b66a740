/* state.h - the one word that says what a fiber is doing, and one function per edge.
 *
 * Owns:    struct fiber's `word`. Nothing else writes it.
 *
 *    63 ........................ 20 19 ........ 10 9 ..... 5  4     3     2 .. 0
 *    ticket                         owner          reason     fresh latch state
 *
 *   state   IDLE      in a pool
 *           RUNNABLE  in exactly one run queue; owner: the worker whose private queue it is, 0: a shared place
 *           RUNNING   on the CPU of worker `owner`
 *           PARKING   has opened a wait that others can already see; its stack is live
 *           PARKED    on a wait list or a timer only; owner: the worker that it last ran on
 *           DONE      ended; its stack is released, its outcome is readable
 *   latch   PARKING only: a wake came first
 *   fresh   RUNNABLE only: it has never run, has no stack
 *   reason  why it parked; after a wake: what woke it; after a yield: whether its turn was long; before the first run:
 *           how its argument is passed
 *   ticket  grows with every wait of this record, over all fibers that use it; never reused within 2^44 waits
 *
 *   timed spawn: IDLE -> PARKED, a fiber that a timer will start. end: RUNNING -> IDLE, one that its only joiner has
 *   run. resume: PARKED -> RUNNING, a joiner that has run its task.
 *
 *                 spawn           run              exit          recycle
 *           IDLE -------> RUNNABLE ----> RUNNING --------> DONE ----------> IDLE
 *                          ^  ^  ^         | | |
 *                          |  |  +-yield---+ | +--open--> PARKING --commit--> PARKED
 *                          |  |              |             | |  (or abort: back to RUNNING)
 *                          |  +--------------|---latched---+ |
 *                          +----- wake ------|---------------+- PARKED <-- park -- RUNNING
 *
 * STATE-1  A word that another thread may change at this moment (PARKING, PARKED while contested) is changed by
 *          compare-and-swap only, ticket included: a stale claim cannot match.
 * STATE-2  Every other edge has one possible writer, which holds the fiber; it is a plain store. The "from" state is
 *          checked in the word that is loaded anyway for the ticket.
 * STATE-3  Only the thread that writes RUNNABLE enqueues the fiber.
 * STATE-4  RUNNABLE, PARKED and DONE are written from a stack that is not the fiber's own.
 *
 * Ordering. The edges that give a reason to run (spawn, wake) release; the fiber itself acquires, when it first runs or
 * when its wait returns. Edges that a worker makes on a fiber's behalf (run, yield) are relaxed: every later reader is
 * ordered after them by the queue, the object's lock or the timer's lock.
 */
#ifndef CC_FIBER_STATE_H
#define CC_FIBER_STATE_H

#include "base/probe.h"
#include "fiber/fiber.h"

enum fiber_state { FIBER_IDLE, FIBER_RUNNABLE, FIBER_RUNNING, FIBER_PARKING, FIBER_PARKED, FIBER_DONE };

/* Why a fiber is parked; then, what ended the wait. Both use the same field. */
enum park_reason {
#define REASON(id, name, object) PARK_##id,
#include "fiber/reasons.def"
    PARK_REASONS, /* how many there are */
};
enum wake_reason { WAKE_OBJECT = 28, WAKE_TIMER, WAKE_CANCEL }; /* the values below are free for park reasons */

/* Until its next wait: it has yielded because its turn was long. */
enum { YIELDED_LONG = 31 };

_Static_assert((int)PARK_REASONS <= (int)WAKE_OBJECT && (int)WAKE_CANCEL < (int)YIELDED_LONG,
               "all live in one field of five bits");

#define WORD_STATE UINT64_C(7)
#define WORD_LATCH UINT64_C(8)
#define WORD_FRESH UINT64_C(16)
#define WORD_REASON_SHIFT 5
#define WORD_REASON (UINT64_C(31) << WORD_REASON_SHIFT)
#define WORD_OWNER_SHIFT 10
#define WORD_OWNER (UINT64_C(1023) << WORD_OWNER_SHIFT)
#define WORD_TICKET_ONE (UINT64_C(1) << 20)
#define WORD_TICKET (~(WORD_TICKET_ONE - 1))

_Static_assert(CC_WORKERS_MAX < 1023, "an owner has ten bits");

CC_INLINE enum fiber_state cc__word_state(uint64_t word) {
    return (enum fiber_state)(word & WORD_STATE);
}
CC_INLINE unsigned cc__word_reason(uint64_t word) {
    return (unsigned)((word & WORD_REASON) >> WORD_REASON_SHIFT);
}
/* The worker's number plus one; 0: none. */
CC_INLINE unsigned cc__word_owner(uint64_t word) {
    return (unsigned)((word & WORD_OWNER) >> WORD_OWNER_SHIFT);
}
CC_INLINE uint64_t cc__word_make(uint64_t ticket, unsigned owner, unsigned reason, uint64_t rest) {
    return (ticket & WORD_TICKET) | ((uint64_t)owner << WORD_OWNER_SHIFT) | ((uint64_t)reason << WORD_REASON_SHIFT) |
           rest;
}

const char *cc__state_name(enum fiber_state state);
/* "" for 0 and for invalid reasons. */
const char *cc__park_name(unsigned reason);
const char *cc__wake_name(unsigned reason);

/* The kind of object that a wait is for. From OBJECT_TASK on it is known what could end it: if nothing can, the fiber
 * waits forever (inspect/unreachable.c). */
enum wait_object {
    OBJECT_OTHER,
    OBJECT_TIME,
    OBJECT_PROCESS,
    OBJECT_RWLOCK,
    OBJECT_ONCE,
    OBJECT_CALL,
    OBJECT_FILE, /* a struct uring_wait */
    OBJECT_FD,   /* descriptors: the struct arms of the wait */
    OBJECT_TASK,
    OBJECT_CHANNEL,
    OBJECT_ARMS,
    OBJECT_MUTEX,
    OBJECT_NURSERY,
};
enum wait_object cc__park_object(unsigned reason);

/* The object of a sleep without a deadline (OBJECT_TIME), for reports: only a cancellation ends it. */
#define SLEEP_FOREVER ((const void *)1)

CC_NORETURN CC_COLD void cc__state_illegal(const struct fiber *f, uint64_t word, const char *edge);

#define state_from(f, word, from, edge)                                                 \
    do {                                                                                \
        if (unlikely(cc__word_state(word) != (from))) cc__state_illegal(f, word, edge); \
    } while (0)

/* IDLE stays: the caller owns the record, and acquires what its last fiber did with it. Pairs with
 * cc__state_recycle. */
CC_INLINE void cc__state_take(struct fiber *f) {
    uint64_t word = cc__get_acquire(&f->word);
    state_from(f, word, FIBER_IDLE, "take");
}

/* IDLE -> RUNNABLE, by the spawner. The fiber's first look at its word acquires what the spawner wrote. */
CC_INLINE void cc__state_spawn(struct fiber *f, unsigned owner, enum fiber_args args) {
    uint64_t word = cc__get(&f->word);
    state_from(f, word, FIBER_IDLE, "spawn");
    cc__set_release(&f->word, cc__word_make(word, owner, args, FIBER_RUNNABLE | WORD_FRESH));
}

/* IDLE -> PARKED: the claim that ends this wait starts it. Returns the ticket. By the spawner. */
CC_INLINE uint64_t cc__state_timed_spawn(struct fiber *f, unsigned owner) {
    uint64_t word = cc__get(&f->word);
    state_from(f, word, FIBER_IDLE, "timed spawn");
    word = cc__word_make(word + WORD_TICKET_ONE, owner, PARK_SLEEP, FIBER_PARKED);
    cc__set_release(&f->word, word); /* pairs with the claim */
    return word & WORD_TICKET;
}

/* How a fiber that has not run yet gets its argument; also valid right after its first run began. */
CC_INLINE enum fiber_args cc__state_args(struct fiber *f) {
    unsigned reason = cc__word_reason(cc__get(&f->word));
    return reason <= ARGS_BLOCK ? (enum fiber_args)reason : ARGS_POINTER; /* a timed spawn */
}

/* RUNNABLE stays RUNNABLE, in another queue. By the holder of the fiber. */
CC_INLINE void cc__state_move(struct fiber *f, unsigned owner) {
    uint64_t word = cc__get(&f->word);
    state_from(f, word, FIBER_RUNNABLE, "move");
    cc__set(&f->word, (word & ~WORD_OWNER) | ((uint64_t)owner << WORD_OWNER_SHIFT));
}

/* RUNNABLE -> RUNNING, by the worker that took it from a queue. The reason stays: the fiber reads it. */
CC_INLINE void cc__state_run(struct fiber *f, unsigned owner) {
    uint64_t word = cc__get(&f->word);
    state_from(f, word, FIBER_RUNNABLE, "run");
    cc__set(&f->word, cc__word_make(word, owner, cc__word_reason(word), FIBER_RUNNING));
}

/* The same for a fresh fiber from the caller's own queue (RUNQ-2); word: as read there. */
CC_INLINE void cc__state_run_fresh(struct fiber *f, uint64_t word) {
    cc__set(&f->word, word - (FIBER_RUNNABLE | WORD_FRESH) + FIBER_RUNNING);
}

/* RUNNING -> RUNNABLE, after the switch away from it. */
CC_INLINE void cc__state_yield(struct fiber *f, unsigned owner) {
    uint64_t word = cc__get(&f->word);
    state_from(f, word, FIBER_RUNNING, "yield");
    cc__set(&f->word, cc__word_make(word, owner, 0, FIBER_RUNNABLE));
}

/* The same after a long turn. Returns whether it has yielded so before, and not waited since. */
CC_INLINE bool cc__state_yield_long(struct fiber *f, unsigned owner) {
    uint64_t word = cc__get(&f->word);
    state_from(f, word, FIBER_RUNNING, "yield");
    cc__set(&f->word, cc__word_make(word, owner, YIELDED_LONG, FIBER_RUNNABLE));
    return cc__word_reason(word) == YIELDED_LONG;
}

/* Begins a wait: RUNNING stays, the ticket is new. By the fiber. */
CC_INLINE uint64_t cc__state_ticket(struct fiber *f) {
    uint64_t word = cc__get(&f->word);
    state_from(f, word, FIBER_RUNNING, "ticket");
    word += WORD_TICKET_ONE;
    cc__set(&f->word, word);
    return word & WORD_TICKET;
}

/* RUNNING -> PARKED, after the switch, before the wait becomes visible (the object's lock or the timer's
 * publishes it). */
CC_INLINE void cc__state_park(struct fiber *f, enum park_reason reason) {
    uint64_t word = cc__get(&f->word);
    state_from(f, word, FIBER_RUNNING, "park");
    /* Releases the quiet stack to a canceller, which takes no lock. */
    cc__set_release_hidden(&f->word, cc__word_make(word, cc__word_owner(word), reason, FIBER_PARKED));
}

/* The ticket of the wait that cc__state_park_next will begin. By the fiber. */
CC_INLINE uint64_t cc__state_next_ticket(struct fiber *f) {
    return (cc__get(&f->word) & WORD_TICKET) + WORD_TICKET_ONE;
}

/* RUNNING -> PARKED with the next ticket, after the switch; otherwise as cc__state_park. */
CC_INLINE void cc__state_park_next(struct fiber *f, enum park_reason reason) {
    uint64_t word = cc__get(&f->word);
    state_from(f, word, FIBER_RUNNING, "park");
    cc__set_release_hidden(&f->word, cc__word_make(word + WORD_TICKET_ONE, cc__word_owner(word), reason, FIBER_PARKED));
}

/* RUNNING -> PARKED with the next ticket, for a joiner that runs its task, by that task on its own stack. Returns the
 * word. */
CC_INLINE uint64_t cc__state_park_join(struct fiber *f) {
    uint64_t word = cc__get(&f->word);
    state_from(f, word, FIBER_RUNNING, "park");
    word = cc__word_make(word + WORD_TICKET_ONE, cc__word_owner(word), PARK_JOIN, FIBER_PARKED);
    cc__set_release_hidden(&f->word, word); /* as in cc__state_park; from here on it may be claimed */
    return word;
}

/* PARKED -> RUNNABLE by the only claimant at this moment: the object's lock, or the biased lock, orders it. False: the
 * fiber was cancelled, and has not yet unlinked itself from the object. */
CC_INLINE bool cc__state_wake_sole(struct fiber *f, enum wake_reason reason) {
    uint64_t word = cc__get(&f->word);
    if (unlikely(cc__word_state(word) != FIBER_PARKED)) return false;
    /* Pairs with the acquire in the wait that returns. */
    cc__set_release(&f->word, cc__word_make(word, cc__word_owner(word), reason, FIBER_RUNNABLE));
    cc__probe2(wake, f, reason);
    return true;
}

/* PARKED -> RUNNING, for a joiner that runs its task, by that task at its end, on the same worker; parked: what
 * cc__state_park_join returned. False: another claim has won, and the word may have any value by now. Unless
 * `contested` there is no other claimant at this moment, as for cc__state_wake_sole. */
CC_INLINE bool cc__state_resume(struct fiber *f, uint64_t parked, unsigned owner, bool contested) {
    uint64_t running = cc__word_make(parked, owner, 0, FIBER_RUNNING);
    if (unlikely(contested)) return cc__cas(&f->word, &parked, running);
    if (unlikely(cc__get(&f->word) != parked)) return false;
    cc__set(&f->word, running);
    return true;
}

/* RUNNING -> PARKING: the wait is about to become visible while the stack is live. Returns the ticket. By the fiber. */
CC_INLINE uint64_t cc__state_open(struct fiber *f, enum park_reason reason) {
    uint64_t word = cc__get(&f->word);
    state_from(f, word, FIBER_RUNNING, "open");
    uint64_t ticket = (word + WORD_TICKET_ONE) & WORD_TICKET;
    /* Released by whatever publishes the waiter. */
    cc__set(&f->word, cc__word_make(ticket, cc__word_owner(word), reason, FIBER_PARKING));
    return ticket;
}

/* PARKING -> RUNNING: calls the wait off. By the fiber. Returns the reason of a wake that came first, or 0. */
unsigned cc__state_abort(struct fiber *f);

/* PARKING -> PARKED, after the switch; or, when a wake came first, PARKING -> RUNNABLE: then true, and the
 * caller enqueues. */
bool cc__state_commit(struct fiber *f);

enum claim { CLAIM_LOST, CLAIM_LATCHED, CLAIM_WON };

/* PARKED -> RUNNABLE by one of several claimants, or the latch on PARKING. WON: the caller enqueues the fiber.
 * LATCHED: the thread that commits the park does. LOST: another claim has won, or the ticket is stale. Any thread. */
enum claim cc__state_claim(struct fiber *f, uint64_t ticket, enum wake_reason reason);

/* RUNNING -> DONE, after the switch away from it, by the thread that completes it; RUNNABLE -> DONE if no stack could
 * be allocated. */
CC_INLINE void cc__state_done(struct fiber *f) {
    uint64_t word = cc__get(&f->word);
    if (unlikely(cc__word_state(word) != FIBER_RUNNING)) state_from(f, word, FIBER_RUNNABLE, "exit");
    cc__set(&f->word, cc__word_make(word, 0, 0, FIBER_DONE));
}

/* RUNNING -> IDLE, for a task that its only joiner has run, by that joiner: exit and recycle in one. */
CC_INLINE void cc__state_end(struct fiber *f) {
    uint64_t word = cc__get(&f->word);
    state_from(f, word, FIBER_RUNNING, "end");
    cc__set_release(&f->word, cc__word_make(word, 0, 0, FIBER_IDLE)); /* pairs with cc__state_take */
}

/* DONE -> IDLE, by the thread that consumed the last handle. */
CC_INLINE void cc__state_recycle(struct fiber *f) {
    uint64_t word = cc__get(&f->word);
    state_from(f, word, FIBER_DONE, "recycle");
    cc__set_release(&f->word, cc__word_make(word, 0, 0, FIBER_IDLE)); /* pairs with cc__state_take */
}

#endif
