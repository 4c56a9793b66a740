/* posix.c - calls of libc that libccc_posix redirects: they park on fibers, and elsewhere are unchanged.
 *
 * Where a case uses one worker, a call that blocked it would block all other fibers, and the case would hang.
 */
#include "harness.h"
#include "refusing_port.h"

#include <arpa/inet.h>
#include <ccc/ccc.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static void one_worker(void) {
    setenv("CC_WORKERS", "1", 1);
}

static void on_fiber(CCTaskFn fn, void *arg) {
    void *result = NULL;
    CHECK_EQ(cc_run(fn, arg, &result), 0);
}

static void sockets(int type, int fds[2]) {
    CHECK_EQ(socketpair(AF_UNIX, type, 0, fds), 0);
}

/* ---- bytes ---- */

CC_TASK(write_later, {
    int fd;
    const char *text;
}) {
    cc_sleep_ms(5);
    CHECK_EQ(write(self->fd, self->text, strlen(self->text)), (ssize_t)strlen(self->text));
    return NULL;
}

static void *read_waits(void *arg) {
    int *fds = arg;
    char text[16] = "";
    CCTask writer = CC_GO(write_later, .fd = fds[1], .text = "hello");
    CHECK_EQ(read(fds[0], text, sizeof text), 5);
    CHECK(strcmp(text, "hello") == 0);
    cc_block_on(writer);
    writer = CC_GO(write_later, .fd = fds[1], .text = "again");
    struct iovec parts[2] = {{text, 2}, {text + 2, 14}};
    CHECK_EQ(readv(fds[0], parts, 2), 5);
    CHECK(strcmp(text, "again") == 0);
    cc_block_on(writer);
    return NULL;
}

TEST(read_of_a_pipe_parks) {
    int fds[2];
    one_worker();
    CHECK_EQ(pipe(fds), 0);
    on_fiber(read_waits, fds);
}

TEST(read_of_a_socket_parks) {
    int fds[2];
    one_worker();
    sockets(SOCK_STREAM, fds);
    on_fiber(read_waits, fds);
}

enum { MUCH = 1 << 20 };
static char much[MUCH], back[MUCH];

CC_TASK(drain, { int fd; }) {
    size_t got = 0;
    while (got < MUCH) {
        ssize_t n = recv(self->fd, back + got, MUCH - got, 0);
        CHECK(n > 0);
        got += (size_t)n;
    }
    return NULL;
}

static void *write_waits(void *arg) {
    int *fds = arg;
    for (size_t i = 0; i < MUCH; i++) much[i] = (char)(i * 7);
    for (int way = 0; way < 3; way++) {
        memset(back, 0, MUCH);
        CCTask reader = CC_GO(drain, .fd = fds[0]);
        struct iovec parts[2] = {{much, 1000}, {much + 1000, MUCH - 1000}};
        struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
        CHECK_EQ(way == 0   ? write(fds[1], much, MUCH)
                 : way == 1 ? send(fds[1], much, MUCH, 0)
                            : sendmsg(fds[1], &message, 0),
                 MUCH);
        cc_block_on(reader);
        CHECK(memcmp(much, back, MUCH) == 0);
    }
    return NULL;
}

TEST(write_takes_all) {
    int fds[2];
    one_worker();
    sockets(SOCK_STREAM, fds);
    on_fiber(write_waits, fds);
}

static void *wait_for_all(void *arg) {
    int *fds = arg;
    char text[10];
    CCTask first = CC_GO(write_later, .fd = fds[1], .text = "abcde");
    CCTask second = CC_GO(write_later, .fd = fds[1], .text = "fghij");
    CHECK_EQ(recv(fds[0], text, 10, MSG_WAITALL), 10);
    CHECK(memcmp(text, "abcdefghij", 10) == 0 || memcmp(text, "fghijabcde", 10) == 0);
    cc_block_on(first);
    cc_block_on(second);
    return NULL;
}

/* The second half comes when the first has been read. */
CC_TASK(write_twice, {
    int *fds;
    const char *text;
}) {
    int left = 1;
    CHECK_EQ(write(self->fds[1], self->text, strlen(self->text)), (ssize_t)strlen(self->text));
    while (ioctl(self->fds[0], FIONREAD, &left) == 0 && left > 0) cc_yield();
    CHECK_EQ(write(self->fds[1], self->text, strlen(self->text)), (ssize_t)strlen(self->text));
    return NULL;
}

