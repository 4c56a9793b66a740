/* fiber.c - the state word and the pools of src/fiber, without a scheduler: threads act as the fiber, its wakers and a
 * worker.
 */
#include "explore.h"
#include "fiber/pool.h"
#include "fiber/state.h"

static struct fiber f;
static _Atomic uint64_t published; /* the ticket */
static _Atomic uint32_t enqueued;  /* how often RUNNABLE was written */
static _Atomic uint32_t accepted;  /* wakes that ended the wait */
static int payload;

static void enqueue(void) {
    (void)cc__add_relaxed(&enqueued, 1);
}

static void runs(void) {
    cc__set(&f.word, cc__word_make(0, 1, 0, FIBER_RUNNING));
}

/* ---- park and wake ---- */

static void parks(void) {
    uint64_t ticket = cc__state_open(&f, PARK_FLAG);
    cc__set_release(&published, ticket);
    if (cc__state_commit(&f)) enqueue();
}
static void wake_for(enum wake_reason reason) {
    uint64_t ticket = cc__get_acquire(&published);
    if (ticket == 0) return;
    enum claim claim = cc__state_claim(&f, ticket, reason);
    if (claim == CLAIM_WON) enqueue();
    if (claim != CLAIM_LOST) (void)cc__add_relaxed(&accepted, 1);
}
static void wakes(void) {
    wake_for(WAKE_OBJECT);
}
static void rings(void) {
    wake_for(WAKE_TIMER);
}
static void one_wake(void) {
    EX_CHECK(cc__get(&accepted) <= 1);
    EX_EQ(cc__get(&enqueued), cc__get(&accepted));
    EX_EQ(cc__word_state(cc__get(&f.word)), cc__get(&accepted) ? FIBER_RUNNABLE : FIBER_PARKED);
}
SCENARIO(state_latch, "LATCH-1: a wake before, during and after the park", .setup = runs, .threads = {parks, wakes},
         .check = one_wake);
SCENARIO(state_two_wakers, "STATE-3: a waker and a timer: one ends it, one enqueues", .setup = runs,
         .threads = {parks, wakes, rings}, .check = one_wake);

static _Atomic uint32_t aborted_by;
static void changes_its_mind(void) {
    uint64_t ticket = cc__state_open(&f, PARK_FLAG);
    cc__set_release(&published, ticket);
    cc__set(&aborted_by, cc__state_abort(&f));
}
static void abort_check(void) {
    EX_EQ(cc__word_state(cc__get(&f.word)), FIBER_RUNNING);
    EX_EQ(cc__get(&enqueued), 0);
    EX_EQ(cc__get(&aborted_by) != 0, cc__get(&accepted));
}
SCENARIO(state_abort, "a wait is aborted while a waker claims it", .setup = runs, .threads = {changes_its_mind, wakes},
         .check = abort_check);

/* ---- tickets ---- */

static uint64_t first_ticket;
static void parked(void) {
    runs();
    first_ticket = cc__state_open(&f, PARK_FLAG);
    EX_CHECK(!cc__state_commit(&f));
}
/* The winner runs the fiber, which waits again. */
static void wake_and_run(enum wake_reason reason) {
    if (cc__state_claim(&f, first_ticket, reason) != CLAIM_WON) return;
    (void)cc__add_relaxed(&accepted, 1);
    cc__state_run(&f, 1);
    payload++;
    (void)cc__state_open(&f, PARK_QUEUE);
    EX_CHECK(!cc__state_commit(&f));
}
static void claim_a(void) {
    wake_and_run(WAKE_OBJECT);
}
static void claim_b(void) {
    wake_and_run(WAKE_TIMER);
}
static void claim_c(void) {
    wake_and_run(WAKE_CANCEL);
}
static void second_wait(void) {
    EX_EQ(cc__get(&accepted), 1);
    EX_EQ(cc__word_state(cc__get(&f.word)), FIBER_PARKED);
    EX_EQ(cc__get(&f.word) & WORD_TICKET, first_ticket + WORD_TICKET_ONE);
}
SCENARIO(state_stale, "STATE-1: a claim of the first wait does not end the second", .setup = parked,
         .threads = {claim_a, claim_b, claim_c}, .check = second_wait);

/* The claimant may read what the fiber wrote on its stack before it parked, and the fiber what the claimant writes. */
static int on_stack, for_fiber;
static void parks_with_data(void) {
    uint64_t ticket = cc__state_open(&f, PARK_FLAG);
    cc__set_release(&published, ticket);
    on_stack = 5;
    if (cc__state_commit(&f)) enqueue();
}
static void wakes_with_data(void) {
    uint64_t ticket = cc__get_acquire(&published);
    if (ticket == 0) return;
    if (cc__state_claim(&f, ticket, WAKE_OBJECT) != CLAIM_WON) return;
    EX_EQ(on_stack, 5);
    on_stack = 6;
}
SCENARIO(state_quiet_stack, "commit releases the stack, a claim acquires it", .setup = runs,
         .threads = {parks_with_data, wakes_with_data});

static void done_first(void) {
    cc__set(&f.word, FIBER_IDLE);
}
static void spawns(void) {
    cc__state_take(&f);
    for_fiber = 7;
    cc__state_spawn(&f, 0, ARGS_POINTER);
}
static void first_run(void) {
    if (cc__word_state(cc__get_acquire(&f.word)) != FIBER_RUNNABLE) return;
    EX_EQ(for_fiber, 7);
    cc__state_run(&f, 1);
}
SCENARIO(state_spawn, "a spawn releases what the first run reads", .setup = done_first, .threads = {spawns, first_run});

/* ---- pool ---- */

static struct fiber *taken[2];
static void take_and_give(int who) {
    struct fiber *mine = cc__pool_take_slow(NULL);
    EX_CHECK(mine != NULL);
    cc__state_take(mine);
    taken[who] = mine;
    mine->site = NULL; /* plain: two owners would race */
    mine->fn = NULL;
    cc__pool_give_slow(NULL, mine);
}
static void pool_a(void) {
    take_and_give(0);
}
static void pool_b(void) {
    take_and_give(1);
}
static void pool_look(void) {
    for (uint32_t slot = 0; slot < cc__pool_size(); slot++) EX_CHECK(cc__pool_at(slot) != NULL);
}
SCENARIO(pool_two, "POOL-1: two take and give, one walks", .setup = cc__pool_init,
         .threads = {pool_a, pool_b, pool_look});
