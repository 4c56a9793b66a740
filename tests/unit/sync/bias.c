/* bias.c - the biased lock: its owner and its revokers are never inside together. */
#include "harness.h"

#include "../crew.h"
#include "sync/bias.h"

#include <sched.h>

static struct {
    struct bias bias;
    long counter; /* plain: mutual exclusion alone makes the sum right */
    int inside;
    long rounds;
    _Alignas(CC_LINE) _Atomic uint32_t flag;
    int users;
    _Atomic long looks; /* of the owner at the flag */
    _Atomic bool stop;
    _Atomic long revoked;
} shared;

static void inside(void) {
    CHECK_EQ(shared.inside++, 0);
    shared.counter++;
    CHECK_EQ(--shared.inside, 0);
}

static void own(void) {
    for (long i = 0; i < shared.rounds; i++) {
        cc__bias_enter(&shared.bias);
        inside();
        cc__bias_leave(&shared.bias);
        if (i % 1024 == 0) sched_yield(); /* on one CPU the others need a turn, too */
    }
}

static void take_away(int index, void *arg) {
    (void)index, (void)arg;
    while (!cc__get(&shared.stop)) {
        if (cc__bias_revoke(&shared.bias)) {
            inside();
            cc__bias_release(&shared.bias);
            cc__add_relaxed(&shared.revoked, 1);
        } else {
            sched_yield();
        }
    }
}

static void contest(int revokers) {
    struct crew crew;
    shared.counter = 0;
    shared.rounds = test_rounds(25000, 5000000);
    cc__set(&shared.revoked, 0);
    cc__set(&shared.stop, false);
    crew_start(&crew, revokers, take_away, NULL);
    own();
    /* A machine with one CPU may not have scheduled them so far. */
    while (cc__get(&shared.revoked) == 0) sched_yield();
    cc__set(&shared.stop, true);
    crew_join(&crew);
    CHECK_EQ(shared.counter, shared.rounds + cc__get(&shared.revoked));
}

TEST(owner_against_others) {
    cc__barrier_init(true);
    for (int revokers = 1; revokers <= 4; revokers++) contest(revokers);
}

/* The same where the system has no asymmetric barrier. */
TEST(owner_against_others_symmetric) {
    cc__barrier_asymmetric = false;
    for (int revokers = 1; revokers <= 4; revokers++) contest(revokers);
}

/* ---- BIAS-5: a word that the owner looks at inside ---- */

static void use_shared(void) {
    CHECK_EQ(shared.users++, 0);
    for (int i = 0; i < 20; i++) cc__compiler_fence();
    CHECK_EQ(--shared.users, 0);
}

static void clear_flag(int index, void *arg) {
    (void)index, (void)arg;
    for (int round = 0; !cc__get(&shared.stop); round++) {
        cc__set_seq(&shared.flag, 0);
        cc__barrier_heavy();
        for (int spins = 0; cc__get_acquire(&shared.bias.owner) == CC__BIAS_INSIDE; spins++)
            if (spins > 1000) sched_yield();
        use_shared();
        cc__set_release(&shared.flag, 1);
        for (int i = 0; i < 100; i++) cc__compiler_fence();
        /* On a busy machine the flag is down for most of the time: now and then it waits for the owner to see it. */
        long looks = cc__get(&shared.looks);
        while (round % 8 == 0 && cc__get(&shared.looks) == looks && !cc__get(&shared.stop)) sched_yield();
    }
}

/* An owner that was revoked has to check as carefully as one that was not. */
static void owner_against_flag(void) {
    struct crew others, clearer;
    long seen = 0, rounds = test_rounds(25000, 5000000);
    cc__set(&shared.flag, 1);
    cc__set(&shared.stop, false);
    cc__set(&shared.revoked, 0);
    crew_start(&others, 1, take_away, NULL);
    crew_start(&clearer, 1, clear_flag, NULL);
    for (long i = 0; i < rounds || seen == 0 || cc__get(&shared.revoked) == 0; i++) {
        cc__bias_enter(&shared.bias);
        if (cc__get_acquire(&shared.flag)) {
            use_shared();
            seen++;
            cc__add_relaxed(&shared.looks, 1);
        }
        cc__bias_leave(&shared.bias);
        if (i % 1024 == 0) sched_yield();
    }
    cc__set(&shared.stop, true);
    crew_join(&others);
    crew_join(&clearer);
}

TEST(owner_against_flag) {
    cc__barrier_init(true);
    owner_against_flag();
}

TEST(owner_against_flag_symmetric) {
    cc__barrier_asymmetric = false;
    owner_against_flag();
}

TEST(idle_owner_is_revoked) {
    cc__barrier_init(true);
    for (int i = 0; i < 100; i++) {
        CHECK(cc__bias_revoke(&shared.bias));
        CHECK(!cc__bias_revoke(&shared.bias)); /* another revocation is in progress */
        cc__bias_release(&shared.bias);
        cc__bias_enter(&shared.bias);
        cc__bias_leave(&shared.bias);
    }
}

TEST(busy_owner_stalls_no_revoker) {
    cc__barrier_init(true);
    cc__bias_enter(&shared.bias);
    CHECK(!cc__bias_revoke(&shared.bias)); /* gives up after a bounded time, and leaves no trace: */
    CHECK_EQ(cc__get(&shared.bias.revoked), 0);
    CHECK(!cc__bias_revoke(&shared.bias));
    cc__bias_leave(&shared.bias);
    CHECK(cc__bias_revoke(&shared.bias));
    cc__bias_release(&shared.bias);
    cc__bias_enter(&shared.bias);
    CHECK(!cc__bias_revoke(&shared.bias));
    cc__bias_leave(&shared.bias);
}

static _Atomic int step;

static void enter_while_revoked(int index, void *arg) {
    (void)index, (void)arg;
    cc__set_release(&step, 1);
    cc__bias_enter(&shared.bias);
    inside();
    cc__set_release(&step, 2);
    cc__bias_leave(&shared.bias);
}

/* An owner that enters while another is inside waits for it, and then takes the lock. */
TEST(owner_waits_for_the_other) {
    cc__barrier_init(true);
    struct crew crew;
    CHECK(cc__bias_revoke(&shared.bias));
    crew_start(&crew, 1, enter_while_revoked, NULL);
    while (cc__get_acquire(&step) == 0) sched_yield();
    for (int i = 0; i < 1000; i++) {
        sched_yield();
        CHECK_EQ(cc__get_acquire(&step), 1);
    }
    inside();
    cc__bias_release(&shared.bias);
    crew_join(&crew);
    CHECK_EQ(step, 2);
    CHECK_EQ(shared.counter, 2);
}
