/* wait.c - waits on objects that are guarded by a lock, sleeps, and the wakes that end them. */
#include "wait/biased.h"
#include "wait/blocked.h"
#include "wait/cancel.h"

#include "sched/wake.h"
#include "sim/sim.h"

#include <errno.h>

int cc__waiter_init(struct waiter *waiter, struct worker *w, uint64_t deadline) {
    struct fiber *self = cc__sched_current(w);
    waiter->fiber = self;
    waiter->deadline = deadline;
    waiter->ticket = 0;
    cc__set(&waiter->sole, deadline == WAIT_FOREVER && self != NULL);
    cc__set(&waiter->word, 0);
    if (self == NULL) return 0;
    if (deadline != WAIT_FOREVER && !cc__timer_prepare(w)) return ENOMEM;
    waiter->ticket = cc__state_ticket(self);
    return 0;
}

/* What the after-switch action needs; on the stack of the parking fiber, read before it can be woken. */
struct parking {
    struct fiber *fiber;
    struct lock *lock;   /* or NULL */
    struct lock **locks; /* `count` of them */
    uint32_t count;
    enum park_reason reason;
    uint64_t deadline;
    uint64_t ticket;
};

/* The end of an after-switch action when the fiber may be cancelled; lock may be NULL. Out of line, so that the common
 * case needs no frame. */
static CC_COLD CC_NOINLINE void finish_slow(struct fiber *f, uint64_t ticket, struct lock *lock) {
    bool cancelled = cc__upcall_cancelled(f, ticket);
    if (lock != NULL) cc__lock_release_hidden(lock);
    if (cancelled) cc__sched_ready(f);
}

/* PARKED, then the timer, then the locks: a waker that finds the waiter finds it parked. */
static void after_wait(struct worker *w, void *arg) {
    struct parking p;
    cc__san_copy(&p, arg, sizeof p);
    cc__state_park(p.fiber, p.reason);
    if (p.deadline != WAIT_FOREVER) cc__timer_arm(w, p.deadline, p.fiber, p.ticket);
    if (cc__cancel_looks())
        finish_slow(p.fiber, p.ticket, p.lock);
    else if (p.lock != NULL)
        cc__lock_release_hidden(p.lock);
}

static void after_wait_all(struct worker *w, void *arg) {
    struct parking p;
    struct lock *locks[16];
    cc__san_copy(&p, arg, sizeof p);
    cc__state_park(p.fiber, p.reason);
    if (p.deadline != WAIT_FOREVER) cc__timer_arm(w, p.deadline, p.fiber, p.ticket);
    bool cancelled = cc__cancel_parked(p.fiber, p.ticket);
    /* The array is in the frame of a fiber that may run once the last lock is released: read it before that. */
    while (p.count > 0) {
        uint32_t n = p.count < array_len(locks) ? p.count : array_len(locks);
        p.count -= n;
        cc__san_copy(locks, p.locks + p.count, n * sizeof *locks);
        while (n > 0) cc__lock_release_hidden(locks[--n]);
    }
    if (unlikely(cancelled)) cc__sched_ready(p.fiber);
}

static enum wake_reason park(struct waiter *waiter, struct parking *p, const void *object, after_fn after) {
    struct worker *w = cc__worker();
    cc__fiber_note_object(waiter->fiber, object);
    p->fiber = waiter->fiber;
    p->deadline = waiter->deadline;
    p->ticket = waiter->ticket;
    cc__count(w, parks[p->reason]);
    cc__probe3(park, waiter->fiber, p->reason, object);
    (void)cc__sched_park(w, waiter->fiber, p->reason, after, p);
    unsigned woken_by = cc__word_reason(cc__get_acquire(&waiter->fiber->word)); /* pairs with the claim */
    if (waiter->deadline != WAIT_FOREVER && woken_by != WAKE_TIMER) cc__timer_disarm(w);
    return (enum wake_reason)woken_by;
}

enum wake_reason cc__wait_locked(struct waiter *waiter, struct lock *lock, struct wait_what what) {
    if (waiter->fiber != NULL) {
        struct parking p = {.lock = lock, .reason = what.reason};
        cc__lock_leave(lock);
        return park(waiter, &p, what.object, after_wait);
    }
    cc__lock_release(lock);
    return cc__blocked_block(waiter, what);
}

/* The fiber has noted its channel, whose first member is its lock. */
static void after_wait_sole(struct worker *w, void *fiber) {
    (void)w;
    struct fiber *left = fiber;
    struct lock *lock = (struct lock *)cc__fiber_object(left);
    cc__state_park_next(left, PARK_QUEUE);
    /* The fiber cannot start another wait before it has taken this lock: the ticket is still that of this wait. */
    if (cc__cancel_looks())
        finish_slow(left, cc__get(&left->word) & WORD_TICKET, lock);
    else
        cc__lock_release_hidden(lock);
}

