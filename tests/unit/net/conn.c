/* conn.c - listeners and connections: bytes, ends, deadlines, cancellation, close; misbehaving peers. */
#include "harness.h"

#include <ccc/ccc.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "net.h"
#include "net/conn.h"

enum { SYS_FCHMODAT2 = 452 };

/* ---- a pair of each kind ---- */

enum kind { KIND_TCP, KIND_TCP6, KIND_UNIX, KIND_ABSTRACT, KIND_PAIR, KINDS };

struct ends {
    CCConn *here, *there;
};

static struct ends make(enum kind kind) {
    struct ends e = {NULL, NULL};
    char where[128];
    if (kind == KIND_PAIR) {
        CHECK_EQ(cc_socketpair(&e.here, &e.there), 0);
        return e;
    }
    if (kind == KIND_TCP6) {
        CCListener *l;
        int error = cc_listen(&l, "tcp://[::1]:0", NULL);
        if (error == EADDRNOTAVAIL || error == EAFNOSUPPORT) return make(KIND_TCP); /* no IPv6 here */
        CHECK_EQ(error, 0);
        cc_listener_close(l);
    }
    snprintf(where, sizeof where, kind == KIND_UNIX ? "unix:/tmp/ccc-net-%d?unlink" : "unix:@ccc-net-%d",
             (int)getpid());
    CCListener *l;
    CHECK_EQ(cc_listen(&l,
                       kind == KIND_TCP    ? "tcp://127.0.0.1:0"
                       : kind == KIND_TCP6 ? "tcp://[::1]:0"
                                           : where,
                       NULL),
             0);
    e.here = dial(l);
    CHECK_EQ(cc_accept(l, &e.there), 0);
    cc_listener_close(l);
    return e;
}

static void end(struct ends e) {
    cc_close(e.here);
    cc_close(e.there);
}

#define EACH_KIND(e)                            \
    for (int kind_ = 0; kind_ < KINDS; kind_++) \
        for (struct ends e = make(kind_), *once_ = &e; once_ != NULL; once_ = NULL)

/* ---- bytes ---- */

CC_TASK(read_word, {
    CCConn *c;
    const char *expected;
}) {
    char text[16];
    size_t n;
    CHECK_EQ(cc_read(self->c, text, sizeof text, &n), 0);
    CHECK(n == strlen(self->expected) && memcmp(text, self->expected, n) == 0);
    return NULL;
}

static void *words(void *arg) {
    EACH_KIND(e) {
        char text[8];
        size_t n = 9;
        CHECK_EQ(cc_read_try(e.here, text, sizeof text, &n), EAGAIN);
        CHECK_EQ(n, 0);
        CHECK_EQ(cc_read_until(e.here, text, sizeof text, &n, cc_after_ms(1)), ETIMEDOUT);
        CC_NURSERY(nursery) {
            CHECK_EQ(CC_GO_IN(nursery, read_word, .c = e.there, .expected = "hello"), 0);
            await_waiters(1);
            CHECK_EQ(cc_write(e.here, "hello", 5, &n), 0);
            CHECK_EQ(n, 5);
        }
        struct iovec parts[3] = {{"ab", 2}, {"", 0}, {"cde", 3}};
        CHECK_EQ(cc_writev(e.there, parts, 3, &n), 0);
        CHECK_EQ(n, 5);
        CHECK_EQ(cc_read_full(e.here, text, 5, &n), 0);
        CHECK(n == 5 && memcmp(text, "abcde", 5) == 0);
        CHECK_EQ(cc_write_try(e.here, "xyz", 3, &n), 0);
        CHECK_EQ(cc_shutdown(e.here, CC_SHUT_WRITE), 0);
        CHECK_EQ(cc_read_full(e.there, text, 8, &n), ENODATA); /* and what came is there */
        CHECK(n == 3 && memcmp(text, "xyz", 3) == 0);
        CHECK_EQ(cc_read(e.there, text, 8, &n), 0);
        CHECK_EQ(n, 0);
        CHECK_EQ(cc_write(e.there, "back", 4, NULL), 0); /* the other side is still open */
        CHECK_EQ(cc_read_full(e.here, text, 4, NULL), 0);
        end(e);
    }
    return arg;
}

