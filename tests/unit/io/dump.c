/* dump.c - dumps show which descriptor a fiber waits for, and a hosted call that would wait for one panics. */
#include "pair.h"

#include "os/descriptor.h"

#include <ccc/ccc.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static char *dump(int (*print)(FILE *file)) {
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    CHECK(file != NULL);
    CHECK_EQ(print(file), 0);
    CHECK_EQ(fclose(file), 0);
    return text;
}

/* The fiber is about to park when it has linked itself. */
static void check_dump(int (*print)(FILE *file), const char *expected) {
    char *text = dump(print);
    for (int i = 0; i < 5000 && strstr(text, expected) == NULL; i++) {
        struct timespec ms = {0, 1000000};
        nanosleep(&ms, NULL);
        free(text);
        text = dump(print);
    }
    if (strstr(text, expected) == NULL) test_fail(__FILE__, __LINE__, "'%s' is not in: %s", expected, text);
    free(text);
}

/* ---- what a descriptor is ---- */

static const char *name_of(int fd, bool out) {
    static char text[256];
    cc__os_describe(fd, out, text, sizeof text);
    return text;
}

#define CHECK_NAME(fd, out, expected)                                                                       \
    do {                                                                                                    \
        const char *name_ = name_of(fd, out);                                                               \
        if (strcmp(name_, expected) != 0) test_fail(__FILE__, __LINE__, "'%s', not '%s'", name_, expected); \
    } while (0)

static int tcp_pair(int fds[2], int *own, int *peer) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}, from;
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_EQ(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    CHECK_EQ(listen(listener, 1), 0);
    CHECK_EQ(getsockname(listener, (struct sockaddr *)&address, &length), 0);
    fds[1] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_EQ(connect(fds[1], (struct sockaddr *)&address, sizeof address), 0);
    length = sizeof from;
    fds[0] = accept4(listener, (struct sockaddr *)&from, &length, SOCK_CLOEXEC);
    CHECK(fds[0] >= 0);
    *own = ntohs(address.sin_port);
    *peer = ntohs(from.sin_port);
    return listener;
}

TEST(names_of_descriptors) {
    int fds[2], own, peer, listener = tcp_pair(fds, &own, &peer);
    char expected[256];
    snprintf(expected, sizeof expected, "TCP 127.0.0.1:%d <- 127.0.0.1:%d", own, peer);
    CHECK_NAME(fds[0], false, expected);
    snprintf(expected, sizeof expected, "TCP 127.0.0.1:%d -> 127.0.0.1:%d", own, peer);
    CHECK_NAME(fds[0], true, expected);
    snprintf(expected, sizeof expected, "TCP 127.0.0.1:%d, listening", own);
    CHECK_NAME(listener, false, expected);
    int udp = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (udp >= 0) CHECK_NAME(udp, false, "UDP [::]:0, not connected");
    int pair[2];
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    CHECK_NAME(pair[0], false, "Unix socket unnamed <- unnamed");
    int local = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int size = snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "ccc-test-%d", (int)getpid());
    CHECK_EQ(bind(local, (struct sockaddr *)&address,
                  (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)size)),
             0);
    snprintf(expected, sizeof expected, "Unix socket @ccc-test-%d, not connected", (int)getpid());
    CHECK_NAME(local, false, expected);
    CHECK_NAME(eventfd(0, EFD_CLOEXEC), false, "eventfd");
    CHECK_NAME(open("/dev/null", O_RDONLY | O_CLOEXEC), false, "/dev/null");
    CHECK_NAME(9999, false, "not open");
    CHECK_NAME(-1, false, "not open");
    CHECK_EQ(pipe2(pair, O_CLOEXEC), 0);
    CHECK(strncmp(name_of(pair[0], false), "pipe:[", 6) == 0);
    char tiny[4];
    cc__os_describe(fds[0], false, tiny, sizeof tiny);
    CHECK(strcmp(tiny, "TCP") == 0);
}

/* ---- dumps ---- */

static void *read_some(void *arg) {
    char byte;
    size_t n;
    return (void *)(intptr_t)cc_fd_read(*(int *)arg, &byte, 1, &n);
}

static void *select_some(void *arg) {
    CCCase one = {.kind = CC_CASE_READABLE, .fd = *(int *)arg};
    size_t chosen;
    return (void *)(intptr_t)cc_select(&one, 1, CC_FOREVER, &chosen);
}

static void *poll_some(void *arg) {
    int *fds = arg;
    struct pollfd both[] = {{.fd = fds[0], .events = POLLIN}, {.fd = fds[1], .events = POLLRDHUP}};
    return (void *)(intptr_t)cc_poll(both, 2, CC_FOREVER, NULL);
}