static void *wait_for_all_in_parts(void *arg) {
    int *fds = arg;
    char head[4], tail[6];
    struct iovec parts[] = {{head, sizeof head}, {tail, sizeof tail}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    CCTask writer = CC_GO(write_twice, .fds = fds, .text = "abcde");
    CHECK_EQ(recvmsg(fds[0], &message, MSG_WAITALL), 10);
    CHECK(memcmp(head, "abcd", 4) == 0 && memcmp(tail, "eabcde", 6) == 0);
    cc_block_on(writer);
    writer = CC_GO(write_twice, .fds = fds, .text = "xy");
    CHECK_EQ(recvfrom(fds[0], head, 4, MSG_WAITALL, NULL, NULL), 4);
    CHECK(memcmp(head, "xyxy", 4) == 0);
    cc_block_on(writer);
    return NULL;
}

TEST(waitall_reads_all) {
    int fds[2];
    one_worker();
    sockets(SOCK_STREAM, fds);
    on_fiber(wait_for_all, fds);
    on_fiber(wait_for_all_in_parts, fds);
}

static void *wait_for_one_message(void *arg) {
    int *fds = arg;
    char text[10];
    CHECK_EQ(send(fds[1], "abc", 3, 0), 3);
    CHECK_EQ(send(fds[1], "de", 2, 0), 2);
    CHECK_EQ(recv(fds[0], text, sizeof text, MSG_WAITALL), 3);
    CHECK_EQ(recv(fds[0], text, sizeof text, MSG_WAITALL), 2);
    return NULL;
}

TEST(waitall_joins_no_messages) {
    int fds[2];
    one_worker();
    sockets(SOCK_DGRAM, fds);
    on_fiber(wait_for_one_message, fds);
}

/* ---- what does not wait ---- */

static void *does_not_wait(void *arg) {
    int *fds = arg;
    char byte;
    CHECK_EQ(recv(fds[0], &byte, 1, MSG_DONTWAIT), -1);
    CHECK_EQ(errno, EAGAIN);
    CHECK_EQ(fcntl(fds[0], F_SETFL, O_NONBLOCK), 0);
    CHECK_EQ(read(fds[0], &byte, 1), -1);
    CHECK_EQ(errno, EAGAIN);
    CHECK_EQ(recv(fds[0], &byte, 1, 0), -1);
    CHECK_EQ(errno, EAGAIN);
    CHECK_EQ(read(-1, &byte, 1), -1);
    CHECK_EQ(errno, EBADF);
    close(fds[1]);
    CHECK_EQ(read(fds[0], &byte, 1), 0);
    CHECK_EQ(write(fds[0], &byte, 1), -1); /* without a signal */
    CHECK_EQ(errno, EPIPE);
    return NULL;
}

TEST(nonblocking_stays_so) {
    int fds[2];
    one_worker();
    sockets(SOCK_STREAM, fds);
    on_fiber(does_not_wait, fds);
}

static void *times_out(void *arg) {
    int *fds = arg;
    char byte;
    struct timeval soon = {0, 20000};
    CHECK_EQ(setsockopt(fds[0], SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof soon), 0);
    uint64_t begin = cc_now_ns();
    CHECK_EQ(recv(fds[0], &byte, 1, 0), -1);
    CHECK_EQ(errno, EAGAIN);
    CHECK(cc_now_ns() - begin >= 20000000);
    return NULL;
}

TEST(receive_timeout_holds) {
    int fds[2];
    one_worker();
    sockets(SOCK_STREAM, fds);
    on_fiber(times_out, fds);
}

/* As in functions of their own: compilers keep the address of errno, which belongs to a thread. */
__attribute__((noinline)) static int errno_here(void) {
    return errno;
}
__attribute__((noinline)) static void set_errno_here(int value) {
    errno = value;
}

CC_CHILD(time_out_often, { int fd; }) {
    struct timeval soon = {0, 1000};
    char byte;
    CHECK_EQ(setsockopt(self->fd, SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof soon), 0);
    for (int i = 0; i < 50; i++) {
        set_errno_here(EDOM);
        CHECK_EQ(recv(self->fd, &byte, 1, 0), -1);
        CHECK_EQ(errno_here(), EAGAIN);
        for (uint64_t end = cc_now_ns() + 50000; cc_now_ns() < end;) set_errno_here(ERANGE);
    }
    return 0;
}

/* Waits end on any of several workers. */
TEST(errno_is_that_of_the_thread_after_the_call) {
    enum { FIBERS = 50 };
    int fds[FIBERS][2];
    setenv("CC_WORKERS", "4", 1);
    setenv("CC_MIN_WORKERS", "4", 1);
    CC_NURSERY(n) {
        for (int i = 0; i < FIBERS; i++) {
            sockets(SOCK_STREAM, fds[i]);
            CHECK_EQ(CC_GO_IN(n, time_out_often, .fd = fds[i][0]), 0);
        }
    }
}

/* A TCP connection that is stuck: its peer does not read, and its timeout for unacknowledged data is short. */
static int stalled_connection(int *peer) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof at;
    int listener = socket(AF_INET, SOCK_STREAM, 0), c = socket(AF_INET, SOCK_STREAM, 0), small = 4096, patience_ms = 1;
    CHECK_EQ(setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &small, sizeof small), 0);
    CHECK_EQ(setsockopt(c, SOL_SOCKET, SO_SNDBUF, &small, sizeof small), 0);
    CHECK_EQ(setsockopt(c, IPPROTO_TCP, TCP_USER_TIMEOUT, &patience_ms, sizeof patience_ms), 0);
    CHECK_EQ(bind(listener, (struct sockaddr *)&at, sizeof at) + listen(listener, 1), 0);
    CHECK_EQ(getsockname(listener, (struct sockaddr *)&at, &length), 0);
    CHECK_EQ(connect(c, (struct sockaddr *)&at, sizeof at), 0);
    *peer = accept(listener, NULL, NULL);
    CHECK(*peer >= 0);
    close(listener);
    return c;
}