TEST_WORKERS(bytes_both_ways_and_half_close) {
    CHECK_EQ(cc_run(words, NULL, NULL), 0);
}

CC_TASK(write_until_shut, { CCConn *c; }) {
    static const char bytes[1 << 16];
    int error = 0;
    while (error == 0) error = cc_write(self->c, bytes, sizeof bytes, NULL);
    CHECK_EQ(error, EPIPE);
    return NULL;
}

CC_TASK(read_until_shut, { CCConn *c; }) {
    char byte;
    size_t n;
    CHECK_EQ(cc_read(self->c, &byte, 1, &n), 0);
    CHECK_EQ(n, 0);
    return NULL;
}

/* Nobody reads at the other end, or writes there. */
static void *shut_while_in_use(void *arg) {
    for (CCShut side = CC_SHUT_READ; side <= CC_SHUT_BOTH; side++) EACH_KIND(e) {
            size_t waiters = cc_io_waiters();
            CC_NURSERY(nursery) {
                if (side & CC_SHUT_WRITE) CHECK_EQ(CC_GO_IN(nursery, write_until_shut, .c = e.here), 0);
                if (side & CC_SHUT_READ) CHECK_EQ(CC_GO_IN(nursery, read_until_shut, .c = e.here), 0);
                await_waiters(waiters + (side == CC_SHUT_BOTH ? 2 : 1));
                CHECK_EQ(cc_shutdown(e.here, side), 0);
            }
            end(e);
        }
    return arg;
}

TEST_WORKERS(a_shutdown_ends_waits) {
    CHECK_EQ(cc_run(shut_while_in_use, NULL, NULL), 0);
    shut_while_in_use(NULL);
}

static void *on_a_thread(void *arg) {
    words(arg);
    return NULL;
}

TEST(from_an_os_thread) {
    pthread_t reader;
    struct ends e;
    words(NULL);
    CHECK_EQ(pthread_create(&reader, NULL, on_a_thread, NULL), 0);
    CHECK_EQ(pthread_join(reader, NULL), 0);
    e = make(KIND_PAIR);
    end(e);
}

enum { BIG = 1500 * 1000 };

CC_TASK(slow_reader, { CCConn *c; }) {
    char byte[1777];
    size_t n, total = 0;
    for (;;) {
        CHECK_EQ(cc_read(self->c, byte, total < 2000 ? 1 : sizeof byte, &n), 0); /* one byte at a time at first */
        if (n == 0) break;
        for (size_t i = 0; i < n; i++, total++) CHECK_EQ((unsigned char)byte[i], total % 251);
    }
    CHECK_EQ(total, BIG);
    return NULL;
}

static void *big(void *arg) {
    unsigned char *bytes = malloc(BIG);
    for (size_t i = 0; i < BIG; i++) bytes[i] = (unsigned char)(i % 251);
    EACH_KIND(e) {
        CC_NURSERY(nursery) {
            size_t n;
            CHECK_EQ(CC_GO_IN(nursery, slow_reader, .c = e.there), 0);
            CHECK_EQ(cc_write(e.here, bytes, BIG, &n), 0); /* parks while the reader is slow */
            CHECK_EQ(n, BIG);
            CHECK_EQ(cc_shutdown(e.here, CC_SHUT_WRITE), 0);
        }
        end(e);
    }
    free(bytes);
    return arg;
}

TEST_WORKERS(a_slow_reader_slows_the_writer) {
    CHECK_EQ(cc_run(big, NULL, NULL), 0);
}

/* ---- ends ---- */

static void *deadlines(void *arg) {
    EACH_KIND(e) {
        static char many[1 << 20];
        char byte;
        size_t n;
        CHECK_EQ(cc_conn_deadline(e.here, cc_after_ms(2), CC_FOREVER), 0);
        CHECK_EQ(cc_read(e.here, &byte, 1, &n), ETIMEDOUT);
        CHECK_EQ(cc_read_until(e.here, &byte, 1, &n, cc_after_ms(60000)), ETIMEDOUT); /* the earlier one */
        CHECK_EQ(cc_conn_deadline(e.here, CC_FOREVER, cc_after_ms(20)), 0);
        int error = 0;
        size_t sent = 0;
        while (error == 0) {
            error = cc_write(e.here, many, sizeof many, &n); /* nobody reads */
            sent += n;
        }
        CHECK_EQ(error, ETIMEDOUT);
        CHECK(sent > 0);
        error = cc_write_try(e.here, many, sizeof many, &n); /* TCP may have made room by now */
        CHECK(error == EAGAIN || (error == 0 && n > 0));
        sent += n;
        size_t got = 0;
        while (got < sent) { /* what was reported as sent has arrived, and nothing else */
            CHECK_EQ(cc_read(e.there, many, sizeof many, &n), 0);
            CHECK(n > 0);
            got += n;
        }
        CHECK_EQ(got, sent);
        CHECK_EQ(cc_read_try(e.there, many, sizeof many, &n), EAGAIN);
        end(e);
    }
    return arg;
}

