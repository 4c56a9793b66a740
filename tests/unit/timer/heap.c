/* heap.c - a worker's timers: earliest first, never early, and stale entries do not accumulate. */
#include "harness.h"

#include "base/mem.h"
#include "timer/timer.h"

static struct worker worker;

static void open_timers(void) {
    worker.core.owner = 1;
    cc__set(&worker.turn_ns, 1000);
    cc__set(&worker.slow_ns, 1000);
    CHECK(cc__timer_driver.start(1));
    CHECK_EQ(cc__timer_driver.next_due(0, false), UINT64_MAX);
}

static void close_timers(void) {
    cc__timer_driver.stop();
}

/* Parks a record that is IDLE or RUNNING; returns the ticket of its wait. */
static uint64_t park(struct fiber *f) {
    if (cc__word_state(cc__get(&f->word)) == FIBER_IDLE) {
        cc__state_spawn(f, 1, ARGS_POINTER);
        cc__state_run(f, 1);
    }
    uint64_t ticket = cc__state_ticket(f);
    cc__state_park(f, PARK_SLEEP);
    return ticket;
}

static void arm(struct fiber *f, uint64_t when) {
    CHECK(cc__timer_prepare(&worker));
    uint64_t ticket = park(f);
    cc__timer_arm(&worker, when, f, ticket);
}

/* Ends the wait before its deadline, as a waker does. */
static void end_early(struct fiber *f) {
    CHECK_EQ(cc__state_claim(f, cc__get(&f->word) & WORD_TICKET, WAKE_OBJECT), CLAIM_WON);
    cc__state_run(f, 1);
    cc__timer_disarm(&worker);
}

/* Fires and returns the fibers in their order; the count is what fire says. */
static uint32_t fire(uint64_t now, struct link *list) {
    cc__list_init(list);
    uint32_t n = cc__timer_driver.poll(0, now, list), counted = 0;
    for (struct link *l = cc__get(&list->next); l != list; l = cc__get(&l->next), counted++) {
        CHECK_EQ(cc__word_state(cc__get(&cc__fiber_of(l)->word)), FIBER_RUNNABLE);
        CHECK_EQ(cc__word_reason(cc__get(&cc__fiber_of(l)->word)), WAKE_TIMER);
    }
    CHECK_EQ(counted, n);
    return n;
}

TEST(never_early) {
    open_timers();
    struct fiber f = {0};
    struct link list;
    arm(&f, 1000);
    CHECK_EQ(cc__timer_driver.next_due(0, false), 1000);
    CHECK_EQ(fire(0, &list), 0);
    CHECK_EQ(fire(999, &list), 0);
    CHECK_EQ(cc__timer_count(&worker), 1);
    CHECK_EQ(fire(1000, &list), 1);
    CHECK(cc__fiber_of(cc__get(&list.next)) == &f);
    CHECK_EQ(cc__timer_driver.next_due(0, false), UINT64_MAX);
    CHECK_EQ(fire(2000, &list), 0); /* once */
    close_timers();
}

TEST(extreme_times) {
    open_timers();
    struct fiber first = {0}, last = {0};
    struct link list;
    arm(&last, UINT64_MAX - 1);
    arm(&first, 0); /* long past: due at once */
    CHECK_EQ(cc__timer_driver.next_due(0, false), 0);
    CHECK_EQ(fire(0, &list), 1);
    CHECK(cc__fiber_of(cc__get(&list.next)) == &first);
    CHECK_EQ(fire(UINT64_MAX - 2, &list), 0);
    CHECK_EQ(fire(UINT64_MAX - 1, &list), 1);
    close_timers();
}

TEST(same_time) {
    enum { MANY = 1000 };
    open_timers();
    struct fiber *fibers = cc__mem_alloc(MANY * sizeof *fibers);
    struct link list;
    for (int i = 0; i < MANY; i++) arm(&fibers[i], 77);
    CHECK_EQ(fire(76, &list), 0);
    CHECK_EQ(fire(77, &list), MANY);
    CHECK_EQ(cc__timer_count(&worker), 0);
    cc__mem_free(fibers);
    close_timers();
}

TEST(in_order) {
    enum { MANY = 20000, SPAN = 10000 };
    open_timers();
    struct fiber *fibers = cc__mem_alloc(MANY * sizeof *fibers);
    uint64_t *when = cc__mem_alloc(MANY * sizeof *when), random = test_seed();
    for (int i = 0; i < MANY; i++) {
        when[i] = test_random(&random) % SPAN;
        arm(&fibers[i], when[i]);
    }
    uint32_t fired = 0;
    uint64_t last = 0;
    for (uint64_t now = 0; now < SPAN + 100;) {
        struct link list;
        uint64_t next = cc__timer_driver.next_due(0, false);
        uint32_t n = fire(now, &list);
        CHECK_EQ(n > 0, next <= now);
        for (struct link *l = cc__get(&list.next); l != &list; l = cc__get(&l->next)) {
            uint64_t at = when[cc__fiber_of(l) - fibers];
            CHECK(at <= now);
            CHECK(at >= last); /* earliest first, over all calls */
            last = at;
        }
        fired += n;
        CHECK_EQ(cc__timer_count(&worker), MANY - fired);
        now += 1 + test_random(&random) % 100;
    }
    CHECK_EQ(fired, MANY);
    cc__mem_free(fibers);
    cc__mem_free(when);
    close_timers();
}

