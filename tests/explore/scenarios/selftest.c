/* selftest.c - what the explorer must report, and what it must not: known programs with known outcomes. Those that fail
 * are protocols with bugs that have been shipped elsewhere.
 */
#include "explore.h"
#include "os/futex.h"
#include "sync/barrier.h"

static _Atomic uint32_t x, y;
static uint32_t saw_x, saw_y;
static int plain;

/* ---- a message: data, then a flag ---- */

static void say(void) {
    cc__set(&x, 1);
    cc__set_release(&y, 1);
}
static void read_it(void) {
    if (cc__get_acquire(&y)) EX_EQ(cc__get(&x), 1);
}
SCENARIO(litmus_message, "release and acquire carry a message", .threads = {say, read_it});

static void say_relaxed(void) {
    cc__set(&x, 1);
    cc__set(&y, 1);
}
SCENARIO(fails_message_release, "a message without a release", .threads = {say_relaxed, read_it},
         .fails = EX_FAILS_WEAK);

static void read_relaxed(void) {
    if (cc__get(&y)) EX_EQ(cc__get(&x), 1);
}
SCENARIO(fails_message_acquire, "a message without an acquire", .threads = {say, read_relaxed}, .fails = EX_FAILS_WEAK);

static void say_plain(void) {
    plain = 1;
    cc__set(&y, 1);
}
static void read_plain(void) {
    if (cc__get_acquire(&y)) EX_EQ(plain, 1);
}
SCENARIO(fails_race, "a plain message without a release", .threads = {say_plain, read_plain}, .fails = EX_FAILS_SC);

/* A release sequence continues through another thread's read-modify-write. */
static void bump_relaxed(void) {
    (void)cc__add_relaxed(&y, 1);
}
static void read_two(void) {
    if (cc__get_acquire(&y) == 2) EX_EQ(cc__get(&x), 1);
}
static void say_add(void) {
    cc__set(&x, 1);
    (void)cc__add(&y, 1);
}
SCENARIO(litmus_chain, "a release sequence through a read-modify-write", .threads = {say_add, bump_relaxed, read_two});

/* ---- publish, then look ---- */

static void x_then_y(void) {
    cc__set_seq(&x, 1);
    saw_y = cc__get_seq(&y);
}
static void y_then_x(void) {
    cc__set_seq(&y, 1);
    saw_x = cc__get_seq(&x);
}
static void one_saw(void) {
    EX_CHECK(saw_x || saw_y);
}
SCENARIO(litmus_dekker, "sequentially consistent on both sides", .threads = {x_then_y, y_then_x}, .check = one_saw);

static void x_then_y_weak(void) {
    cc__set_release(&x, 1);
    saw_y = cc__get_acquire(&y);
}
SCENARIO(fails_dekker, "release and acquire on one side", .threads = {x_then_y_weak, y_then_x}, .check = one_saw,
         .fails = EX_FAILS_TSO);

static void x_light_y(void) {
    cc__set(&x, 1);
    cc__barrier_light();
    saw_y = cc__get(&y);
}
static void y_heavy_x(void) {
    cc__set(&y, 1);
    cc__barrier_heavy();
    saw_x = cc__get(&x);
}
static void asymmetric(void) {
    cc__barrier_init(true);
}
SCENARIO(barrier_pair, "BARRIER-1: one light side, one heavy side", .setup = asymmetric,
         .threads = {x_light_y, y_heavy_x}, .check = one_saw);
static void y_light_x(void) {
    cc__set(&y, 1);
    cc__barrier_light();
    saw_x = cc__get(&x);
}
SCENARIO(fails_light_light, "two light sides", .setup = asymmetric, .threads = {x_light_y, y_light_x}, .check = one_saw,
         .membarrier = true, .fails = EX_FAILS_TSO);

/* A fence on one side, a read-modify-write and a load on the other. */
static void x_fence_y(void) {
    cc__set(&x, 1);
    cc__full_fence();
    saw_y = cc__get(&y);
}
SCENARIO(litmus_fence_dekker, "a fence on one side, sequentially consistent on the other",
         .threads = {x_fence_y, y_then_x}, .check = one_saw);
