/* state.c - every edge of the state word: what the legal ones write, that the illegal ones abort the program, and
 * that one of several claims wins. */
#include "harness.h"

#include "../crew.h"
#include "fiber/state.h"

#include <sched.h>
#include <string.h>

static struct fiber fiber = {.slot = 7, .generation = 3};

static uint64_t word(void) {
    return cc__get(&fiber.word);
}

static uint64_t ticket(void) {
    return word() & WORD_TICKET;
}

/* The word's fields, all of them. */
static void check_word(enum fiber_state state, unsigned owner, unsigned reason, uint64_t bits, uint64_t tickets) {
    CHECK_EQ(cc__word_state(word()), state);
    CHECK_EQ(cc__word_owner(word()), owner);
    CHECK_EQ(cc__word_reason(word()), reason);
    CHECK_EQ(word() & (WORD_LATCH | WORD_FRESH), bits);
    CHECK_EQ(ticket() / WORD_TICKET_ONE, tickets);
}

static void start(void) {
    cc__set(&fiber.word, FIBER_IDLE);
    cc__state_take(&fiber);
    cc__state_spawn(&fiber, 5, ARGS_POINTER);
    cc__state_run(&fiber, 5);
}

/* ---- the legal edges ---- */

TEST(a_short_run) {
    check_word(FIBER_IDLE, 0, 0, 0, 0);
    cc__state_take(&fiber);
    cc__state_spawn(&fiber, 5, ARGS_BLOCK);
    check_word(FIBER_RUNNABLE, 5, ARGS_BLOCK, WORD_FRESH,
               0); /* no reason yet: the field says how the argument is passed */
    cc__state_move(&fiber, 0);
    check_word(FIBER_RUNNABLE, 0, ARGS_BLOCK, WORD_FRESH, 0);
    cc__state_move(&fiber, CC_WORKERS_MAX);
    check_word(FIBER_RUNNABLE, CC_WORKERS_MAX, ARGS_BLOCK, WORD_FRESH, 0);
    cc__state_run(&fiber, 6);
    check_word(FIBER_RUNNING, 6, ARGS_BLOCK, 0, 0);
    CHECK_EQ(cc__state_args(&fiber), ARGS_BLOCK);
    cc__state_yield(&fiber, 6);
    check_word(FIBER_RUNNABLE, 6, 0, 0, 0);
    cc__state_run(&fiber, 1);
    check_word(FIBER_RUNNING, 1, 0, 0, 0);
    cc__state_done(&fiber);
    check_word(FIBER_DONE, 0, 0, 0, 0);
    cc__state_recycle(&fiber);
    check_word(FIBER_IDLE, 0, 0, 0, 0);
    cc__state_take(&fiber);
}

TEST(ends_without_having_run) {
    cc__state_take(&fiber);
    cc__state_spawn(&fiber, 0, ARGS_POINTER);
    cc__state_done(&fiber);
    check_word(FIBER_DONE, 0, 0, 0, 0);
}

TEST(park_under_a_lock) {
    start();
    CHECK_EQ(cc__state_ticket(&fiber), WORD_TICKET_ONE);
    check_word(FIBER_RUNNING, 5, 0, 0, 1);
    cc__state_park(&fiber, PARK_JOIN);
    check_word(FIBER_PARKED, 5, PARK_JOIN, 0, 1);
    cc__state_wake_sole(&fiber, WAKE_OBJECT);
    check_word(FIBER_RUNNABLE, 5, WAKE_OBJECT, 0, 1);
    cc__state_run(&fiber, 2);
    check_word(FIBER_RUNNING, 2, WAKE_OBJECT, 0, 1); /* the fiber reads who woke it */
    CHECK_EQ(cc__state_ticket(&fiber), 2 * WORD_TICKET_ONE);
}

/* A joiner that runs its task: no claim of an earlier wait may match. */
TEST(park_to_run_a_task) {
    for (int contested = 0; contested < 2; contested++) {
        start();
        uint64_t old = cc__state_ticket(&fiber);
        uint64_t parked = cc__state_park_join(&fiber);
        check_word(FIBER_PARKED, 5, PARK_JOIN, 0, 2);
        CHECK_EQ(cc__state_claim(&fiber, old, WAKE_TIMER), CLAIM_LOST);
        CHECK(cc__state_resume(&fiber, parked, 9, contested));
        check_word(FIBER_RUNNING, 9, 0, 0, 2);
    }
}