static void *loses_its_peer(void *arg) {
    static const char bytes[1 << 16];
    struct timeval late = {1000000, 0};
    char byte;
    int peer, c = stalled_connection(&peer);
    CHECK_EQ(setsockopt(c, SOL_SOCKET, SO_RCVTIMEO, &late, sizeof late), 0);
    while (send(c, bytes, sizeof bytes, MSG_DONTWAIT) > 0) {
    }
    /* The system gives up before the buffer is full, or while this waits. */
    if (errno == EAGAIN) CHECK_EQ(read(c, &byte, 1), -1);
    CHECK_EQ(errno, ETIMEDOUT);
    close(c);
    close(peer);
    return arg;
}

TEST(a_timeout_of_the_connection_is_returned) {
    one_worker();
    on_fiber(loses_its_peer, NULL);
}

static void *os_thread(void *arg) {
    int *fds = arg;
    char byte = 0;
    CHECK_EQ(read(fds[0], &byte, 1), 1);
    CHECK_EQ(byte, 'x');
    CHECK_EQ(usleep(1000), 0);
    return NULL;
}

TEST(os_threads_block_as_ever) {
    int fds[2];
    pthread_t thread;
    CHECK_EQ(pipe(fds), 0);
    CHECK_EQ(pthread_create(&thread, NULL, os_thread, fds), 0);
    CHECK_EQ(write(fds[1], "x", 1), 1);
    pthread_join(thread, NULL);
}

/* ---- connections ---- */

static void *serve_one(void *arg) {
    int listener = *(int *)arg;
    struct sockaddr_in from;
    socklen_t length = sizeof from;
    int c = accept(listener, (struct sockaddr *)&from, &length);
    CHECK(c >= 0);
    CHECK_EQ(from.sin_family, AF_INET);
    CHECK_EQ(fcntl(c, F_GETFL) & O_NONBLOCK, 0);
    CHECK_EQ(fcntl(c, F_GETFD) & FD_CLOEXEC, 0);
    char text[8];
    ssize_t n = recv(c, text, sizeof text, 0);
    CHECK_EQ(n, 4);
    CHECK_EQ(send(c, text, (size_t)n, 0), n);
    close(c);
    c = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    CHECK(c >= 0);
    CHECK(fcntl(c, F_GETFL) & O_NONBLOCK);
    CHECK(fcntl(c, F_GETFD) & FD_CLOEXEC);
    close(c);
    return NULL;
}

static void *talk(void *arg) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof at;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    (void)arg;
    CHECK_EQ(bind(listener, (struct sockaddr *)&at, sizeof at) + listen(listener, 8), 0);
    CHECK_EQ(getsockname(listener, (struct sockaddr *)&at, &length), 0);
    CCTask server;
    CHECK_EQ(cc_spawn(&server, serve_one, &listener, NULL), 0);
    int c = socket(AF_INET, SOCK_STREAM, 0);
    CHECK_EQ(connect(c, (struct sockaddr *)&at, sizeof at), 0);
    CHECK_EQ(fcntl(c, F_GETFL) & O_NONBLOCK, 0);
    CHECK_EQ(send(c, "ping", 4, 0), 4);
    struct pollfd p = {.fd = c, .events = POLLIN};
    CHECK_EQ(poll(&p, 1, -1), 1);
    char text[8];
    CHECK_EQ(recvfrom(c, text, sizeof text, 0, NULL, NULL), 4);
    close(c);
    c = socket(AF_INET, SOCK_STREAM, 0);
    CHECK_EQ(connect(c, (struct sockaddr *)&at, sizeof at), 0);
    close(c);
    cc_block_on(server);
    close(listener);
    int bound = refusing_port(&at);
    c = socket(AF_INET, SOCK_STREAM, 0);
    CHECK_EQ(connect(c, (struct sockaddr *)&at, sizeof at), -1);
    CHECK_EQ(errno, ECONNREFUSED);
    close(c);
    close(bound);
    p.fd = -1;
    CHECK_EQ(poll(&p, 1, 5), 0);
    return NULL;
}

