/* always_ready.c - callers that never have to wait: a cancellation ends them too (CALL-4). */
#include "pair.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>

static int zero, null;
static struct pair full; /* a pipe */

static void open_both(void) {
    zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    CHECK(zero >= 0 && null >= 0);
    full = make_pipe(true);
}

static void close_both(void) {
    CHECK_EQ(cc_fd_close(zero), 0);
    CHECK_EQ(cc_fd_close(null), 0);
    close_pair(full);
}

static atomic_int running;

static int read_once(void) {
    char bytes[16];
    size_t n;
    return cc_fd_read(zero, bytes, sizeof bytes, &n);
}

static int write_once(void) {
    return cc_fd_write(null, "x", 1, NULL);
}

static int read_and_try(void) { /* whichever comes first after many calls */
    char byte;
    size_t n;
    int error = cc_fd_read_try(zero, &byte, 1, &n);
    CHECK_EQ(error, 0);
    return write_once();
}

static int wait_once(void) {
    return cc_fd_wait(zero, CC_READABLE, NULL);
}

static int poll_once(void) {
    struct pollfd one = {.fd = null, .events = POLLOUT};
    return cc_poll(&one, 1, CC_FOREVER, NULL);
}

/* From a pipe that always has data to a file that takes everything. */
static int splice_once(void) {
    size_t n;
    char byte = 'x';
    CHECK_EQ(cc_fd_write_try(full.out, &byte, 1, &n), 0);
    int error = cc_fd_splice(full.in, null, 1, &n);
    CHECK_EQ(n, error == 0 ? 1 : 0);
    if (error != 0) take(full.in, 1); /* nothing was moved */
    return error;
}

static int (*const calls[])(void) = {read_once, write_once, read_and_try, wait_once, poll_once, splice_once};

CC_CHILD(go_on, { int (*call)(void); }) {
    int error = 0;
    for (int i = 0; error == 0; i++) {
        if (i == 1000) atomic_fetch_add(&running, 1);
        error = self->call();
    }
    CHECK_EQ(error, ECANCELED);
    for (int i = 0; i < 30; i++) CHECK_EQ(self->call(), 0); /* the next few calls still succeed */
    CC_SHIELD {
        for (int i = 0; i < 1000; i++) CHECK_EQ(self->call(), 0);
    }
    return 0;
}

static void *cancel_all(void *arg) {
    int rc, count = (int)(sizeof calls / sizeof *calls);
    atomic_store(&running, 0);
    CC_NURSERY(n, .result = &rc) {
        for (int i = 0; i < count; i++) CHECK_EQ(CC_GO_IN(n, go_on, .call = calls[i]), 0);
        while (atomic_load(&running) < count) cc_yield();
        cc_nursery_cancel(n);
    }
    CHECK_EQ(rc, ECANCELED);
    return arg;
}

TEST_WORKERS(a_cancellation_ends_calls_that_never_wait) {
    open_both();
    CHECK_EQ(cc_run(cancel_all, NULL, NULL), 0);
    close_both();
    open_both();
    CHECK_EQ(cc_fd_adopt(zero), 0);
    CHECK_EQ(cc_fd_adopt(null), 0);
    CHECK_EQ(cc_run(cancel_all, NULL, NULL), 0);
    close_both();
}

static void *deadlines(void *arg) {
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        int error = 0;
        bool late = false;
        CC_WITH_DEADLINE(cc_after_ms(2), &late) {
            while (error == 0) error = calls[i]();
            CHECK_EQ(error, ECANCELED);
        }
        CHECK(late);
        for (int k = 0; k < 1000; k++) CHECK_EQ(calls[i](), 0); /* nothing is cancelled here */
    }
    return arg;
}

TEST_WORKERS(so_does_the_deadline_of_a_block) {
    open_both();
    CHECK_EQ(cc_run(deadlines, NULL, NULL), 0);
    CHECK(deadlines(&zero) == &zero); /* an OS thread */
    close_both();
}

CC_TASK(read_for_ever) {
    int error = 0;
    for (int i = 0; error == 0; i++) {
        if (i == 1000) atomic_fetch_add(&running, 1);
        error = read_once();
    }
    CHECK_EQ(error, ECANCELED);
    return NULL;
}

TEST(so_does_a_shutdown) {
    open_both();
    atomic_store(&running, 0);
    CCTask task = CC_GO(read_for_ever);
    CHECK_EQ(cc_task_detach(&task), 0);
    while (atomic_load(&running) == 0) cc_yield();
    CHECK_EQ(cc_runtime_shutdown(1), 0);
    close_both();
}

/* Calls that do not wait (_try) are never cancelled. */
static void *tries(void *arg) {
    CC_WITH_DEADLINE(CC_PASSED) {
        for (int i = 0; i < 1000; i++) {
            char byte;
            size_t n;
            CHECK_EQ(cc_fd_read_try(zero, &byte, 1, &n), 0);
            CHECK_EQ(cc_fd_wait_try(zero, CC_READABLE, NULL), 0);
        }
    }
    return arg;
}

TEST_WORKERS(tries_are_not_cancelled) {
    open_both();
    CHECK_EQ(cc_run(tries, NULL, NULL), 0);
    close_both();
}
