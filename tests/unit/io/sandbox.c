/* sandbox.c - epoll is forbidden by a seccomp filter: this is reported once, and calls that need not wait work. */
#include "forbid.h"
#include "pair.h"

#include "../capture.h"

#include <poll.h>

static void *give_back(void *arg) {
    return arg;
}

/* error: what a wait returns. */
static void *works_where_it_can(void *arg) {
    int error = *(int *)arg, ready = 0;
    for (int adopt = 0; adopt < 2; adopt++) {
        struct pair p = make_sockets(adopt);
        struct pollfd one = {.fd = p.in, .events = POLLIN};
        CCCase readable = {.kind = CC_CASE_READABLE, .fd = p.in};
        char byte = 0;
        size_t n;
        CHECK_EQ(cc_fd_read_try(p.in, &byte, 1, &n), EAGAIN);
        CHECK_EQ(cc_fd_read(p.in, &byte, 1, &n), error);
        CHECK_EQ(cc_fd_read_until(p.in, &byte, 1, &n, cc_after_ms(1)), error);
        CHECK_EQ(cc_fd_wait(p.in, CC_READABLE, NULL), error);
        CHECK_EQ(cc_poll(&one, 1, CC_FOREVER, NULL), error);
        CHECK_EQ(cc_select(&readable, 1, CC_FOREVER, &n), 0);
        CHECK_EQ(readable.error, error);
        CHECK_EQ(cc_fd_write(p.out, "xy", 2, &n), 0);
        CHECK_EQ(cc_fd_wait(p.in, CC_READABLE, &ready), 0);
        CHECK_EQ(ready, CC_READABLE);
        CHECK_EQ(cc_poll(&one, 1, CC_FOREVER, &n), 0);
        CHECK_EQ(cc_select(&readable, 1, CC_FOREVER, &n), 0);
        CHECK_EQ(readable.error, 0);
        CHECK_EQ(cc_fd_read(p.in, &byte, 1, &n), 0);
        CHECK(n == 1 && byte == 'x');
        CHECK_EQ(cc_io_waiters(), 0);
        close_pair(p);
    }
    void *result = NULL;
    CHECK_EQ(cc_blocking(give_back, &error, &result), 0);
    CHECK(result == &error);
    CHECK_EQ(cc_sleep_ms(1), 0);
    return NULL;
}

static void check_refusal(const int *calls, unsigned n, int error) {
    struct capture said;
    forbid(calls, n, error);
    capture_start(&said);
    CHECK_EQ(cc_run(works_where_it_can, &error, NULL), 0);
    const char *text = capture_end(&said), *sentence = strstr(text, "the system refuses epoll");
    CHECK(sentence != NULL);
    CHECK(strstr(sentence + 20, "refuses epoll") == NULL); /* once */
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
}

TEST_WORKERS(no_set) {
    check_refusal((int[]){SYS_epoll_create1}, 1, EPERM);
}

TEST_WORKERS(no_eventfd) {
    check_refusal((int[]){SYS_eventfd2}, 1, ENOSYS);
}

TEST_WORKERS(an_epoll_set_that_accepts_nothing) {
    check_refusal((int[]){SYS_epoll_ctl}, 1, EPERM);
}

TEST_WORKERS(an_epoll_set_that_may_not_be_queried) {
    check_refusal((int[]){SYS_epoll_pwait, SYS_epoll_pwait2}, 2, EPERM);
}

CC_TASK(read_later, { int fd; }) {
    char byte;
    size_t n;
    CHECK_EQ(cc_fd_read(self->fd, &byte, 1, &n), 0);
    return NULL;
}

static void *waits(void *arg) {
    struct pair p = make_pipe(true);
    char byte;
    size_t n;
    CHECK_EQ(cc_fd_read_until(p.in, &byte, 1, &n, cc_after_ms(2)), ETIMEDOUT);
    CC_NURSERY(nursery) {
        CHECK_EQ(CC_GO_IN(nursery, read_later, .fd = p.in), 0);
        await_waiters(1);
        CHECK_EQ(cc_sleep_ms(2), 0);
        CHECK_EQ(cc_fd_write(p.out, "x", 1, NULL), 0);
    }
    close_pair(p);
    return arg;
}

/* The older call has a resolution of milliseconds, which is sufficient. */
TEST_WORKERS(the_newer_call_alone_is_forbidden) {
    forbid((int[]){SYS_epoll_pwait2}, 1, EPERM);
    CHECK_EQ(cc_run(waits, NULL, NULL), 0);
}