/* The wait was cancelled: the task's end has lost the claim, whatever the joiner does by then, also if it waits again.
 */
TEST(resume_after_a_claim) {
    for (int contested = 0; contested < 2; contested++) {
        start();
        uint64_t parked = cc__state_park_join(&fiber);
        CHECK_EQ(cc__state_claim(&fiber, parked & WORD_TICKET, WAKE_CANCEL), CLAIM_WON);
        CHECK(!cc__state_resume(&fiber, parked, 9, contested));
        check_word(FIBER_RUNNABLE, 5, WAKE_CANCEL, 0, 1);
        cc__state_run(&fiber, 5);
        CHECK(!cc__state_resume(&fiber, parked, 9, contested));
        uint64_t again = cc__state_park_join(&fiber);
        CHECK(!cc__state_resume(&fiber, parked, 9, contested));
        check_word(FIBER_PARKED, 5, PARK_JOIN, 0, 2);
        CHECK(cc__state_resume(&fiber, again, 9, contested));
    }
}

TEST(park_without_a_lock) {
    start();
    CHECK_EQ(cc__state_open(&fiber, PARK_FLAG), WORD_TICKET_ONE);
    check_word(FIBER_PARKING, 5, PARK_FLAG, 0, 1);
    CHECK(!cc__state_commit(&fiber));
    check_word(FIBER_PARKED, 5, PARK_FLAG, 0, 1);
    CHECK_EQ(cc__state_claim(&fiber, WORD_TICKET_ONE, WAKE_TIMER), CLAIM_WON);
    check_word(FIBER_RUNNABLE, 5, WAKE_TIMER, 0, 1);
}

TEST(a_wake_that_comes_first_is_kept) {
    start();
    uint64_t mine = cc__state_open(&fiber, PARK_QUEUE);
    CHECK_EQ(cc__state_claim(&fiber, mine, WAKE_CANCEL), CLAIM_LATCHED);
    check_word(FIBER_PARKING, 5, WAKE_CANCEL, WORD_LATCH, 1);
    CHECK_EQ(cc__state_claim(&fiber, mine, WAKE_OBJECT), CLAIM_LOST);
    check_word(FIBER_PARKING, 5, WAKE_CANCEL, WORD_LATCH, 1);
    CHECK(cc__state_commit(&fiber)); /* the side that commits enqueues */
    check_word(FIBER_RUNNABLE, 5, WAKE_CANCEL, 0, 1);
}

TEST(an_open_wait_is_aborted) {
    start();
    (void)cc__state_open(&fiber, PARK_FLAG);
    CHECK_EQ(cc__state_abort(&fiber), 0);
    check_word(FIBER_RUNNING, 5, 0, 0, 1);
    uint64_t mine = cc__state_open(&fiber, PARK_FLAG);
    check_word(FIBER_PARKING, 5, PARK_FLAG, 0, 2);
    CHECK_EQ(cc__state_claim(&fiber, mine, WAKE_TIMER), CLAIM_LATCHED);
    CHECK_EQ(cc__state_abort(&fiber), WAKE_TIMER); /* the wake is not lost: the abort returns it */
    check_word(FIBER_RUNNING, 5, WAKE_TIMER, 0, 2);
}

