/* barrier.c - the litmus test of the asymmetric barrier: of a light and a heavy side that race, at least one sees
 * the other. */
#include "harness.h"

#include "../crew.h"
#include "sync/barrier.h"

#include <sched.h>

/* Each on its own line: the reordering that the barrier forbids needs them apart. */
static struct {
    _Alignas(CC_LINE) _Atomic int light;
    _Alignas(CC_LINE) _Atomic int heavy;
    _Alignas(CC_LINE) _Atomic long round[2]; /* the round that each side has finished */
    _Alignas(CC_LINE) int light_saw, heavy_saw;
    long rounds;
} shared;

static void meet(int side, long round) {
    cc__set_release(&shared.round[side], round);
    for (int spins = 0; cc__get_acquire(&shared.round[!side]) < round; spins++)
        if (spins > 1000) sched_yield();
}

static void side(int index, void *arg) {
    (void)arg;
    for (long i = 0; i < shared.rounds; i++) {
        meet(index, 4 * i + 1);
        if (index == 0) {
            cc__set(&shared.light, 1);
            cc__barrier_light();
            shared.light_saw = cc__get(&shared.heavy);
        } else {
            cc__set(&shared.heavy, 1);
            cc__barrier_heavy();
            shared.heavy_saw = cc__get(&shared.light);
        }
        meet(index, 4 * i + 2);
        if (index == 0) {
            CHECK(shared.light_saw || shared.heavy_saw); /* BARRIER-1 */
            cc__set(&shared.light, 0);
            cc__set(&shared.heavy, 0);
        }
        meet(index, 4 * i + 3);
    }
}

static void litmus(void) {
    shared.rounds = test_rounds(30000, 1000000);
    crew_run(2, side, NULL);
    CHECK_EQ(cc__get(&shared.round[0]), 4 * (shared.rounds - 1) + 3);
}

TEST(never_both_blind) {
    cc__barrier_init(true);
    litmus();
}

TEST(never_both_blind_without_membarrier) {
    cc__barrier_asymmetric = false;
    litmus();
}

TEST(may_be_initialised_again) {
    cc__barrier_init(true);
    bool before = cc__barrier_asymmetric;
    cc__barrier_init(true);
    CHECK_EQ(cc__barrier_asymmetric, before);
    cc__barrier_heavy();
}