/* ---- waits that are ended early ---- */

TEST(ended_early) {
    open_timers();
    struct fiber f = {0};
    struct link list;
    arm(&f, 1000);
    end_early(&f);
    CHECK_EQ(fire(1000, &list), 0);
    CHECK_EQ(cc__word_state(cc__get(&f.word)), FIBER_RUNNING);
    CHECK_EQ(cc__timer_count(&worker), 0); /* and the entry is gone */
    arm(&f, 2000);
    end_early(&f);
    arm(&f, 3000); /* the old entry must not end the new wait */
    CHECK_EQ(fire(2500, &list), 0);
    CHECK_EQ(cc__word_state(cc__get(&f.word)), FIBER_PARKED);
    CHECK_EQ(fire(3000, &list), 1);
    close_timers();
}

/* A fiber that waits again and again, each time with a far deadline, and is woken each time. */
TEST(stale_entries_are_swept) {
    open_timers();
    struct fiber f = {0};
    uint32_t most = 0;
    for (long i = 0; i < test_rounds(100000, 2000000); i++) {
        arm(&f, UINT64_MAX / 2 - (uint64_t)i);
        end_early(&f);
        if (cc__timer_count(&worker) > most) most = cc__timer_count(&worker);
    }
    CHECK(most <= 256); /* 64 are kept before the first sweep; then at most half is stale, and one is not */
    close_timers();
}

/* The same with many that stay: the heap holds at most some more than twice as many as wait. */
TEST(sweeps_keep_what_waits) {
    enum { STAY = 1000, BUSY = 50 };
    open_timers();
    struct fiber *fibers = cc__mem_alloc((STAY + BUSY) * sizeof *fibers);
    uint64_t random = test_seed(), when[STAY];
    for (int i = 0; i < STAY; i++) arm(&fibers[i], when[i] = 1000000 + test_random(&random) % 1000);
    for (long i = 0; i < test_rounds(50000, 1000000); i++) {
        struct fiber *f = &fibers[STAY + test_random(&random) % BUSY];
        if (cc__word_state(cc__get(&f->word)) == FIBER_PARKED)
            end_early(f);
        else
            arm(f, 1000 + test_random(&random) % 2000000);
        CHECK(cc__timer_count(&worker) <= 2 * (STAY + BUSY) + 64);
    }
    for (int i = 0; i < BUSY; i++)
        if (cc__word_state(cc__get(&fibers[STAY + i].word)) == FIBER_PARKED) end_early(&fibers[STAY + i]);
    /* And what is left is in order: at each moment all that are due are fired, and nobody else. */
    uint32_t fired = 0;
    for (uint64_t now = 1000000; now < 1001000; now += 7) {
        struct link list;
        uint32_t due = 0;
        for (int i = 0; i < STAY; i++) due += when[i] <= now;
        fired += fire(now, &list);
        CHECK_EQ(fired, due);
    }
    struct link list;
    CHECK_EQ(fired + fire(UINT64_MAX - 1, &list), STAY);
    CHECK_EQ(cc__timer_count(&worker), 0);
    cc__mem_free(fibers);
    close_timers();
}

/* Random arms, ends and fires, compared with a plain array. */
TEST(against_a_model) {
    enum { FIBERS = 200 };
    open_timers();
    struct fiber *fibers = cc__mem_alloc(FIBERS * sizeof *fibers);
    uint64_t due[FIBERS] = {0}; /* 0: does not wait */
    uint64_t random = test_seed(), now = 1;
    for (long i = 0; i < test_rounds(100000, 2000000); i++) {
        int k = (int)(test_random(&random) % FIBERS);
        if (due[k] == 0) {
            due[k] = now + test_random(&random) % 500;
            arm(&fibers[k], due[k]);
        } else if (test_random(&random) % 3 == 0) {
            end_early(&fibers[k]);
            due[k] = 0;
        }
        if (test_random(&random) % 8 != 0) continue;
        now += test_random(&random) % 50;
        uint32_t expected = 0;
        for (int j = 0; j < FIBERS; j++) expected += due[j] != 0 && due[j] <= now;
        struct link list;
        CHECK_EQ(fire(now, &list), expected);
        while (!cc__list_empty(&list)) {
            struct fiber *f = cc__fiber_of(cc__list_pop_front(&list));
            CHECK(due[f - fibers] != 0 && due[f - fibers] <= now);
            due[f - fibers] = 0;
            cc__state_run(f, 1);
        }
        uint64_t earliest = UINT64_MAX;
        for (int j = 0; j < FIBERS; j++)
            if (due[j] != 0 && due[j] < earliest) earliest = due[j];
        CHECK(cc__timer_driver.next_due(0, false) <= earliest); /* a stale entry may be earlier */
    }
    cc__mem_free(fibers);
    close_timers();
}