enum wake_reason cc__wait_sole_locked(struct worker *w, struct fiber *self, struct lock *channel) {
    cc__count(w, parks[PARK_QUEUE]);
    cc__probe3(park, self, PARK_QUEUE, channel);
    cc__fiber_note_object(self, channel);
    cc__lock_leave(channel);
    (void)cc__sched_park(w, self, PARK_QUEUE, after_wait_sole, self);
    return (enum wake_reason)cc__word_reason(cc__get_acquire(&self->word)); /* pairs with the claim */
}

static CC_COLD CC_NOINLINE void finish_biased_slow(struct worker *w, struct fiber *left) {
    bool cancelled = cc__upcall_cancelled(left, cc__get(&left->word) & WORD_TICKET);
    cc__bias_leave(&w->runq.bias);
    if (cancelled) cc__sched_ready(left);
}

CC_INLINE void park_biased(struct worker *w, struct fiber *left, enum park_reason reason) {
    cc__state_park_next(left, reason);
    if (cc__cancel_looks())
        finish_biased_slow(w, left);
    else
        cc__bias_leave(&w->runq.bias);
}

void cc__wait_after_biased(struct worker *w, void *fiber) {
    park_biased(w, fiber, PARK_QUEUE);
}

void cc__wait_after_select_biased(struct worker *w, void *fiber) {
    park_biased(w, fiber, PARK_SELECT);
}

enum wake_reason cc__wait_locked_all(struct waiter *waiter, struct lock **locks, uint32_t n, struct wait_what what) {
    struct parking p = {.locks = locks, .count = n, .reason = what.reason};
    for (uint32_t i = 0; i < n; i++) cc__lock_leave(locks[i]);
    return park(waiter, &p, what.object, after_wait_all);
}

enum wake_reason cc__wait_sleep(struct waiter *waiter) {
    struct parking p = {.reason = PARK_SLEEP};
    const void *object = waiter->deadline == WAIT_FOREVER ? SLEEP_FOREVER : NULL;
    return waiter->fiber != NULL ? park(waiter, &p, object, after_wait)
                                 : cc__blocked_block(waiter, (struct wait_what){PARK_SLEEP, object});
}

void cc__wakes_add(struct wakes *wakes, struct fiber *f) {
    uint32_t count = cc__get(&wakes->count);
    cc__set(&wakes->count, count + 1);
    if (count == 0) cc__list_init(&wakes->fibers);
    cc__list_push_back(&wakes->fibers, &f->link);
}

bool cc__wakes_claim_locked(struct wakes *wakes, struct waiter *waiter, enum wake_reason reason) {
    struct fiber *f = waiter->fiber;
    if (f != NULL) {
        if (!cc__sched_claim(f, waiter->ticket, reason, cc__get(&waiter->sole))) return false;
        cc__wakes_add(wakes, f);
    } else {
        uint32_t waits = 0;
        if (!cc__cas(&waiter->word, &waits, 1)) return false;
        struct waiter *first = cc__get(&wakes->threads);
        cc__set(&waiter->link.next, first ? &first->link : NULL);
        cc__set(&wakes->threads, waiter);
    }
    return true;
}

bool cc__wakes_claim_apart(struct wakes *wakes, struct waiter *waiter) {
    if (cc__state_claim(waiter->fiber, waiter->ticket, WAKE_OBJECT) != CLAIM_WON) return false;
    cc__wakes_add(wakes, waiter->fiber);
    return true;
}

static void release_threads(struct waiter *waiter) {
    while (waiter != NULL) {
        struct link *next = cc__get(&waiter->link.next);
        _Atomic uint32_t *word = &waiter->word;
        cc__set_release(word, WAKE_OBJECT); /* pairs with cc__blocked_block; the waiter may be freed from here on */
        cc__futex_wake(word, 1);
        waiter = next ? container_of(next, struct waiter, link) : NULL;
    }
}

/* No access to their frames from here on; the race detector does not see the queue that orders this. */
static void leave_frames(struct wakes *wakes) {
    (void)wakes;
#ifdef CC_TSAN
    if (cc__get(&wakes->count) == 0) return;
    for (struct link *l = cc__get(&wakes->fibers.next); l != &wakes->fibers; l = cc__get(&l->next))
        cc__san_release(&cc__fiber_of(l)->word);
#endif
}

void cc__wakes_flush(struct wakes *wakes) {
    cc__held_check_flush();
    leave_frames(wakes);
    struct waiter *threads = cc__get(&wakes->threads);
    uint32_t count = cc__get(&wakes->count);
    if (threads != NULL) release_threads(threads);
    if (count == 1)
        cc__sched_ready(cc__fiber_of(cc__list_pop_front(&wakes->fibers)));
    else if (count > 1)
        cc__sched_ready_all(&wakes->fibers, count);
}
