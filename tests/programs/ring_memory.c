/* ring_memory.c - a channel's ring costs memory as it is filled, not when it is created. */
#include "harness.h"

#include "base/san.h"

#include <ccc/ccc.h>
#include <stdio.h>
#include <unistd.h>

static long resident_kib(void) {
    long size = 0, pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    CHECK(f != NULL && fscanf(f, "%ld %ld", &size, &pages) == 2);
    fclose(f);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

TEST(a_large_ring_is_not_touched) {
#ifdef CC_TSAN
    SKIP("the race detector marks all of a new block");
#endif
    enum { CAPACITY = 1 << 23, RING_KIB = CAPACITY / 1024 * 8 };
    long before = resident_kib();
    CCChan *ch = cc_chan_create(sizeof(uint64_t), CAPACITY);
    CHECK(ch != NULL);
    long grown = resident_kib() - before;
    if (grown > RING_KIB / 4) test_fail(__FILE__, __LINE__, "%ld KiB for a ring of %d KiB", grown, RING_KIB);
    for (uint64_t i = 0; i < 1000; i++) CHECK_EQ(cc_chan_send(ch, &i, sizeof i), 0);
    for (uint64_t i = 0, value; i < 1000; i++) {
        CHECK_EQ(cc_chan_recv(ch, &value, sizeof value), 0);
        CHECK_EQ(value, i);
    }
    CHECK(resident_kib() - before <= RING_KIB / 4);
    cc_chan_free(ch);
}