TEST(deadlines_of_a_connection) {
    CHECK_EQ(cc_run(deadlines, NULL, NULL), 0);
}

CC_TASK(read_fails, {
    CCConn *c;
    int expected;
}) {
    char byte;
    size_t n;
    CHECK_EQ(cc_read(self->c, &byte, 1, &n), self->expected);
    return NULL;
}

static void *closes(void *arg) {
    EACH_KIND(e) {
        CC_NURSERY(nursery) {
            CHECK_EQ(CC_GO_IN(nursery, read_fails, .c = e.here, .expected = EBADF), 0);
            await_waiters(1);
            cc_close(e.here); /* the reader is the last to use it */
        }
        cc_close(e.there);
    }
    EACH_KIND(e) {
        CC_NURSERY(nursery) {
            CHECK_EQ(CC_GO_IN(nursery, read_fails, .c = e.here, .expected = ECANCELED), 0);
            await_waiters(1);
            cc_nursery_cancel(nursery);
        }
        end(e);
    }
    return arg;
}

TEST_WORKERS(a_close_and_a_cancellation_end_a_wait) {
    CHECK_EQ(cc_run(closes, NULL, NULL), 0);
}

/* The descriptor of a connection was closed by close(2), and its number reused: the new descriptor is not closed. */
TEST(a_close_spares_the_next_one) {
    struct ends old = make(KIND_PAIR);
    char byte;
    close(cc_conn_fd(old.here));
    struct ends next = make(KIND_PAIR);
    CHECK_EQ(cc_conn_fd(next.here), cc_conn_fd(old.here));
    cc_close(old.here);
    CHECK_EQ(cc_write(next.there, "x", 1, NULL), 0);
    CHECK_EQ(cc_read_full(next.here, &byte, 1, NULL), 0);
    cc_close(old.there);
    end(next);
}

/* A call that is still inside after a close. */
TEST(a_closed_connection_is_not_the_next_one) {
    for (int kind = 0; kind < KINDS; kind++) {
        struct ends old = make(kind);
        int number = cc_conn_fd(old.here);
        char byte;
        size_t n;
        struct iovec part = {&byte, 1};
        cc__conn_keep(old.here);
        cc_close(old.here);
        struct ends next = make(KIND_PAIR);
        CHECK(cc_conn_fd(next.here) == number || cc_conn_fd(next.there) == number);
        CHECK_EQ(cc_write(next.here, "x", 1, NULL) + cc_write(next.there, "x", 1, NULL), 0);
        CHECK_EQ(cc__conn_read(old.here, &part, 1, &n, HOW_WAIT, CC_FOREVER), EBADF);
        CHECK_EQ(cc__conn_write(old.here, &part, 1, &n, HOW_WAIT, CC_FOREVER), EBADF);
        CHECK_EQ(cc_conn_alive(old.here), EBADF);
        CHECK_EQ(cc_shutdown(old.here, CC_SHUT_BOTH), EBADF);
        CHECK_EQ(cc_read_full(next.here, &byte, 1, NULL) + cc_read_full(next.there, &byte, 1, NULL), 0);
        cc__conn_drop(old.here);
        cc_close(old.there);
        end(next);
    }
}

