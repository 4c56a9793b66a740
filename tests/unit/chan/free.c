/* free.c - a double free of a channel is detected; a new one at the address of a freed one is not mistaken for it. */
#include "harness.h"

#include <ccc/ccc.h>
#include <signal.h>

TEST_DIES(twice, "cc_chan_free: the channel 0x", .signal = SIGABRT) {
    CCChan *ch = cc_chan_create(sizeof(int), 4);
    cc_chan_free(ch);
    cc_chan_free(ch);
}

TEST_DIES(once_more_than_referenced, "has been freed already", .signal = SIGABRT) {
    CCChan *ch = cc_chan_create(sizeof(int), 0);
    CHECK(cc_chan_ref(ch) == ch);
    for (int i = 0; i < 3; i++) cc_chan_free(ch);
}

TEST_DIES(while_others_live, "has been freed already", .signal = SIGABRT) {
    CCChan *ch = cc_chan_create(sizeof(int), 0), *other = cc_chan_create(sizeof(int), 0);
    cc_chan_free(ch);
    CHECK_EQ(cc_chan_close(other), 0);
    cc_chan_free(ch);
}

/* The allocator returns the same memory again. */
TEST(same_place_again) {
    enum { MANY = 100 };
    CCChan *all[MANY];
    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < MANY; i++) {
            CHECK((all[i] = cc_chan_create(sizeof(int), (size_t)(i % 3))) != NULL);
            if (i % 4 == 0) CHECK(cc_chan_ref(all[i]) == all[i]);
        }
        for (int i = 0; i < MANY; i++) {
            if (i % 4 == 0) cc_chan_free(all[i]);
            CHECK_EQ(cc_chan_len(all[i]), 0);
            cc_chan_free(all[i]);
        }
    }
}
