/* net.h - what tests of connections share. */
#ifndef CCC_TESTS_UNIT_NET_H
#define CCC_TESTS_UNIT_NET_H

#include "harness.h"

#include <ccc/ccc.h>
#include <unistd.h>

__attribute__((unused)) static void await_waiters(size_t n) {
    while (cc_io_waiters() < n) cc_yield();
}

/* The lowest number that is free: the same as before if nothing was left open. */
__attribute__((unused)) static int lowest_fd(void) {
    int fd = dup(0);
    CHECK(fd >= 0);
    close(fd);
    return fd;
}

/* A connection to a listener of this program. */
__attribute__((unused)) static CCConn *dial(CCListener *l) {
    CCAddr addr;
    CCConn *c;
    CHECK_EQ(cc_listener_addr(l, &addr), 0);
    CHECK_EQ(cc_dial_addr(&c, &addr, NULL, cc_after_ms(60000)), 0);
    return c;
}

#endif