static void *resets(void *arg) {
    for (int kind = KIND_TCP; kind <= KIND_TCP6; kind++) {
        struct ends e = make(kind);
        char byte;
        size_t n;
        CHECK_EQ(cc_write(e.here, "unread", 6, NULL), 0);
        CC_NURSERY(nursery) { /* while the peer waits */
            CHECK_EQ(CC_GO_IN(nursery, read_fails, .c = e.here, .expected = ECONNRESET), 0);
            await_waiters(1);
            cc_abort(e.there);
        }
        CHECK(cc_write(e.here, "x", 1, &n) != 0);
        CHECK_EQ(cc_conn_alive(e.here), ECONNRESET);
        cc_close(e.here);

        e = make(kind); /* the writer gets the error, and the reader must not take it for an orderly end */
        cc_abort(e.there);
        int rc;
        while ((rc = cc_write(e.here, "x", 1, &n)) == 0) cc_yield();
        CHECK_EQ(rc, ECONNRESET);
        CHECK_EQ(cc_read(e.here, &byte, 1, &n), ECONNRESET);
        cc_close(e.here);

        e = make(kind); /* when it is not looking */
        CHECK_EQ(cc_conn_alive(e.here), 0);
        cc_abort(e.there);
        int error;
        while ((error = cc_conn_alive(e.here)) == 0) cc_yield();
        CHECK_EQ(error, ECONNRESET);
        CHECK_EQ(cc_read(e.here, &byte, 1, &n), ECONNRESET); /* the system reports it once: the library remembers it */
        cc_close(e.here);

        e = make(kind); /* a half-closed one */
        CHECK_EQ(cc_shutdown(e.here, CC_SHUT_WRITE), 0);
        CHECK_EQ(cc_read(e.there, &byte, 1, &n), 0);
        cc_abort(e.there);
        CHECK_EQ(cc_read(e.here, &byte, 1, &n), ECONNRESET);
        CHECK(cc_shutdown(e.here, CC_SHUT_BOTH) == ENOTCONN);
        cc_close(e.here);

        e = make(kind); /* while it writes */
        static char many[1 << 20];
        CHECK_EQ(cc_write_try(e.here, many, sizeof many, &n), 0);
        cc_abort(e.there);
        while ((error = cc_write(e.here, many, sizeof many, &n)) == 0) continue;
        CHECK(error == ECONNRESET || error == EPIPE);
        cc_close(e.here);
    }
    return arg;
}

TEST(resets_in_every_state) {
    CHECK_EQ(cc_run(resets, NULL, NULL), 0);
}

static void *alive(void *arg) {
    EACH_KIND(e) {
        char byte;
        size_t n;
        CHECK_EQ(cc_conn_alive(e.here), 0);
        CHECK_EQ(cc_write(e.there, "x", 1, NULL), 0);
        while (cc_conn_alive(e.here) == 0) cc_yield();
        CHECK_EQ(cc_conn_alive(e.here), EAGAIN);
        CHECK_EQ(cc_read(e.here, &byte, 1, &n), 0);
        CHECK_EQ(cc_conn_alive(e.here), 0);
        CHECK_EQ(cc_shutdown(e.there, CC_SHUT_WRITE), 0);
        while (cc_conn_alive(e.here) == 0) cc_yield();
        CHECK_EQ(cc_conn_alive(e.here), ENODATA);
        end(e);
    }
    CCConn *r, *w;
    CHECK_EQ(cc_pipe(&r, &w), 0);
    CHECK_EQ(cc_conn_alive(r), 0);
    CHECK_EQ(cc_write(w, "pipe", 4, NULL), 0);
    CHECK_EQ(cc_conn_alive(r), EAGAIN);
    char text[4];
    size_t n;
    CCAddr addr;
    CHECK_EQ(cc_read_full(r, text, 4, NULL), 0);
    CHECK_EQ(cc_shutdown(w, CC_SHUT_WRITE), EOPNOTSUPP);
    CHECK_EQ(cc_conn_peer(w, &addr), EOPNOTSUPP);
    CHECK_EQ(cc_write(w, "rest", 4, NULL), 0);
    cc_close(w);
    CHECK_EQ(cc_conn_alive(r), EAGAIN);
    CHECK_EQ(cc_read_full(r, text, 4, NULL), 0);
    CHECK_EQ(cc_conn_alive(r), ENODATA);
    CHECK_EQ(cc_read(r, text, 4, &n), 0);
    CHECK_EQ(n, 0);
    cc_close(r);
    return arg;
}

TEST(alive_or_not_without_waiting) {
    CHECK_EQ(cc_run(alive, NULL, NULL), 0);
}

