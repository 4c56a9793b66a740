/* net_races.c - connections that are closed while in use, and lookups whose callers leave: no caller gets bytes of
 * another connection or the result of another lookup. */
#include "harness.h"

#include <ccc/ccc.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static uint64_t random_of(uint64_t *seed) {
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 33;
}

/* ---- closes ---- */

/* Each pair has bytes of its own; numbers of descriptors are used again all the time. */
CC_TASK(read_own, {
    CCConn *conn;
    unsigned char own;
}) {
    unsigned char bytes[64];
    size_t n;
    int error = cc_read_full(self->conn, bytes, sizeof bytes, &n); /* never so many come */
    CHECK(error == EBADF || error == ENODATA || error == ECONNRESET);
    for (size_t i = 0; i < n; i++) CHECK_EQ(bytes[i], self->own);
    return NULL;
}

CC_TASK(pairs, { uint64_t number; }) {
    uint64_t seed = test_seed() + self->number;
    for (long round = 0; round < test_rounds(60, 20000); round++) {
        unsigned char own = (unsigned char)(self->number * 37 + (uint64_t)round);
        CCConn *here, *there;
        CHECK_EQ(cc_socketpair(&here, &there), 0);
        size_t at_first = cc_io_waiters();
        CC_NURSERY(n) {
            CHECK_EQ(CC_GO_IN(n, read_own, .conn = here, .own = own), 0);
            while (cc_io_waiters() <= at_first && random_of(&seed) % 50 != 0) cc_yield(); /* most often it waits now */
            for (unsigned k = 0; k < random_of(&seed) % 5; k++) MAY_FAIL(cc_write(there, &own, 1, NULL));
            if (random_of(&seed) % 2 == 0) {
                CHECK_EQ(cc_shutdown(here, CC_SHUT_BOTH), 0); /* ends it whether it waits or not */
            } else {
                cc_close(there);
                there = NULL;
            }
        }
        cc_close(here);
        cc_close(there);
    }
    return NULL;
}

/* The reader has certainly started: the connection is closed while it is used. */
static void *close_while_read(void *arg) {
    uint64_t seed = test_seed();
    for (long round = 0; round < test_rounds(100, 20000); round++) {
        unsigned char own = (unsigned char)round;
        CCConn *here, *there, *next, *next_there;
        CHECK_EQ(cc_socketpair(&here, &there), 0);
        CC_NURSERY(n) {
            CHECK_EQ(CC_GO_IN(n, read_own, .conn = here, .own = own), 0);
            while (cc_io_waiters() == 0) cc_yield();
            if (random_of(&seed) % 2 == 0) CHECK_EQ(cc_write(there, &own, 1, NULL), 0); /* it may be returning */
            cc_close(here);
            CHECK_EQ(cc_socketpair(&next, &next_there), 0); /* the same number, most likely */
            CHECK_EQ(cc_write(next_there, "foreign bytes", 13, NULL), 0);
        }
        cc_close(there);
        cc_close(next);
        cc_close(next_there);
    }
    return arg;
}

static void *all_pairs(void *arg) {
    CC_NURSERY(n)
    for (uint64_t i = 0; i < 8; i++) CHECK_EQ(CC_GO_IN(n, pairs, .number = i), 0);
    return arg;
}

TEST_WORKERS(closes_and_reused_numbers) {
    CHECK_EQ(cc_run(close_while_read, NULL, NULL), 0);
    CHECK_EQ(cc_run(all_pairs, NULL, NULL), 0);
}

/* ---- lookups ---- */

static _Atomic uint64_t lookups;

static int resolver(const char *host, const char *service, const CCResolveHints *hints, CCAddr *list, size_t *count,
                    void *arg) {
    (void)service, (void)hints, (void)arg;
    uint64_t seed = test_seed() + lookups++;
    usleep((useconds_t)(random_of(&seed) % 300));
    if (random_of(&seed) % 5 == 0) return ENOENT;
    *count = 1;
    int error = cc_addr_parse(&list[0], "10.0.0.0:1");
    list[0].bytes[3] = (unsigned char)(host[4] - 'a');
    return error;
}

CC_TASK(ask, { uint64_t number; }) {
    uint64_t seed = ~test_seed() + self->number;
    for (long round = 0; round < test_rounds(40, 10000); round++) {
        char host[] = "hosta";
        CCAddr list[2];
        size_t n = 2;
        host[4] = (char)('a' + random_of(&seed) % 3);
        CCResolveHints hints = {.fresh = random_of(&seed) % 2 == 0};
        CCDeadline deadline = random_of(&seed) % 2 == 0 ? cc_after_ns(random_of(&seed) % 300000) : CC_FOREVER;
        int error = 0;
        if (random_of(&seed) % 3 == 0) {
            CC_WITH_DEADLINE(deadline) error = cc_resolve(host, "1", &hints, list, &n);
        } else {
            error = cc_resolve_until(host, "1", &hints, list, &n, deadline);
        }
        CHECK(error == 0 || error == ENOENT || error == ETIMEDOUT || error == ECANCELED);
        if (deadline.ns == UINT64_MAX) CHECK(error == 0 || error == ENOENT);
        if (error == 0) CHECK(n == 1 && list[0].bytes[3] == host[4] - 'a');
        if (random_of(&seed) % 40 == 0) cc_resolve_hook(resolver, NULL); /* forgets */
    }
    return NULL;
}

static void *all_lookups(void *arg) {
    cc_resolve_hook(resolver, NULL);
    CC_NURSERY(n)
    for (uint64_t i = 0; i < 12; i++) CHECK_EQ(CC_GO_IN(n, ask, .number = i), 0);
    cc_resolve_hook(NULL, NULL);
    return arg;
}

TEST_WORKERS(callers_that_leave) {
    CHECK_EQ(cc_run(all_lookups, NULL, NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(60000), 0);
}
