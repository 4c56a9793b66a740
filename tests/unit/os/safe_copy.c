/* safe_copy.c - mapped memory is copied, unmapped memory is an error, not a fault; by both methods. */
#include "harness.h"

#include "os/safe_copy.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef bool (*safe_copy)(void *to, const void *from, size_t n);
static const safe_copy ways[] = {cc__safe_copy, cc__safe_copy_by_pipe};
enum { WAYS = sizeof ways / sizeof ways[0] };

static char *map(size_t pages) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *at = mmap(NULL, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(at != MAP_FAILED);
    return at;
}

TEST(copies_what_is_there) {
    size_t n = 100000; /* more than a pipe holds */
    char *from = malloc(n), *to = malloc(n);
    for (int way = 0; way < WAYS; way++) {
        for (size_t i = 0; i < n; i++) from[i] = (char)(i * 7 + (size_t)way);
        memset(to, 0, n);
        CHECK(ways[way](to, from, n));
        CHECK_EQ(memcmp(to, from, n), 0);
        CHECK(ways[way](to, from + 3, 5));
        CHECK_EQ(memcmp(to, from + 3, 5), 0);
    }
    free(from);
    free(to);
}

TEST(refuses_what_is_not) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *at = map(3), to[64];
    CHECK_EQ(munmap(at + page, page), 0);
    CHECK_EQ(mprotect(at + 2 * page, page, PROT_NONE), 0);
    for (int way = 0; way < WAYS; way++) {
        errno = 1234;
        CHECK(!ways[way](to, NULL, 1));
        CHECK(!ways[way](to, (void *)8, 8));
        CHECK(!ways[way](to, at + page, 1));
        CHECK(!ways[way](to, at + 2 * page, 1));
        CHECK(!ways[way](to, at + page - 8, 16)); /* half of it is there */
        CHECK(ways[way](to, at + page - 16, 16));
        CHECK(ways[way](to, NULL, 0));
        CHECK_EQ(errno, 1234);
    }
}

TEST(reads_of_freed_memory_are_not_instrumented) {
    char *at = malloc(64), to[64];
    volatile uintptr_t where = (uintptr_t)at; /* or the compiler would reject it */
    at[0] = 1;
    free(at);
    (void)cc__safe_copy(to, (const void *)where, sizeof to); /* a sanitizer that watched would end the case */
}

static _Atomic int over;

static void *map_and_unmap(void *arg) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    while (!over) {
        CHECK(mmap(arg, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == arg);
        *(volatile char *)arg = 1;
        CHECK_EQ(mprotect(arg, page, PROT_NONE), 0);
    }
    return NULL;
}

TEST(survives_mappings_that_change) {
    char *at = map(1), to[256];
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, map_and_unmap, at), 0);
    for (long i = test_scale(20000); i > 0; i--) (void)ways[i % WAYS](to, at, sizeof to);
    over = 1;
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

/* Several threads at once: none gets another's bytes. */
static void *copy_mine(void *arg) {
    unsigned char mine[512], to[512];
    memset(mine, (int)(intptr_t)arg, sizeof mine);
    for (long i = test_scale(5000); i > 0; i--) {
        CHECK(ways[i % WAYS](to, mine, sizeof mine));
        CHECK_EQ(memcmp(to, mine, sizeof mine), 0);
    }
    return NULL;
}

TEST(threads_do_not_mix) {
    pthread_t threads[4];
    for (intptr_t i = 0; i < 4; i++) CHECK_EQ(pthread_create(&threads[i], NULL, copy_mine, (void *)(i + 1)), 0);
    for (int i = 0; i < 4; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
}