static void check_waits(CCTaskFn fn, int *fds, size_t waiters, bool thread, const char *expected) {
    CCTask task;
    pthread_t outside;
    if (thread)
        CHECK_EQ(pthread_create(&outside, NULL, fn, fds), 0);
    else
        CHECK_EQ(cc_spawn(&task, fn, fds, NULL), 0);
    await_waiters(waiters);
    check_dump(cc_dump, expected);
    if (!thread) check_dump(cc_dump_json, expected);
    CHECK_EQ(send(fds[1], "x", 1, 0), 1);
    if (thread)
        CHECK_EQ(pthread_join(outside, NULL), 0);
    else
        CHECK_EQ(cc_task_join(&task, NULL), 0);
    char byte;
    (void)!recv(fds[0], &byte, 1, MSG_DONTWAIT);
}

TEST(dumps_name_the_descriptor) {
    int fds[2], own, peer;
    char one[256], expected[512];
    CHECK_EQ(close(tcp_pair(fds, &own, &peer)), 0);
    CHECK_EQ(cc_runtime_init(NULL), 0);
    snprintf(one, sizeof one, "fd %d (TCP 127.0.0.1:%d <- 127.0.0.1:%d) to become readable", fds[0], own, peer);
    for (int thread = 0; thread < 2; thread++) {
        snprintf(expected, sizeof expected, "for %s", one);
        check_waits(read_some, fds, 1, thread, expected);
        snprintf(expected, sizeof expected, "for the first of 1 case: %s", one);
        check_waits(select_some, fds, 1, thread, expected);
        snprintf(expected, sizeof expected, "for the first of 2 descriptors: %s; fd %d (", one, fds[1]);
        check_waits(poll_some, fds, 2, thread, expected);
    }
    CHECK_EQ(cc_fd_close(fds[0]) + cc_fd_close(fds[1]), 0);
}

/* ---- the deadlock detector ---- */

static void *write_late(void *arg) {
    struct timespec while_all_sleep = {0, 400000000}; /* it looks after 50 and after 150 ms */
    nanosleep(&while_all_sleep, NULL);
    CHECK_EQ(write(*(int *)arg, "x", 1), 1);
    return NULL;
}

static void *block_all_threads(void *arg) {
    int *fds = arg;
    char byte;
    size_t n, chosen;
    CCCase one = {.kind = CC_CASE_READABLE, .fd = fds[0]};
    CHECK_EQ(cc_select(&one, 1, CC_FOREVER, &chosen), 0);
    CHECK_EQ(cc_fd_read(fds[0], &byte, 1, &n), 0);
    return NULL;
}

/* The other end is in another process: nothing in this one could end the wait. */
TEST(a_descriptor_is_no_deadlock) {
    int fds[2];
    CHECK_EQ(pipe2(fds, O_CLOEXEC), 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        write_late(&fds[1]);
        _exit(0);
    }
    CHECK_EQ(cc_run(block_all_threads, fds, NULL), 0);
}

/* ---- hosted calls ---- */

static void *hosted_read(void *arg) {
    char byte;
    size_t n;
    CHECK_EQ(cc_fd_read_try(*(int *)arg, &byte, 1, &n), EAGAIN); /* a call that does not wait is allowed */
    MAY_FAIL(cc_fd_read(*(int *)arg, &byte, 1, &n));
    return NULL;
}
static void *hosted_poll(void *arg) {
    struct pollfd fds[6];
    for (int i = 0; i < 6; i++) fds[i] = (struct pollfd){.fd = *(int *)arg, .events = POLLIN};
    CHECK_EQ(cc_poll(fds, 6, CC_PASSED, NULL), ETIMEDOUT);
    CHECK_EQ(cc_poll(NULL, 0, cc_after_ms(1), NULL), ETIMEDOUT); /* a wait for time is allowed */
    MAY_FAIL(cc_poll(fds, 6, CC_FOREVER, NULL));
    return NULL;
}
static void *hosted_wait(void *arg) {
    MAY_FAIL(cc_fd_wait(*(int *)arg, CC_READABLE, NULL));
    return NULL;
}
static void *hosted_select(void *arg) {
    CCCase cases[12];
    size_t chosen;
    for (int i = 0; i < 12; i++) cases[i] = (CCCase){.kind = CC_CASE_READABLE, .fd = *(int *)arg};
    CHECK_EQ(cc_select_try(cases, 12, &chosen), EAGAIN);
    MAY_FAIL(cc_select(cases, 12, CC_FOREVER, &chosen));
    return NULL;
}

TEST(a_hosted_call_does_not_wait_for_a_descriptor) {
    int fds[2];
    CHECK_EQ(pipe2(fds, O_CLOEXEC), 0);
    CCTaskFn calls[] = {hosted_read, hosted_poll, hosted_wait, hosted_select};
    for (int i = 0; i < 4; i++) {
        CCPanic why;
        CHECK_EQ(cc_hosted_call(calls[i], &fds[0], NULL, &why), ENOTRECOVERABLE);
        CHECK(strstr(why.message, "a hosted call cannot wait for a descriptor") != NULL);
        CHECK_EQ(cc_io_waiters(), 0);
    }
}
