/* selftest.c - one case for each verdict of the harness; many of them fail on purpose.
 *
 * selftest.sh has the expected verdicts.
 */
#include "harness.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *check_in_thread(void *unused) {
    (void)unused;
    CHECK(!"a check in a thread");
    return NULL;
}

TEST(passes) {
    CHECK(1 + 1 == 2);
    CHECK_EQ(1 + 1, 2);
    CHECK_EQ(test_scale(0), 1);
    CHECK_EQ(test_seed(), test_seed());
}

TEST(fails_a_check) {
    CHECK_EQ(1 + 1, 3);
}

TEST(fails_in_a_thread) {
    pthread_t thread;
    pthread_create(&thread, NULL, check_in_thread, NULL);
    pthread_join(thread, NULL);
}

TEST(crashes) {
    puts("a last word");
    raise(SIGKILL);
}

TEST(exits_early) {
    exit(0);
}

TEST(exits_when_done) {
    DONE();
    exit(0);
}

TEST(exits_with_a_status) {
    exit(3);
}

TEST(hangs, .timeout = 0.2) {
    for (;;) {
        pause();
    }
}

/* The child's own child holds its output open; neither the harness nor a leftover process may stay. */
TEST(leaves_a_child) {
    if (fork() == 0) {
        for (;;) {
            pause();
        }
    }
}

TEST(is_skipped) {
    SKIP("for a reason");
}

TEST_WORKERS(has_workers) {
    CHECK(getenv("CC_WORKERS") != NULL);
}

TEST_WORKERS(fails_with_one_worker) {
    CHECK(strcmp(getenv("CC_WORKERS"), "1") != 0);
}

TEST_DIES(dies_as_expected, "a last word") {
    fputs("a last word\n", stderr);
    abort();
}

TEST_DIES(dies_by_status, "a last word") {
    fputs("a last word\n", stderr);
    exit(1);
}

TEST_DIES(dies_by_signal, "a last word", .signal = SIGTERM) {
    fputs("a last word\n", stderr);
    raise(SIGTERM);
}

TEST_DIES(dies_by_wrong_signal, "a last word", .signal = SIGABRT) {
    fputs("a last word\n", stderr);
    raise(SIGTERM);
}

TEST_DIES(dies_silently, "a last word") {
    puts("a last word");
    abort();
}

TEST_DIES(lives, "a last word") {
    fputs("a last word\n", stderr);
}

TEST_DIES(dies_of_a_check, "a last word") {
    CHECK(!"a last word");
}

TEST_DIES(hangs_instead_of_dying, "a last word", .timeout = 0.2) {
    fputs("a last word\n", stderr);
    for (;;) {
        pause();
    }
}

TEST_DIES(is_skipped_instead_of_dying, "a last word") {
    SKIP("");
}
