/* storm_park.h - the park storm: wakers race with fibers that park, with valid tickets, with stale ones,
 * twice, and too early.
 *
 * A parker's turn: flag = 0, open the wait, publish the ticket, park unless the flag has changed. A waker
 * that changes a flag from 0 to 1 owes the parker one wake, and wakes it by the ticket that it then reads. Both
 * load after they publish (seq_cst): either the parker sees the flag, or the waker sees the ticket. Wakes and
 * turns are counted: a lost wake hangs the case, a spurious one is a turn that ends with the flag at 0, and a
 * fiber that runs in two places is detected by its presence flag.
 */
#ifndef CCC_TESTS_STORM_PARK_H
#define CCC_TESTS_STORM_PARK_H

#include "stress.h"

enum { PARKERS = 16, WAKE_FIBERS = 4, WAKE_THREADS = 2, OLD_TICKETS = 8 };

struct parker {
    _Alignas(64) _Atomic uint32_t flag;
    struct fiber *_Atomic fiber; /* NULL until the first wait is open */
    _Atomic uint64_t ticket;
    struct presence presence;
    struct park_storm *storm;
    long signalled; /* turns that ended with the flag set; only the parker writes it */
    long spurious;
};

struct park_storm {
    struct parker parkers[PARKERS];
    atomic_long given;    /* flags moved from 0 to 1 */
    atomic_long woken;    /* wakes that said they ended a wait */
    atomic_long resumed;  /* waits that ended by a wake */
    atomic_int remaining; /* parkers that still take turns */
    long turns;
    bool twice; /* wakers also wake without setting the flag; else a lost wake is never made up for */
};

static void *parker_main(void *arg) {
    struct parker *p = arg;
    struct fiber *self = cc__sched_current(cc__worker());
    CCFiberId id = cc_fiber_id();
    uint64_t last_ticket = 0;
    atomic_store(&p->fiber, self);
    arrive(&p->presence);
    while (p->signalled < p->storm->turns) {
        uint64_t ticket = cc__park_open(self, PARK_FLAG);
        CHECK(ticket > last_ticket);
        last_ticket = ticket;
        atomic_store(&p->ticket, ticket);
        leave(&p->presence);
        unsigned reason = cc__park_if(self, &p->flag, 0);
        arrive(&p->presence);
        CHECK(reason == 0 || reason == WAKE_OBJECT);
        if (reason != 0) atomic_fetch_add(&p->storm->resumed, 1);
        CHECK_EQ(cc_fiber_id(), id);
        if (atomic_exchange(&p->flag, 0) == 1)
            p->signalled++;
        else
            p->spurious++; /* a second wake for the previous turn */
    }
    leave(&p->presence);
    /* A flag that was set after the last turn does not count. */
    if (atomic_exchange(&p->flag, 2) == 1) atomic_fetch_sub(&p->storm->given, 1);
    atomic_fetch_sub(&p->storm->remaining, 1);
    return NULL;
}

struct park_waker {
    struct park_storm *storm;
    uint64_t seed;
};

static void *waker_main(void *arg) {
    struct park_waker *self = arg;
    struct park_storm *storm = self->storm;
    uint64_t rng = self->seed;
    uint64_t old[OLD_TICKETS] = {0}; /* tickets seen, of one parker each */
    unsigned old_of[OLD_TICKETS] = {0};
    while (atomic_load(&storm->remaining) > 0) {
        unsigned i = (unsigned)below(&rng, PARKERS);
        struct parker *p = &storm->parkers[i];
        struct fiber *f = atomic_load(&p->fiber);
        if (f == NULL) {
            cc_yield();
            continue;
        }
        uint32_t none = 0;
        bool set = atomic_compare_exchange_strong(&p->flag, &none, 1);
        if (set) atomic_fetch_add(&storm->given, 1);
        uint64_t ticket = atomic_load(&p->ticket);
        if (set || (storm->twice && below(&rng, 4) == 0)) {
            if (cc__fiber_wake(f, ticket, WAKE_OBJECT)) atomic_fetch_add(&storm->woken, 1);
        }
        /* A ticket that is not the parker's newest must match nothing, now and for ever. */
        unsigned k = (unsigned)below(&rng, OLD_TICKETS);
        struct parker *other = &storm->parkers[old_of[k]];
        if (old[k] != 0 && atomic_load(&other->ticket) != old[k])
            CHECK(!cc__fiber_wake(atomic_load(&other->fiber), old[k], WAKE_OBJECT));
        old[k] = ticket;
        old_of[k] = i;
        if (below(&rng, 3) != 0) cc_yield();
    }
    return NULL;
}

/* From an OS thread. */
STRESS_UNUSED static void park_storm(long turns, bool twice, uint64_t seed) {
    struct park_storm *storm = aligned_alloc(64, sizeof *storm);
    CHECK(storm != NULL);
    memset(storm, 0, sizeof *storm);
    storm->turns = turns;
    storm->twice = twice;
    atomic_store(&storm->remaining, PARKERS);
    uint64_t rng = seed;
    struct park_waker wakers[WAKE_FIBERS + WAKE_THREADS];
    CCTask parkers[PARKERS], fibers[WAKE_FIBERS];
    pthread_t threads[WAKE_THREADS];
    for (int i = 0; i < PARKERS; i++) {
        storm->parkers[i].storm = storm;
        parkers[i] = spawn(parker_main, &storm->parkers[i]);
    }
    for (int i = 0; i < WAKE_FIBERS + WAKE_THREADS; i++) wakers[i] = (struct park_waker){storm, test_random(&rng)};
    for (int i = 0; i < WAKE_FIBERS; i++) fibers[i] = spawn(waker_main, &wakers[i]);
    for (int i = 0; i < WAKE_THREADS; i++) threads[i] = start_thread(waker_main, &wakers[WAKE_FIBERS + i]);
    for (int i = 0; i < PARKERS; i++) join(parkers[i]);
    for (int i = 0; i < WAKE_FIBERS; i++) join(fibers[i]);
    for (int i = 0; i < WAKE_THREADS; i++) join_thread(threads[i]);
    long taken = 0, spurious = 0;
    for (int i = 0; i < PARKERS; i++) {
        taken += storm->parkers[i].signalled;
        spurious += storm->parkers[i].spurious;
    }
    CHECK_EQ(taken, PARKERS * turns);
    CHECK_EQ(taken, atomic_load(&storm->given));
    /* A wait ends by one wake; a wake that was latched may meet a parker that gave the wait up. */
    CHECK(atomic_load(&storm->resumed) <= atomic_load(&storm->woken));
    CHECK(spurious <= atomic_load(&storm->woken));
    /* A waker that is late with its wake may meet the next wait: at most as many of these as signals that needed no
     * wake. */
    if (!twice) CHECK(atomic_load(&storm->woken) <= taken);
    printf("%ld turns, %ld woken, %ld resumed, %ld spurious\n", taken, atomic_load(&storm->woken),
           atomic_load(&storm->resumed), spurious);
    free(storm);
}

#endif