TEST(a_stale_ticket_claims_nothing) {
    start();
    uint64_t old = cc__state_open(&fiber, PARK_FLAG);
    CHECK_EQ(cc__state_abort(&fiber), 0);
    CHECK_EQ(cc__state_claim(&fiber, old, WAKE_OBJECT), CLAIM_LOST); /* RUNNING */
    uint64_t now = cc__state_open(&fiber, PARK_FLAG);
    CHECK_EQ(cc__state_claim(&fiber, old, WAKE_OBJECT), CLAIM_LOST); /* PARKING with the next ticket */
    CHECK_EQ(cc__state_claim(&fiber, now + WORD_TICKET_ONE, WAKE_OBJECT), CLAIM_LOST); /* of the future */
    CHECK(!cc__state_commit(&fiber));
    CHECK_EQ(cc__state_claim(&fiber, old, WAKE_OBJECT), CLAIM_LOST); /* PARKED */
    check_word(FIBER_PARKED, 5, PARK_FLAG, 0, 2);
    CHECK_EQ(cc__state_claim(&fiber, now, WAKE_OBJECT), CLAIM_WON);
    CHECK_EQ(cc__state_claim(&fiber, now, WAKE_OBJECT), CLAIM_LOST); /* RUNNABLE: another claim was first */
    cc__state_run(&fiber, 5);
    CHECK_EQ(cc__state_claim(&fiber, now, WAKE_OBJECT), CLAIM_LOST); /* RUNNING with that ticket still */
    cc__state_done(&fiber);
    CHECK_EQ(cc__state_claim(&fiber, now, WAKE_OBJECT), CLAIM_LOST);
    cc__state_recycle(&fiber);
    CHECK_EQ(cc__state_claim(&fiber, now, WAKE_OBJECT), CLAIM_LOST);
    check_word(FIBER_IDLE, 0, 0, 0, 2);
}

/* A reused record continues its count of tickets: those of the earlier fiber never match. */
TEST(tickets_continue_after_reuse) {
    start();
    uint64_t last = cc__state_ticket(&fiber);
    cc__state_done(&fiber);
    cc__state_recycle(&fiber);
    cc__state_take(&fiber);
    cc__state_spawn(&fiber, 1, ARGS_POINTER);
    cc__state_run(&fiber, 1);
    CHECK_EQ(cc__state_open(&fiber, PARK_FLAG), last + WORD_TICKET_ONE);
    CHECK_EQ(cc__state_claim(&fiber, last, WAKE_OBJECT), CLAIM_LOST);
}

/* After 2^44 waits the tickets start again at 0, and no other field is touched by the carry. */
TEST(tickets_wrap) {
    cc__set(&fiber.word, WORD_TICKET | cc__word_make(0, 5, WAKE_OBJECT, FIBER_RUNNING));
    CHECK_EQ(cc__state_ticket(&fiber), 0);
    check_word(FIBER_RUNNING, 5, WAKE_OBJECT, 0, 0);
    cc__set(&fiber.word, WORD_TICKET | cc__word_make(0, 5, 0, FIBER_RUNNING));
    CHECK_EQ(cc__state_open(&fiber, PARK_IO), 0);
    check_word(FIBER_PARKING, 5, PARK_IO, 0, 0);
}

TEST(names) {
    CHECK_EQ(cc__state_name(FIBER_PARKING)[3], 'K');
    CHECK_EQ(cc__state_name((enum fiber_state)7)[0], '?');
    CHECK_EQ(cc__park_name(PARK_NONE)[0], '\0');
    for (unsigned i = PARK_NONE + 1; i < PARK_REASONS; i++) {
        CHECK(cc__park_name(i)[0] != '\0');
        for (unsigned j = 0; j < i; j++) CHECK(strcmp(cc__park_name(i), cc__park_name(j)) != 0);
    }
    CHECK_EQ(cc__park_name(PARK_REASONS)[0], '\0');
    for (unsigned i = WAKE_OBJECT; i <= WAKE_CANCEL; i++) CHECK(cc__wake_name(i)[0] != '\0');
    CHECK_EQ(cc__wake_name(WAKE_CANCEL + 1)[0], '\0');
    CHECK_EQ(cc__park_name(WAKE_TIMER)[0], '\0'); /* a reason to wake is none to park */
}

/* ---- the illegal ones ---- */

TEST_DIES(spawn_of_a_running_fiber, "STATE-2: the edge 'spawn' is illegal for fiber 7.3, which is RUNNING",
          .signal = SIGABRT) {
    start();
    cc__state_spawn(&fiber, 1, ARGS_POINTER);
}

TEST_DIES(spawn_twice, "STATE-2: the edge 'spawn'", .signal = SIGABRT) {
    cc__state_spawn(&fiber, 1, ARGS_POINTER);
    cc__state_spawn(&fiber, 1, ARGS_POINTER);
}

TEST_DIES(take_of_a_live_record, "STATE-2: the edge 'take'", .signal = SIGABRT) {
    start();
    cc__state_take(&fiber);
}

TEST_DIES(run_twice, "STATE-2: the edge 'run'", .signal = SIGABRT) {
    start();
    cc__state_run(&fiber, 1);
}