static void y_then_x_relaxed(void) {
    cc__set_seq(&y, 1);
    saw_x = cc__get(&x);
}
SCENARIO(fails_fence_relaxed, "a read-modify-write is no fence: the load after it is relaxed",
         .threads = {x_fence_y, y_then_x_relaxed}, .check = one_saw, .fails = EX_FAILS_WEAK);
static void x_then_y_relaxed(void) {
    cc__set(&x, 1);
    saw_y = cc__get(&y);
}
SCENARIO(fails_no_fence, "sequentially consistent on one side only", .threads = {x_then_y_relaxed, y_then_x},
         .check = one_saw, .fails = EX_FAILS_TSO);

/* A fence after the flag is too late for a reader in between. */
static void say_then_fence(void) {
    cc__set(&x, 1);
    cc__set(&y, 1);
    cc__full_fence();
}
static void read_fence(void) {
    if (!cc__get(&y)) return;
    cc__full_fence();
    EX_EQ(cc__get(&x), 1);
}
SCENARIO(fails_fence_late, "a message, and a fence after it", .threads = {say_then_fence, read_fence},
         .fails = EX_FAILS_WEAK);
static void say_between(void) {
    cc__set(&x, 1);
    cc__full_fence();
    cc__set(&y, 1);
}
SCENARIO(litmus_fences, "the fence is before the flag", .threads = {say_between, read_fence});

/* Two readers may not see two stores in different orders when all is sequentially consistent. */
static uint32_t first[2], second[2];
static void set_x(void) {
    cc__set_seq(&x, 1);
}
static void set_y(void) {
    cc__set_seq(&y, 1);
}
static void read_xy(void) {
    first[0] = cc__get_seq(&x);
    second[0] = cc__get_seq(&y);
}
static void read_yx(void) {
    first[1] = cc__get_seq(&y);
    second[1] = cc__get_seq(&x);
}
static void agree(void) {
    EX_CHECK(!(first[0] && !second[0] && first[1] && !second[1]));
}
SCENARIO(litmus_two_readers, "one order for all", .threads = {set_x, set_y, read_xy, read_yx}, .check = agree);

/* ---- lost wakes ---- */

static _Atomic uint32_t state, pending;
enum { RUNS, PARKING, PARKED };

/* The waker checks, then sets the latch: the parker commits and checks in between. */
static void parks(void) {
    cc__set_seq(&state, PARKING);
    cc__set_seq(&state, PARKED);
    if (cc__swap_seq(&pending, 0)) return;
    while (cc__get_seq(&state) == PARKED) cc__futex_wait(&state, PARKED, CC_FUTEX_FOREVER);
}
static void wakes(void) {
    uint32_t seen = cc__get_seq(&state);
    if (seen == PARKED) {
        cc__set_seq(&state, RUNS);
        cc__futex_wake(&state, 1);
    } else {
        cc__set_seq(&pending, 1);
    }
}
SCENARIO(fails_lost_wake, "check, then latch: two words", .threads = {parks, wakes}, .fails = EX_FAILS_SC);

static void wakes_in_order(void) {
    cc__set_seq(&pending, 1);
    uint32_t parked = PARKED;
    if (cc__cas_seq(&state, &parked, RUNS)) cc__futex_wake(&state, 1);
}
SCENARIO(litmus_wake, "latch, then check", .threads = {parks, wakes_in_order});

/* A wake that comes late ends the next wait on the word. */
static void tells_twice(void) {
    cc__set_release(&x, 1);
    cc__futex_wake(&x, 1);
    while (cc__get_acquire(&x) != 0) ex_relax();
    cc__set_release(&x, 1);
    cc__futex_wake(&x, 1);
}
static void trusts_a_wake(void) {
    while (cc__get_acquire(&x) == 0) cc__futex_wait(&x, 0, CC_FUTEX_FOREVER);
    cc__set_release(&x, 0);
    cc__futex_wait(&x, 0, CC_FUTEX_FOREVER);
    EX_EQ(cc__get_acquire(&x), 1);
}
SCENARIO(fails_late_wake, "a wait that takes every end of it for the event", .threads = {tells_twice, trusts_a_wake},
         .fails = EX_FAILS_SC);

