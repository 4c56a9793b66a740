/* barrier.c - all parties of a round pass, or none. */
#include "one_worker.h"
#include "waiters.h"

/* ---- alone: the zero value, three forms, bad arguments ---- */

static void no_object(void) {
    CCBarrier nobody = {0};
    CHECK_EQ(cc_barrier_wait(NULL), EINVAL);
    CHECK_EQ(cc_barrier_wait_until(NULL, CC_FOREVER), EINVAL);
    CHECK_EQ(cc_barrier_wait(&nobody), EINVAL);
}

static void use_alone(void) {
    CCBarrier one = CC_BARRIER_INIT(1), two = CC_BARRIER_INIT(2);
    for (int i = 0; i < 3; i++) CHECK_EQ(cc_barrier_wait(&one), 0);
    times_out(call_barrier, &two);
    CHECK_EQ(two.arrived, 0); /* a party that has left does not count */
}

TESTS_ALONE(no_object, use_alone)

/* ---- among several ---- */

enum { RACERS = 5 };

struct race {
    CCBarrier barrier;
    atomic_long at[RACERS];
    long laps;
};

struct racer {
    struct race *race;
    int index;
};

static void *run_laps(void *arg) {
    struct racer *r = arg;
    for (long lap = 1; lap <= r->race->laps; lap++) {
        atomic_store(&r->race->at[r->index], lap);
        CHECK_EQ(cc_barrier_wait(&r->race->barrier), 0);
        for (int i = 0; i < RACERS; i++) { /* all have arrived in this lap, and at most in the next */
            long at = r->race->at[i];
            CHECK(at == lap || at == lap + 1);
        }
    }
    return NULL;
}

static void race_with(enum parties who, size_t unused) {
    (void)unused;
    struct race race = {.barrier = CC_BARRIER_INIT(RACERS), .laps = test_scale(1000)};
    struct racer racers[RACERS];
    struct party parties[RACERS];
    for (int i = 0; i < RACERS; i++) {
        racers[i] = (struct racer){&race, i};
        parties[i] = party_start(who, i, run_laps, &racers[i]);
    }
    parties_end(parties, RACERS);
    CHECK_EQ(race.barrier.arrived, 0);
}

TEST_WORKERS(lap_after_lap) {
    for_each_kind(race_with, 0);
}

/* Three may pass at a time, with deadlines: those who pass, pass in threes. */
static atomic_long passed;

static void *try_to_pass(void *barrier) {
    uint64_t rng = test_seed() + (uintptr_t)&rng;
    for (long i = 0; i < test_rounds(400, 100000); i++) {
        /* Mostly just too short, on any machine; now and then long enough for three to meet. */
        int rc = cc_barrier_wait_until(barrier, cc_after_ns(test_random(&rng) % (i % 8 == 0 ? 20000000 : 20000)));
        CHECK(rc == 0 || rc == ETIMEDOUT);
        if (rc == 0) atomic_fetch_add(&passed, 1);
    }
    return NULL;
}

static void threes_with(enum parties who, size_t unused) {
    (void)unused;
    CCBarrier b = CC_BARRIER_INIT(3);
    struct party parties[7];
    atomic_store(&passed, 0);
    for (int i = 0; i < 7; i++) parties[i] = party_start(who, i, try_to_pass, &b);
    parties_end(parties, 7);
    CHECK_EQ(passed % 3, 0);
    CHECK_EQ(b.arrived, 0);
    CHECK_EQ(queued(&b), 0);
}

TEST_WORKERS(all_or_nobody) {
    for_each_kind(threes_with, 0);
}

/* A canceller: a cancelled party leaves, and does not count. */
static CCBarrier half_full = CC_BARRIER_INIT(4);

static void *wait_in_vain(void *unused) {
    CHECK_EQ(cc_barrier_wait(&half_full), ECANCELED);
    return unused;
}

TEST_WORKERS(cancelled) {
    for (int i = 0; i < 3; i++) {
        CCTask task = cc_fiber_spawn_task(wait_in_vain, NULL);
        CHECK_EQ(cc_task_detach(&task), 0);
    }
    await_queued(&half_full, 3);
    end_by_cancelling();
    CHECK_EQ(half_full.arrived, 0);
    CHECK_EQ(queued(&half_full), 0);
}

/* ---- cancelled, and the fiber has not run yet, when the barrier opens ---- */

static CCBarrier two_parties = CC_BARRIER_INIT(2);

static void *meet(void *arg) {
    (void)arg;
    return result_of(cc_barrier_wait(&two_parties));
}

/* It was cancelled before the barrier opened, but was counted: it has passed. One that has left has not. */
static void *meetings(void *arg) {
    CCTask first = start(meet);
    CHECK_EQ(cc_task_cancel(&first), 0);
    CHECK_EQ(cc_barrier_wait(&two_parties), 0);
    ends_with(first, 0);

    CCTask second = start(meet);
    CHECK_EQ(cc_task_cancel(&second), 0);
    ends_with(second, ECANCELED);
    CHECK_EQ(cc_barrier_wait_until(&two_parties, cc_after_ms(5)), ETIMEDOUT);
    return arg;
}

TEST(cancelled_as_it_opens) {
    on_one_worker(meetings);
}