/* ---- listeners ---- */

static void *listeners(void *arg) {
    CCListener *l, *second;
    CCConn *c;
    CCAddr addr, peer;
    char text[CC_ADDR_TEXT_MAX], where[CC_ADDR_TEXT_MAX + 16];
    CHECK_EQ(cc_listen(&l, "tcp://127.0.0.1:0?backlog=4&keepalive=30&user_timeout_ms=5000", NULL), 0);
    CHECK_EQ(cc_listener_addr(l, &addr), 0);
    CHECK(addr.kind == CC_ADDR_IP4 && addr.port != 0);
    CHECK_EQ(cc_accept_try(l, &c), EAGAIN);
    CHECK(c == NULL);
    CHECK_EQ(cc_accept_until(l, &c, cc_after_ms(1)), ETIMEDOUT);
    snprintf(where, sizeof where, "tcp://127.0.0.1:%u", addr.port);
    CHECK_EQ(cc_listen(&second, where, NULL), EADDRINUSE);
    CHECK(second == NULL);
    CCConn *client = dial(l);
    CHECK_EQ(cc_accept_until(l, &c, cc_after_ms(60000)), 0);
    CHECK_EQ(cc_conn_peer(c, &peer), 0);
    CHECK_EQ(cc_conn_local(client, &addr), 0);
    CHECK_EQ(cc_addr_compare(&peer, &addr), 0);
    CHECK_EQ(cc_addr_print(&peer, text, sizeof text), 0);
    CHECK(strncmp(text, "127.0.0.1:", 10) == 0);
    int value = 0;
    socklen_t size = sizeof value;
    CHECK_EQ(getsockopt(cc_conn_fd(c), IPPROTO_TCP, TCP_NODELAY, &value, &size), 0);
    CHECK_EQ(value != 0, 1); /* by default, inherited */
    CHECK_EQ(getsockopt(cc_conn_fd(c), IPPROTO_TCP, TCP_KEEPIDLE, &value, &size), 0);
    CHECK_EQ(value, 30);
    CHECK_EQ(getsockopt(cc_conn_fd(c), IPPROTO_TCP, TCP_USER_TIMEOUT, &value, &size), 0);
    CHECK_EQ(value, 5000);
    CHECK_EQ(fcntl(cc_conn_fd(c), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    cc_close(client);
    cc_close(c);
    cc_listener_close(l);

    CHECK_EQ(cc_listen(&l, "tcp://127.0.0.1:0?reuseport", NULL), 0);
    CHECK_EQ(cc_listener_addr(l, &addr), 0);
    snprintf(where, sizeof where, "tcp://127.0.0.1:%u?reuseport", addr.port);
    CHECK_EQ(cc_listen(&second, where, NULL), 0);
    int held = hold_port(l);
    cc_listener_close(second);
    cc_listener_close(l);
    CHECK_EQ(cc_dial_addr(&client, &addr, NULL, CC_FOREVER), ECONNREFUSED);
    CHECK(client == NULL);
    CHECK_EQ(close(held), 0);

    CHECK_EQ(cc_listen(&l, "tcp://:0", NULL), 0); /* every address */
    CHECK_EQ(cc_listener_addr(l, &addr), 0);
    snprintf(where, sizeof where, "tcp://127.0.0.1:%u?local=127.0.0.2", addr.port);
    CHECK_EQ(cc_dial(&client, where, NULL), 0);
    CHECK_EQ(cc_conn_local(client, &addr), 0);
    CHECK_EQ(addr.bytes[3], 2);
    cc_close(client);
    cc_listener_close(l);
    return arg;
}

TEST(listeners_and_their_options) {
    CHECK_EQ(cc_run(listeners, NULL, NULL), 0);
}

TEST(strings_that_are_wrong) {
    static const char *const bad[] = {"",
                                      "127.0.0.1:80",
                                      "http://127.0.0.1:80",
                                      "tcp://127.0.0.1",
                                      "tcp://127.0.0.1:",
                                      "tcp://127.0.0.1:65536",
                                      "tcp://[::1:80",
                                      "tcp://[]:80",
                                      "tcp://::1:80",
                                      "tcp://[name]:80",
                                      "tcp://127.0.0.1:0?",
                                      "tcp://127.0.0.1:0?nonsense",
                                      "tcp://127.0.0.1:0?backlog",
                                      "tcp://127.0.0.1:0?backlog=x",
                                      "tcp://127.0.0.1:0?backlog=99999999999",
                                      "tcp://127.0.0.1:0?reuseport=2",
                                      "tcp://127.0.0.1:0?mode=600",
                                      "tcp://127.0.0.1:0?local=127.0.0.1",
                                      "tcp://127.0.0.1:0?reuseport&",
                                      "udp://127.0.0.1:0",
                                      "unix:",
                                      "unix:@x?keepalive=1",
                                      "unix:@x?mode=9"};
    CCListener *l;
    CCConn *c;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int error = cc_listen(&l, bad[i], NULL);
        if (error != EINVAL || l != NULL) test_fail(__FILE__, __LINE__, "\"%s\": %d", bad[i], error);
    }
    CHECK_EQ(cc_dial(&c, "tcp://:80", NULL), EINVAL);
    CHECK_EQ(cc_dial(&c, "tcp://127.0.0.1:80?backlog=3", NULL), EINVAL);
    CHECK_EQ(cc_dial(&c, NULL, NULL), EINVAL);
    CHECK_EQ(cc_dial_addr(&c, &(CCAddr){.kind = CC_ADDR_UNIX + 1}, NULL, CC_FOREVER), EINVAL);
    CHECK_EQ(cc_dial(NULL, "tcp://127.0.0.1:80", NULL), EINVAL);
    CHECK_EQ(cc_dial(&c, "tcp://127.0.0.1:80", &(CCDialOptions){.reserved = {0, 1}}), EINVAL);
    CHECK_EQ(cc_listen(&l, "tcp://127.0.0.1:0", &(CCListenOptions){.conn.reserved = {1}}), EINVAL);
    CHECK_EQ(cc_listen(NULL, "tcp://127.0.0.1:0", NULL), EINVAL);
    char byte;
    size_t n = 5;
    CHECK_EQ(cc_read(NULL, &byte, 1, &n), EINVAL);
    CHECK_EQ(n, 0);
    CHECK_EQ(cc_write(NULL, &byte, 1, NULL), EINVAL);
    CHECK_EQ(cc_accept(NULL, &c), EINVAL);
    CHECK_EQ(cc_shutdown(NULL, CC_SHUT_BOTH), EINVAL);
    CHECK_EQ(cc_conn_fd(NULL), -1);
    CHECK_EQ(cc_conn_from_fd(&c, -1), EBADF);
    cc_close(NULL);
    cc_abort(NULL);
    cc_listener_close(NULL);
}

TEST(unix_files) {
    char path[64], where[96], stale[96];
    struct stat status;
    CCListener *l, *second;
    snprintf(path, sizeof path, "/tmp/ccc-net-file-%d", (int)getpid());
    snprintf(where, sizeof where, "unix:%s?mode=600", path);
    snprintf(stale, sizeof stale, "unix:%s?unlink", path);
    CHECK_EQ(cc_listen(&l, where, NULL), 0);
    CHECK_EQ(stat(path, &status), 0);
    CHECK_EQ(status.st_mode & 0777, 0600);
    CHECK_EQ(cc_listen(&second, stale, NULL), EADDRINUSE); /* there is a listener */
    cc_listener_close(l);
    CHECK_EQ(cc_listen(&second, where, NULL), EADDRINUSE); /* there is none, but the file exists */
    CHECK_EQ(cc_listen(&second, stale, NULL), 0);
    cc_listener_close(second);
    CHECK(stat(path, &status) != 0);
    int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600); /* a file that is no socket stays */
    CHECK(fd >= 0);
    close(fd);
    CHECK_EQ(cc_listen(&second, stale, NULL), EADDRINUSE);
    CHECK_EQ(unlink(path), 0);
}