TEST_DIES(run_of_a_parked_fiber, "STATE-2: the edge 'run'", .signal = SIGABRT) {
    start();
    cc__state_park(&fiber, PARK_JOIN);
    cc__state_run(&fiber, 1);
}

TEST_DIES(move_of_a_running_fiber, "STATE-2: the edge 'move'", .signal = SIGABRT) {
    start();
    cc__state_move(&fiber, 1);
}

TEST_DIES(yield_of_a_parking_fiber, "STATE-2: the edge 'yield' is illegal for fiber 7.3, which is PARKING",
          .signal = SIGABRT) {
    start();
    (void)cc__state_open(&fiber, PARK_FLAG);
    cc__state_yield(&fiber, 1);
}

TEST_DIES(ticket_while_parking, "STATE-2: the edge 'ticket'", .signal = SIGABRT) {
    start();
    (void)cc__state_open(&fiber, PARK_FLAG);
    (void)cc__state_ticket(&fiber);
}

TEST_DIES(open_twice, "STATE-2: the edge 'open'", .signal = SIGABRT) {
    start();
    (void)cc__state_open(&fiber, PARK_FLAG);
    (void)cc__state_open(&fiber, PARK_FLAG);
}

TEST_DIES(park_twice, "STATE-2: the edge 'park'", .signal = SIGABRT) {
    start();
    cc__state_park(&fiber, PARK_JOIN);
    cc__state_park(&fiber, PARK_JOIN);
}

TEST_DIES(park_to_run_while_parking, "STATE-2: the edge 'park'", .signal = SIGABRT) {
    start();
    (void)cc__state_open(&fiber, PARK_FLAG);
    (void)cc__state_park_join(&fiber);
}

TEST_DIES(commit_without_open, "STATE-2: the edge 'commit'", .signal = SIGABRT) {
    start();
    (void)cc__state_commit(&fiber);
}

TEST_DIES(commit_twice, "STATE-2: the edge 'commit' is illegal for fiber 7.3, which is PARKED", .signal = SIGABRT) {
    start();
    (void)cc__state_open(&fiber, PARK_FLAG);
    (void)cc__state_commit(&fiber);
    (void)cc__state_commit(&fiber);
}

TEST_DIES(abort_of_a_parked_fiber, "STATE-2: the edge 'abort'", .signal = SIGABRT) {
    start();
    (void)cc__state_open(&fiber, PARK_FLAG);
    (void)cc__state_commit(&fiber);
    (void)cc__state_abort(&fiber);
}

/* A waker whose wait was cancelled has lost the claim, and changes nothing. */
TEST(sole_wake_is_lost) {
    start();
    uint64_t running = cc__get(&fiber.word);
    CHECK(!cc__state_wake_sole(&fiber, WAKE_OBJECT));
    CHECK_EQ(cc__get(&fiber.word), running);
    cc__state_park(&fiber, PARK_JOIN);
    CHECK_EQ(cc__state_claim(&fiber, cc__get(&fiber.word) & WORD_TICKET, WAKE_CANCEL), CLAIM_WON);
    CHECK(!cc__state_wake_sole(&fiber, WAKE_OBJECT));
    CHECK_EQ(cc__word_reason(cc__get(&fiber.word)), WAKE_CANCEL);
}

TEST(sole_wake_twice) {
    start();
    cc__state_park(&fiber, PARK_JOIN);
    CHECK(cc__state_wake_sole(&fiber, WAKE_OBJECT));
    CHECK(!cc__state_wake_sole(&fiber, WAKE_OBJECT));
}

TEST_DIES(exit_of_a_parked_fiber, "STATE-2: the edge 'exit'", .signal = SIGABRT) {
    start();
    cc__state_park(&fiber, PARK_JOIN);
    cc__state_done(&fiber);
}

TEST_DIES(exit_twice, "STATE-2: the edge 'exit' is illegal for fiber 7.3, which is DONE", .signal = SIGABRT) {
    start();
    cc__state_done(&fiber);
    cc__state_done(&fiber);
}

TEST_DIES(recycle_of_a_running_fiber, "STATE-2: the edge 'recycle'", .signal = SIGABRT) {
    start();
    cc__state_recycle(&fiber);
}

