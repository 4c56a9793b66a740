/* free.c - a double free of a nursery is detected; a new one at the address of a freed one is not mistaken for it. */
#include "harness.h"

#include <ccc/ccc.h>
#include <signal.h>

TEST_DIES(twice, "cc_nursery_free: the nursery 0x", .signal = SIGABRT) {
    CCNursery *n = cc_nursery_create(NULL);
    CHECK_EQ(cc_nursery_free(n), 0);
    (void)cc_nursery_free(n);
}

TEST_DIES(while_others_live, "has been freed already", .signal = SIGABRT) {
    CCNursery *n = cc_nursery_create(NULL), *other = cc_nursery_create(NULL);
    CHECK_EQ(cc_nursery_free(n), 0);
    CHECK_EQ(cc_nursery_cancel(other), 0);
    (void)cc_nursery_free(n);
}

/* The allocator returns the same memory again, also for blocks. */
TEST(same_place_again) {
    enum { MANY = 100 };
    CCNursery *all[MANY];
    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < MANY; i++) CHECK((all[i] = cc_nursery_create(NULL)) != NULL);
        for (int i = 0; i < MANY; i++) {
            CC_NURSERY(block)(void) block;
            CHECK_EQ(cc_nursery_free(all[i]), 0);
        }
    }
}