/* A root directory without /proc, and a umask that clears bits. In a child process: this one needs its files. */
static int listen_below(const char *root) {
    struct stat status;
    CCListener *l;
    if (chroot(root) != 0 || chdir("/") != 0) return 77;
    (void)umask(077);
    if (cc_listen(&l, "unix:/socket?mode=666", NULL) != 0 || lstat("/socket", &status) != 0) return 1;
    cc_listener_close(l);
    return unlink("/socket") == 0 && (status.st_mode & 0777) == 0666 ? 0 : 2;
}

TEST(the_mode_of_a_unix_file_without_proc) {
    char root[] = "/tmp/ccc-net-root-XXXXXX";
    int status;
    if (syscall(SYS_FCHMODAT2, -1, "", 0600, AT_EMPTY_PATH) != -1 || errno != EBADF) return; /* before Linux 6.6 */
    CHECK(mkdtemp(root) != NULL);
    pid_t child = fork();
    if (child == 0) _exit(listen_below(root));
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status));
    if (WEXITSTATUS(status) != 77) CHECK_EQ(WEXITSTATUS(status), 0); /* 77: only root may do that */
    CHECK_EQ(rmdir(root), 0);
}

CC_TASK(accept_fails, {
    CCListener *l;
    int expected;
}) {
    CCConn *c;
    CHECK_EQ(cc_accept(self->l, &c), self->expected);
    return NULL;
}