TEST_DIES(recycle_twice, "STATE-2: the edge 'recycle'", .signal = SIGABRT) {
    start();
    cc__state_done(&fiber);
    cc__state_recycle(&fiber);
    cc__state_recycle(&fiber);
}

/* ---- races ---- */

enum { CLAIMANTS = 3 };

static struct {
    _Atomic long round; /* published by the parking side, with the ticket */
    _Atomic uint64_t ticket;
    _Atomic int answered; /* claimants that have finished the round */
    _Atomic int won, latched;
    _Atomic unsigned winner;
    long rounds;
} race;

/* The winner would enqueue the fiber; here it only counts. Each claimant has its own reason. */
static void claim_each_round(int index, void *arg) {
    (void)arg;
    for (long round = 1; round <= race.rounds; round++) {
        while (cc__get_acquire(&race.round) < round) sched_yield();
        enum claim claim = cc__state_claim(&fiber, cc__get(&race.ticket), (enum wake_reason)(WAKE_OBJECT + index));
        if (claim != CLAIM_LOST) cc__set(&race.winner, (unsigned)(WAKE_OBJECT + index));
        if (claim == CLAIM_WON) cc__add(&race.won, 1);
        if (claim == CLAIM_LATCHED) cc__add(&race.latched, 1);
        cc__add(&race.answered, 1);
    }
}

TEST(one_of_many_claims_wins, .timeout = 300) { /* each round waits for four threads, that is for CPUs */
    struct crew crew;
    long by_latch = 0;
    race.rounds = test_rounds(20000, 1000000);
    start();
    crew_start(&crew, CLAIMANTS, claim_each_round, NULL);
    for (long round = 1; round <= race.rounds; round++) {
        cc__set(&race.answered, 0);
        cc__set(&race.won, 0);
        cc__set(&race.latched, 0);
        cc__set(&race.ticket, cc__state_open(&fiber, PARK_FLAG));
        /* One round in four has the park before the claims, one has it after the first claim, two leave it
         * open. */
        bool enqueue = round % 4 == 0 && cc__state_commit(&fiber);
        cc__set_release(&race.round, round);
        while (round % 4 == 1 && cc__get_acquire(&race.answered) == 0) sched_yield();
        if (round % 4 != 0) enqueue = cc__state_commit(&fiber);
        while (cc__get_acquire(&race.answered) < CLAIMANTS) sched_yield();
        CHECK_EQ(cc__get(&race.won) + cc__get(&race.latched), 1); /* exactly one ends the wait */
        CHECK_EQ(enqueue, cc__get(&race.latched));                /* and exactly one enqueues */
        CHECK_EQ(cc__word_state(word()), FIBER_RUNNABLE);
        CHECK_EQ(cc__word_reason(word()), cc__get(&race.winner));
        CHECK_EQ(ticket(), cc__get(&race.ticket));
        by_latch += enqueue;
        cc__state_run(&fiber, 5);
    }
    crew_join(&crew);
    CHECK(by_latch >= race.rounds / 4);
    CHECK(by_latch <= race.rounds - race.rounds / 4);
}

/* The same against an abort: the wait ends once, and the aborting side learns of a wake that came first. */
TEST(a_claim_races_with_an_abort, .timeout = 300) {
    struct crew crew;
    race.rounds = test_rounds(20000, 1000000);
    start();
    crew_start(&crew, CLAIMANTS, claim_each_round, NULL);
    for (long round = 1; round <= race.rounds; round++) {
        cc__set(&race.answered, 0);
        cc__set(&race.latched, 0);
        cc__set(&race.ticket, cc__state_open(&fiber, PARK_FLAG));
        cc__set_release(&race.round, round);
        while (round % 4 == 1 && cc__get_acquire(&race.answered) == 0) sched_yield();
        unsigned woken_by = cc__state_abort(&fiber);
        while (cc__get_acquire(&race.answered) < CLAIMANTS) sched_yield();
        CHECK_EQ(cc__get(&race.won), 0); /* nobody may enqueue a fiber that runs */
        CHECK_EQ(woken_by, cc__get(&race.latched) ? cc__get(&race.winner) : 0);
        CHECK_EQ(cc__word_state(word()), FIBER_RUNNING);
    }
    crew_join(&crew);
}