static _Atomic uint32_t locks[2];
static void take(_Atomic uint32_t *lock) {
    uint32_t free_word = 0;
    while (!cc__cas(lock, &free_word, 1)) {
        cc__futex_wait(lock, 1, CC_FUTEX_FOREVER);
        free_word = 0;
    }
}
static void give(_Atomic uint32_t *lock) {
    cc__set_seq(lock, 0);
    cc__futex_wake(lock, 1);
}
static void in_order(void) {
    take(&locks[0]);
    take(&locks[1]);
    give(&locks[1]);
    give(&locks[0]);
}
static void out_of_order(void) {
    take(&locks[1]);
    take(&locks[0]);
    give(&locks[0]);
    give(&locks[1]);
}
SCENARIO(fails_deadlock, "two locks in two orders", .threads = {in_order, out_of_order}, .fails = EX_FAILS_SC);

/* A spinner that waits for something that never happens. */
static void spins(void) {
    while (cc__get_acquire(&x) == 0) ex_relax();
}
SCENARIO(fails_livelock, "a loop that never ends", .threads = {spins, read_xy}, .fails = EX_FAILS_SC);

static char *block;
static void allocate(void) {
    block = ex_alloc(16);
}
static void release_block(void) {
    ex_free(block);
    cc__set(&x, 1);
}
static void use_block(void) {
    block[3] = 1;
}
SCENARIO(fails_use_after_free, "memory is used by one and freed by another", .setup = allocate,
         .threads = {use_block, release_block}, .fails = EX_FAILS_SC);

/* It publishes that it is done with the block, and uses it once more. Between the two there is no point at which to
 * switch. */
static void says_then_uses(void) {
    cc__set_release(&y, 1);
    saw_x = (uint32_t)block[3];
}
static void reads_and_frees(void) {
    if (cc__get_acquire(&y)) ex_free(block);
}
SCENARIO(fails_use_after_word, "plain memory is used after the word that lets another free it", .setup = allocate,
         .threads = {says_then_uses, reads_and_frees}, .fails = EX_FAILS_SC);
static void says_then_sets(void) {
    cc__set_release(&y, 1);
    cc__set((_Atomic uint32_t *)(void *)block, 1);
}
SCENARIO(fails_set_after_word, "the same, an atomic word of it", .setup = allocate,
         .threads = {says_then_sets, reads_and_frees}, .fails = EX_FAILS_SC);
static void uses_then_says(void) {
    saw_x = (uint32_t)block[3];
    cc__set_release(&y, 1);
}
SCENARIO(litmus_use_then_free, "memory is used, then freed by another", .setup = allocate,
         .threads = {uses_then_says, reads_and_frees});

/* The same with what lies in a frame: its thread leaves it. */
static int *in_frame;
static CC_NOINLINE void waits_in_frame(void) {
    int here = 0;
    in_frame = &here;
    cc__set_release(&x, 1);
    while (cc__get_acquire(&y) == 0) ex_relax();
}
static void leaves_frame(void) {
    waits_in_frame();
    cc__set(&state, 1);
}
static void says_then_writes_there(void) {
    while (cc__get_acquire(&x) == 0) ex_relax();
    int *there = in_frame;
    cc__set_release(&y, 1);
    *there = 1;
}
SCENARIO(fails_frame_after_word, "a frame is written to after the word that lets its thread leave it",
         .threads = {leaves_frame, says_then_writes_there}, .fails = EX_FAILS_SC);

/* A worker, which does not have to end, fails after the last of the other threads has ended. */
static void *works(void *arg) {
    while (cc__get_acquire(&x) == 0) cc__futex_wait(&x, 0, CC_FUTEX_FOREVER);
    cc__set_release(&y, 1);
    cc__futex_wake(&y, 1);
    EX_EQ(cc__get(&y), 1);
    return arg;
}
static void worker_waits(void) {
    (void)ex_thread_start(works, NULL);
    ex_settle();
}
static void calls_and_ends(void) {
    cc__set_release(&x, 1);
    cc__futex_wake(&x, 1);
    while (cc__get_acquire(&y) == 0) cc__futex_wait(&y, 0, CC_FUTEX_FOREVER);
    cc__set(&y, 2);
}
SCENARIO(fails_worker_late, "THREADS-4: a worker fails after the last scenario thread's last step",
         .setup = worker_waits, .threads = {calls_and_ends}, .fails = EX_FAILS_SC);