static void *close_listener(void *arg) {
    CCListener *l;
    CC_NURSERY(nursery) {
        CHECK_EQ(cc_listen(&l, "tcp://127.0.0.1:0", NULL), 0);
        CHECK_EQ(CC_GO_IN(nursery, accept_fails, .l = l, .expected = EBADF), 0);
        CHECK_EQ(CC_GO_IN(nursery, accept_fails, .l = l, .expected = EBADF), 0);
        await_waiters(2);
        cc_listener_close(l);
    }
    return arg;
}

TEST_WORKERS(a_listener_that_is_closed) {
    CHECK_EQ(cc_run(close_listener, NULL, NULL), 0);
}

/* ---- Unix sockets ---- */

static void *unix_calls(void *arg) {
    struct ends e = make(KIND_UNIX);
    struct ends tcp = make(KIND_TCP);
    CCConn *r, *w;
    CCCredentials who;
    int fds[CC_UNIX_FDS_MAX], got[CC_UNIX_FDS_MAX];
    char text[8];
    size_t n, count = 4;
    CHECK_EQ(cc_unix_credentials(e.there, &who), 0);
    CHECK(who.pid == getpid() && who.uid == getuid() && who.gid == getgid());
    CHECK_EQ(cc_pipe(&r, &w), 0);
    fds[0] = cc_conn_fd(w);
    fds[1] = cc_conn_fd(r);
    CHECK_EQ(cc_unix_send_fds(e.here, fds, 2, "two", 3), 0);
    CHECK_EQ(cc_unix_recv_fds(e.there, got, &count, text, sizeof text, &n), 0);
    CHECK(n == 3 && count == 2);
    CHECK_EQ(fcntl(got[0], F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    CHECK_EQ(write(got[0], "through", 7), 7);
    CHECK_EQ(cc_read_full(r, text, 7, NULL), 0);
    close(got[0]);
    close(got[1]);
    int before = dup(0); /* the lowest number that is free */
    close(before);
    CHECK_EQ(cc_unix_send_fds(e.here, fds, 2, "x", 1), 0);
    count = 1;
    CHECK_EQ(cc_unix_recv_fds(e.there, got, &count, text, sizeof text, &n), EMSGSIZE);
    CHECK(count == 0 && n == 0);
    int after = dup(0);
    close(after);
    CHECK_EQ(before, after); /* nothing is left open */
    for (int i = 0; i < CC_UNIX_FDS_MAX; i++) fds[i] = cc_conn_fd(r);
    CHECK_EQ(cc_unix_send_fds(e.here, fds, CC_UNIX_FDS_MAX, "all", 3), 0);
    count = CC_UNIX_FDS_MAX;
    CHECK_EQ(cc_unix_recv_fds(e.there, got, &count, text, sizeof text, &n), 0);
    CHECK_EQ(count, CC_UNIX_FDS_MAX);
    for (size_t i = 0; i < count; i++) close(got[i]);
    CCConn *none = w;
    CHECK(cc_socketpair(NULL, &none) == EINVAL && none == NULL);
    none = w;
    CHECK(cc_pipe(&none, NULL) == EINVAL && none == NULL);
    CHECK_EQ(cc_unix_send_fds(e.here, fds, CC_UNIX_FDS_MAX + 1, "x", 1), EINVAL);
    CHECK_EQ(cc_unix_send_fds(e.here, fds, 1, "", 0), EINVAL);
    CHECK_EQ(cc_unix_send_fds(e.here, NULL, 0, "none", 4), 0);
    count = 1;
    CHECK_EQ(cc_unix_recv_fds(e.there, got, &count, text, sizeof text, &n), 0);
    CHECK(n == 4 && count == 0);
    CHECK_EQ(cc_unix_send_fds(e.here, NULL, 0, "some", 4), 0);
    CHECK_EQ(cc_unix_recv_fds(e.there, got, &count, text, SIZE_MAX, &n), 0); /* as cc_read: what is available */
    CHECK(n == 4 && count == 0);
    fds[0] = -1;
    CHECK_EQ(cc_unix_send_fds(e.here, fds, 1, "x", 1), EBADF);
    CHECK_EQ(cc_unix_send_fds(r, fds, 0, "x", 1), EOPNOTSUPP);
    CHECK_EQ(cc_unix_send_fds(tcp.here, fds, 0, "x", 1), EOPNOTSUPP);
    CHECK_EQ(cc_unix_credentials(tcp.here, &who), EOPNOTSUPP);
    end(tcp);
    cc_close(r);
    cc_close(w);
    end(e);
    return arg;
}

TEST(descriptors_that_travel) {
    CHECK_EQ(cc_run(unix_calls, NULL, NULL), 0);
}

/* The system ends a read of a Unix socket where descriptors were sent: what follows comes without another edge. That is
 * so for both sides, also the one that was accepted. */
CC_TASK(send_behind_descriptors, { CCConn *c; }) {
    int fd = cc_conn_fd(self->c);
    while (cc_io_waiters() < 1) cc_yield();
    CHECK_EQ(cc_unix_send_fds(self->c, &fd, 1, "a", 1), 0);
    CHECK_EQ(cc_unix_send_fds(self->c, &fd, 1, "b", 1), 0);
    return NULL;
}

static void *behind_descriptors(void *arg) {
    struct ends e = make(KIND_UNIX);
    char text[8];
    size_t n;
    for (int side = 0; side < 2; side++) {
        CCConn *from = side == 0 ? e.here : e.there, *to = side == 0 ? e.there : e.here;
        CC_NURSERY(nursery) {
            CHECK_EQ(CC_GO_IN(nursery, send_behind_descriptors, .c = from), 0);
            for (int i = 0; i < 2; i++) {
                CHECK_EQ(cc_read_until(to, text, sizeof text, &n, cc_after_ms(10000)), 0);
                CHECK(n == 1 && text[0] == "ab"[i]);
            }
        }
    }
    end(e);
    return arg;
}

TEST_WORKERS(what_follows_descriptors_is_read) {
    CHECK_EQ(cc_run(behind_descriptors, NULL, NULL), 0);
}

/* ---- half-open ---- */

/* A peer that seems dead: it acknowledges nothing, and sends nothing. */
TEST(a_peer_that_reads_nothing_times_out) {
    static const char bytes[1 << 20];
    CCListener *l;
    CCConn *c, *silent;
    CCAddr addr;
    char byte, where[96];
    size_t n, sum = 0;
    int error;
    CHECK_EQ(cc_listen(&l, "tcp://127.0.0.1:0?receive_buffer=4096", NULL), 0);
    CHECK_EQ(cc_listener_addr(l, &addr), 0);
    snprintf(where, sizeof where, "tcp://127.0.0.1:%u?user_timeout_ms=200&send_buffer=65536", addr.port);
    CHECK_EQ(cc_dial(&c, where, NULL), 0);
    CHECK_EQ(cc_accept(l, &silent), 0);
    do {
        error = cc_write(c, bytes, sizeof bytes, &n);
        sum += n;
    } while (error == 0 && sum < 64 * sizeof bytes);
    CHECK_EQ(error, ETIMEDOUT);
    CHECK(n < sizeof bytes);
    CHECK_EQ(cc_read(c, &byte, 1, &n), ETIMEDOUT); /* reported again, and not taken for an orderly end */
    CHECK_EQ(cc_conn_alive(c), ETIMEDOUT);
    cc_close(c);
    cc_close(silent);
    cc_listener_close(l);
}
