/* blocking_mode.c - descriptors in blocking mode that were not adopted: no call blocks the worker, whoever else uses
 * the descriptor. */
#include "pair.h"

#include <ccc/ccc.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

/* ---- terminals: ready if there is room for a byte ---- */

static struct pair make_terminal(void) {
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (master < 0) SKIP("there are no terminals here");
    CHECK_EQ(grantpt(master) + unlockpt(master), 0);
    return (struct pair){master, open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC)};
}

enum { MUCH = 200 * 1000 };

static char much[MUCH];

static void *write_until_it_is_full(void *arg) {
    struct pair *p = arg;
    size_t n = 0;
    CHECK_EQ(cc_fd_write(p->out, much, 1001, NULL), 0); /* so that the room is no multiple of PIPE_BUF */
    CHECK_EQ(cc_fd_write_until(p->out, much, sizeof much, &n, cc_after_ms(20)), ETIMEDOUT);
    CHECK(n > 0 && n < sizeof much);
    fill(p->out); /* the kernel may have moved some of it on */
    CHECK(!(fcntl(p->out, F_GETFL) & O_NONBLOCK));
    return NULL;
}

TEST_WORKERS(a_terminal_that_nobody_reads) {
    struct pair p = make_terminal();
    memset(much, 'x', sizeof much);
    CHECK_EQ(cc_run(write_until_it_is_full, &p, NULL), 0);
    close_pair(p);
}

/* ---- pipes ---- */

/* A vector of up to PIPE_BUF bytes is written as a whole, as by writev(2). */
enum { WRITERS = 8, LINES = 500, LINE = 200 };

static struct pair lines;

static void *write_lines(void *arg) {
    char text[LINE];
    memset(text, 'a' + (int)(intptr_t)arg, sizeof text);
    struct iovec parts[] = {{text, 1}, {text, LINE / 2 - 1}, {text, LINE / 2}};
    for (long i = test_scale(LINES); i > 0; i--) CHECK_EQ(cc_fd_writev(lines.out, parts, 3, NULL), 0);
    return NULL;
}

static void *read_lines(void *arg) {
    CCTask writers[WRITERS];
    for (int i = 0; i < WRITERS; i++) CHECK_EQ(cc_spawn(&writers[i], write_lines, (void *)(intptr_t)i, NULL), 0);
    for (long i = test_scale(LINES) * WRITERS; i > 0; i--) {
        char text[LINE];
        size_t n;
        for (size_t done = 0; done < LINE; done += n) CHECK_EQ(cc_fd_read(lines.in, text + done, LINE - done, &n), 0);
        for (int j = 1; j < LINE; j++) CHECK_EQ(text[j], text[0]);
    }
    for (int i = 0; i < WRITERS; i++) CHECK_EQ(cc_task_join(&writers[i], NULL), 0);
    return arg;
}

TEST_WORKERS(vectors_are_not_torn) {
    lines = make_pipe(false);
    CHECK_EQ(cc_run(read_lines, NULL, NULL), 0);
    close_pair(lines);
}

/* Others read the same pipe by read(2). What a check has seen may be gone then, and no more comes: a call that relied
 * on the check would block for ever. */
enum { READS = 2000, THIEVES = 2 };

static _Atomic bool over;

static void *steal_bytes(void *arg) {
    char byte;
    while (read(*(int *)arg, &byte, 1) == 1 && !over) {
    }
    return NULL;
}

static void *read_beside_thieves(void *arg) {
    struct pair *p = arg;
    char byte;
    size_t n;
    for (long i = test_scale(READS); i > 0; i--) {
        CHECK_EQ(cc_fd_write(p->out, "x", 1, NULL), 0);
        int error = cc_fd_read_until(p->in, &byte, 1, &n, cc_after_ns(20 * 1000));
        CHECK(error == 0 || error == ETIMEDOUT);
    }
    return NULL;
}

TEST_WORKERS(bytes_that_others_take_first) {
    struct pair p = make_pipe(false);
    char byte;
    struct iovec part = {&byte, 1};
    if (preadv2(p.in, &part, 1, -1, 8 /* RWF_NOWAIT */) < 0 && errno != EAGAIN)
        SKIP("this kernel reads pipes in blocking mode only");
    pthread_t thieves[THIEVES];
    for (int i = 0; i < THIEVES; i++) CHECK_EQ(pthread_create(&thieves[i], NULL, steal_bytes, &p.in), 0);
    CHECK_EQ(cc_run(read_beside_thieves, &p, NULL), 0);
    over = true;
    CHECK_EQ(write(p.out, "12", THIEVES), THIEVES);
    for (int i = 0; i < THIEVES; i++) CHECK_EQ(pthread_join(thieves[i], NULL), 0);
    close_pair(p);
}

/* ---- calls that can never succeed fail at once ---- */

static void *misuse(void *arg) {
    struct pair p = make_pipe(false), s = make_sockets(false);
    int udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), connection;
    char byte = 0;
    size_t n;
    CHECK_EQ(cc_fd_read(p.out, &byte, 1, &n), EBADF);
    CHECK_EQ(cc_fd_read_try(p.out, &byte, 1, &n), EBADF);
    CHECK_EQ(cc_fd_write(p.in, &byte, 1, &n), EBADF);
    CHECK_EQ(cc_fd_write_try(p.in, &byte, 1, &n), EBADF);
    CHECK_EQ(cc_fd_accept(p.in, &connection, NULL, NULL), ENOTSOCK);
    CHECK_EQ(cc_fd_accept(udp, &connection, NULL, NULL), EOPNOTSUPP);
    CHECK_EQ(cc_fd_accept_try(udp, &connection, NULL, NULL), EOPNOTSUPP);
    CHECK_EQ(cc_fd_accept(s.in, &connection, NULL, NULL), EINVAL);
    CHECK_EQ(cc_fd_close(udp), 0);
    close_pair(p);
    close_pair(s);
    return arg;
}

TEST_WORKERS(the_wrong_kind) {
    CHECK_EQ(cc_run(misuse, NULL, NULL), 0);
    misuse(NULL);
}
