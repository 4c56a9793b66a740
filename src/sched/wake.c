/* wake.c - how a fiber is made ready: its wait is claimed, then it goes into a queue.
 *
 * Claims. A waker that is a worker ends a wait that only its object can end ("sole") without a read-modify-write:
 * inside its own biased lock it reads `contested` and stores. A canceller raises `contested`, then waits until it has
 * seen each worker outside of its lock: a waker that was inside has finished its store, and one that enters later sees
 * the flag and uses a compare-and-swap, as the canceller does. Threads that are not workers always use a
 * compare-and-swap. `contested` counts the cancellers.
 *
 *   worker                            canceller
 *   owner = INSIDE                    contested + 1
 *   -- light barrier --               -- heavy barrier --
 *   contested (acquire)?              while owner == INSIDE: wait
 *      compare-and-swap               claim, by compare-and-swap
 *   else store                        contested - 1 (release)
 *   owner = AWAY (release)
 *
 * CLAIM-1  A store and another claim never race on one word: by BARRIER-1 the worker sees `contested`, or the canceller
 *          sees INSIDE and waits for the store's release.
 * CLAIM-2  A worker that no longer sees `contested` sees what the canceller claimed: its load acquires what the
 *          canceller's subtraction released. Otherwise its load of the state word might be older than its load of the
 *          flag, and find PARKED.
 * CLAIM-3  Cancellations in quick succession share a heavy barrier: the last canceller leaves its count in `contested`
 *          (`lingers`), and a worker subtracts it when there was none for LINGER_NS. A canceller that adds its count,
 *          then sees `lingers`, knows that `contested` was raised all the time since a barrier, and stays so until it
 *          ends: every claim since is a compare-and-swap, and a fiber that parks executes a fence between PARKED and
 *          its look at the mark, as the canceller does between the mark and its look at the word. A fiber that sees
 *          `contested` lowered sees the marks, as by CLAIM-2. `lingers` is cleared before its count is subtracted.
 *
 * Queues. On a worker: its own; a fresh fiber among the fresh, a woken one in the slot, several at the FIFO's end. From
 * OS threads, and to or from an island: the inbox of the fiber's last worker, round robin for a fresh one; the global
 * queue when that inbox is long.
 */
#include "sched/wake.h"

#include "os/clock.h"
#include "sched/idle.h"
#include "sched/inbox.h"
#include "sched/inject.h"
#include "sched/island.h"
#include "sched/policy.h"
#include "sched/record.h"
#include "sched/runq.h"
#include "sched/upcalls.h"
#include "sync/backoff.h"

/* ---- claim ---- */

/* A critical section takes tens of nanoseconds, unless the worker is descheduled inside. */
static void await_outside(struct worker *w) {
    struct backoff backoff = {0};
    while (cc__get_acquire(&w->runq.bias.owner) == CC__BIAS_INSIDE) /* pairs with the leave */
        cc__backoff(&backoff);
}

bool cc__sched_claim(struct fiber *f, uint64_t ticket, enum wake_reason reason, bool sole) {
    struct worker *w = cc__worker();
    if (!sole || unlikely(w == NULL)) return cc__state_claim(f, ticket, reason) == CLAIM_WON;
    bool won;
    cc__bias_enter(&w->runq.bias);
    if (unlikely(cc__get_acquire(&cc__sched.contested))) { /* CLAIM-2 */
        won = cc__state_claim(f, ticket, reason) == CLAIM_WON;
    } else {
        won = cc__state_wake_sole(f, reason);
        if (likely(won)) cc__sched_record_wake(w, f, reason);
    }
    cc__bias_leave(&w->runq.bias);
    return won;
}

static void contest_begins(void) {
    cc__barrier_heavy();
    /* A worker whose thread starts from now on sees the flag. */
    for (unsigned i = 0, n = cc__get_seq(&cc__sched.count); i < n; i++) await_outside(&cc__sched.workers[i]);
    for (unsigned i = 0, n = cc__get_seq(&cc__sched.islands); i < n; i++)
        await_outside(&cc__sched.workers[cc__sched.max + i]);
}

static void contest_ends(void) {
    cc__sub_seq(&cc__sched.contested, 1); /* CLAIM-2: pairs with the loads in cc__sched_claim and local_wake.h */
}

void cc__sched_contest(bool on) {
    if (!on) {
        contest_ends();
        return;
    }
    cc__add_seq(&cc__sched.contested, 1);
    contest_begins();
}