TEST(a_server_and_its_client_on_one_worker) {
    one_worker();
    on_fiber(talk, NULL);
}

static void *datagrams(void *arg) {
    int *fds = arg;
    char text[16];
    CCTask writer = CC_GO(write_later, .fd = fds[1], .text = "datagram");
    CHECK_EQ(recv(fds[0], text, 4, 0), 4); /* the rest of it is gone */
    cc_block_on(writer);
    CHECK_EQ(sendto(fds[1], "next", 4, 0, NULL, 0), 4);
    CHECK_EQ(recv(fds[0], text, sizeof text, 0), 4);
    CHECK(memcmp(text, "next", 4) == 0);
    return NULL;
}

TEST(datagrams_keep_their_bounds) {
    int fds[2];
    one_worker();
    sockets(SOCK_DGRAM, fds);
    on_fiber(datagrams, fds);
}

/* ---- time, names, cancellation ---- */

CC_TASK(count_up, { int *count; }) {
    while (!cc_cancelled()) {
        ++*self->count;
        cc_yield();
    }
    return NULL;
}

static void *sleeps(void *arg) {
    int count = 0;
    (void)arg;
    CCTask other = CC_GO(count_up, .count = &count);
    struct timespec t = {0, 2000000}, now;
    uint64_t begin = cc_now_ns();
    CHECK_EQ(nanosleep(&t, NULL), 0);
    CHECK_EQ(usleep(2000), 0);
    CHECK_EQ(clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL), 0);
    clock_gettime(CLOCK_REALTIME, &now);
    now.tv_nsec += 2000000;
    if (now.tv_nsec >= 1000000000) now.tv_sec++, now.tv_nsec -= 1000000000;
    CHECK_EQ(clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &now, NULL), 0);
    CHECK_EQ(sleep(0), 0);
    CHECK(cc_now_ns() - begin >= 7000000);
    t.tv_nsec = -1;
    CHECK_EQ(nanosleep(&t, NULL), -1);
    CHECK_EQ(errno, EINVAL);
    cc_task_cancel(&other);
    cc_block_on(other);
    CHECK(count > 0); /* it counts only before the cancel */
    return NULL;
}

TEST(sleeps_let_others_run) {
    one_worker();
    on_fiber(sleeps, NULL);
}

static void *names(void *arg) {
    struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *found = NULL;
    (void)arg;
    CHECK_EQ(getaddrinfo("localhost", "80", &hints, &found), 0);
    CHECK_EQ(((struct sockaddr_in *)(void *)found->ai_addr)->sin_port, htons(80));
    freeaddrinfo(found);
    CHECK_EQ(getaddrinfo("127.0.0.1", NULL, &hints, &found), 0);
    freeaddrinfo(found);
    CHECK(getaddrinfo("localhost", "no such service", &hints, &found) != 0);
    return NULL;
}

TEST(names_are_found) {
    on_fiber(names, NULL);
}

static void *cancelled(void *arg) {
    int *fds = arg;
    char byte;
    struct timespec hour = {3600, 0}, left = {0, 0};
    CHECK_EQ(read(fds[0], &byte, 1), -1);
    CHECK_EQ(errno, ECANCELED);
    CHECK_EQ(nanosleep(&hour, &left), -1);
    CHECK_EQ(errno, ECANCELED);
    CHECK(left.tv_sec >= 3000);
    CHECK(sleep(3600) >= 3000);
    return NULL;
}

static void *cancels(void *arg) {
    CCTask task;
    CHECK_EQ(cc_spawn(&task, cancelled, arg, NULL), 0);
    while (cc_io_waiters() == 0) cc_yield();
    cc_task_cancel(&task);
    cc_block_on(task);
    return NULL;
}

TEST(cancellation_reaches_every_call) {
    int fds[2];
    one_worker();
    CHECK_EQ(pipe(fds), 0);
    on_fiber(cancels, fds);
}