void cc__sched_cancel_begins(void) { /* CLAIM-3 */
    cc__add_seq(&cc__sched.contested, 1);
    if (cc__get_seq(&cc__sched.lingers) == 0)
        contest_begins();
    else
        cc__full_fence(); /* pairs with the fence in cc__upcall_cancelled */
}

void cc__sched_cancel_ends(void) { /* CLAIM-3 */
    uint64_t now = cc__clock_now(), last = cc__get(&cc__sched.cancelled_at);
    uint32_t none = 0;
    cc__set(&cc__sched.cancelled_at, now);
    if (now - last < LINGER_NS && cc__cas_seq(&cc__sched.lingers, &none, 1)) return; /* our count stays */
    contest_ends();
}

void cc__sched_cancel_lingers(uint64_t now) {
    if (now - cc__get(&cc__sched.cancelled_at) < LINGER_NS || cc__swap_seq(&cc__sched.lingers, 0) == 0) return;
    contest_ends();
}

void cc__sched_await_outside(uint64_t tag) {
    struct worker *self = cc__worker();
    if (self != NULL && self->core.tag == tag) return;
    if (self == NULL && !cc__upcall_enter_locked()) return; /* there are no workers */
    unsigned owner = cc__tag_owner(tag);
    if (owner <= cc__sched.max + ISLANDS_MAX && cc__sched.workers[owner - 1].core.tag == tag) {
        cc__barrier_heavy();
        await_outside(&cc__sched.workers[owner - 1]);
    }
    if (self == NULL) cc__upcall_leave();
}

/* ---- enqueue ---- */

static struct worker *open_worker(unsigned preferred) {
    struct worker *to = &cc__sched.workers[preferred % cc__get(&cc__sched.count)];
    return likely(cc__worker_open(to)) ? to
                                       : &cc__sched.workers[preferred % cc__get(&cc__sched.base)]; /* it has retired */
}

/* Sends a fiber to one worker, from a thread that is not a worker of the pool. */
static void send(struct fiber *f, struct worker *to) {
    if (cc__get(&to->remote.inbox_len) >= INBOX_LONG)
        cc__inject_put(f);
    else
        cc__inbox_push(to, f);
    /* It may be busy while another worker sleeps: that one finds the inbox. */
    if (!cc__idle_notify_worker(to)) cc__idle_notify(NULL);
    if (cc__sched.simulated) cc__upcall_sim_point();
}

void cc__sched_spawn(struct worker *w, struct fiber *f, enum fiber_args args) {
    if (likely(w != NULL)) {
        cc__runq_spawn(w, f, args);
    } else {
        cc__state_spawn(f, 0, args);
        cc__add_seq(&cc__sched.foreign_spawned, 1);
        send(f, open_worker(cc__add_relaxed(&cc__sched.round_robin, 1)));
    }
}

CC_NOINLINE void cc__sched_send(struct fiber *f) {
    struct worker *island = cc__island_worker(f);
    if (island != NULL) {
        cc__island_send(island, f);
        return;
    }
    unsigned last = cc__word_owner(cc__get(&f->word));
    struct worker *to = open_worker(last > 0 ? last - 1 : cc__add_relaxed(&cc__sched.round_robin, 1));
    cc__add_relaxed(&to->remote.woken, 1);
    send(f, to);
}

void cc__sched_ready(struct fiber *f) {
    cc__held_check_flush();
    struct worker *w = cc__worker();
    if (likely(w != NULL && !cc__island_apart(w, f))) {
        cc__bias_enter(&w->runq.bias);
        cc__runq_slot_owner(&w->runq, f);
        cc__count(w, wakes_local);
        cc__bias_leave(&w->runq.bias);
        cc__runq_tell(w, 1);
    } else if (w != NULL) {
        cc__sched_send(f);
    } else {
        cc__upcall_hold();
        cc__sched_send(f);
        cc__upcall_leave();
    }
}

void cc__sched_ready_all(struct link *list, uint32_t n) {
    cc__held_check_flush();
    struct worker *w = cc__worker();
    if (w == NULL) {
        while (!cc__list_empty(list)) cc__sched_ready(cc__fiber_of(cc__list_pop_front(list)));
        return;
    }
    n = cc__island_route(w, list, n);
    if (n == 0) return;
    if (cc__spec_on())
        for (struct link *l = cc__get(&list->next); l != list; l = cc__get(&l->next)) cc__spec_enqueue(cc__fiber_of(l));
    cc__bias_enter(&w->runq.bias);
    cc__list_append_all(&w->runq.fifo, list);
    cc__runq_add_owner(&w->runq, n);
    cc__count_n(w, wakes_local, n);
    cc__bias_leave(&w->runq.bias);
    cc__runq_tell(w, 0);
}
