/* moments.c - named interleavings of a wait with other events; which worker polls when others are busy, are added and
 * retire. */
#include "pair.h"

#include "../../programs/where.h"
#include "io/fd.h"
#include "sched/sched.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

static void rest_ms(long ms) {
    struct timespec ts = {ms / 1000, ms % 1000 * 1000000};
    while (nanosleep(&ts, &ts) != 0) {
    }
}

static void rest_until_waiters(size_t n) {
    while (cc_io_waiters() != n) rest_ms(1);
}

static unsigned char read_byte(int fd) {
    unsigned char byte = 0;
    size_t n = 0;
    CHECK_EQ(cc_fd_read(fd, &byte, 1, &n), 0);
    CHECK_EQ(n, 1);
    return byte;
}

/* ---- FD-10: adopted while another call has borrowed the mode ---- */

static struct {
    int to, file;
    _Atomic int round;
} sends;

enum { SENDS = 200 };

static void *send_file(void *arg) {
    for (int round = 1; round <= SENDS; round++) {
        int64_t offset = 0;
        size_t n;
        while (atomic_load(&sends.round) != round) sched_yield();
        CHECK_EQ(cc_fd_sendfile(sends.to, sends.file, &offset, 1, &n), 0);
        CHECK_EQ(n, 1);
        atomic_store(&sends.round, -round);
    }
    return arg;
}

TEST_WORKERS(adopted_while_a_file_is_sent) {
    struct pair p = make_sockets(false);
    pthread_t thread;
    FILE *file = tmpfile();
    CHECK(file != NULL && fputs("x", file) >= 0 && fflush(file) == 0);
    sends.to = p.out;
    sends.file = fileno(file);
    CHECK_EQ(pthread_create(&thread, NULL, send_file, NULL), 0);
    for (int round = 1; round <= SENDS; round++) {
        atomic_store(&sends.round, round);
        CHECK_EQ(cc_fd_adopt(p.out), 0);
        while (atomic_load(&sends.round) != -round) sched_yield();
        CHECK(fcntl(p.out, F_GETFL) & O_NONBLOCK);
        CHECK_EQ(cc_fd_release(p.out), 0);
        CHECK(!(fcntl(p.out, F_GETFL) & O_NONBLOCK));
        CHECK_EQ(read_byte(p.in), 'x');
    }
    CHECK_EQ(pthread_join(thread, NULL), 0);
    fclose(file);
    close_pair(p);
}

/* ---- a splice whose target has room as soon as the system has said that it has none ---- */

static int drained_after_splice = -1;

/* Replaces the C library's. */
ssize_t splice(int from, off_t *from_offset, int to, off_t *to_offset, size_t size, unsigned flags) {
    ssize_t n = syscall(SYS_splice, from, from_offset, to, to_offset, size, flags);
    int error = errno;
    if (n < 0 && error == EAGAIN && drained_after_splice >= 0) {
        char bytes[4096];
        while (read(drained_after_splice, bytes, sizeof bytes) > 0) {
        }
        drained_after_splice = -1;
    }
    errno = error;
    return n;
}

static void *splices_into_new_room(void *arg) {
    struct pair from = make_pipe(true), to = make_pipe(true);
    size_t n;
    CHECK_EQ(cc_fd_splice_until(from.in, to.out, 8, &n, cc_after_ms(1)), ETIMEDOUT); /* registers from.in */
    fill(to.out);
    put(from.out, 3);
    CHECK_EQ(cc_fd_splice_until(from.in, to.out, 8, &n, cc_after_ms(1)), ETIMEDOUT); /* and to.out; fetches the edge */
    drained_after_splice = to.in;
    CHECK_EQ(cc_fd_splice_until(from.in, to.out, 8, &n, cc_after_ms(10000)), 0);
    CHECK_EQ(n, 3);
    take(to.in, 3);
    close_pair(from);
    close_pair(to);
    return arg;
}

TEST_WORKERS(a_splice_whose_target_has_room_at_once) {
    CHECK_EQ(cc_run(splices_into_new_room, NULL, NULL), 0);
}

/* ---- a splice whose source is closed, and its number reused, between the event and the next attempt ---- */

CC_TASK(splice_one, { int from, to; }) {
    size_t n;
    return (void *)(intptr_t)cc_fd_splice(self->from, self->to, 8, &n);
}

/* On the only worker, so that the fiber that was woken does not run meanwhile. */
CC_TASK(close_and_reuse, {
    struct pair from;
    int other;
}) {
    CHECK_EQ(write(self->from.out, "x", 1), 1);
    rest_until_waiters(0); /* sysmon has polled */
    CHECK_EQ(cc_fd_close(self->from.in), 0);
    CHECK_EQ(dup3(self->other, self->from.in, O_CLOEXEC), self->from.in);
    return NULL;
}

TEST(a_splice_whose_source_is_another_one_now) {
    CCRuntimeConfig config = {.workers = 1, .max_workers = 1};
    struct pair from = make_pipe(true), to = make_pipe(true), other = make_pipe(false);
    char bytes[8];
    size_t n;
    CHECK_EQ(cc_runtime_init(&config), 0);
    CHECK_EQ(write(other.out, "own", 3), 3);
    CCTask splicer = CC_GO(splice_one, .from = from.in, .to = to.out);
    rest_until_waiters(1);
    CCTask closer = CC_GO(close_and_reuse, .from = from, .other = other.in);
    void *error = NULL;
    CHECK_EQ(cc_task_join(&closer, NULL), 0);
    CHECK_EQ(cc_task_join(&splicer, &error), 0);
    CHECK_EQ((intptr_t)error, EBADF);
    CHECK_EQ(cc_fd_read_try(to.in, bytes, sizeof bytes, &n), EAGAIN);
    take(other.in, 3);
    CHECK_EQ(close(from.in) + close(from.out), 0);
    close_pair(to);
    close_pair(other);
}

/* ---- FD-11: several read from a pipe in blocking mode, which nobody has adopted ---- */

enum { READERS = 3, COMPETED_FOR = 300 };

static struct {
    _Atomic int fd; /* that is watched; -1: none */
    _Atomic int got;
} contest = {-1, 0};

/* Replaces the C library's: lets others run after the poll of the pipe. */
int poll(struct pollfd *fds, nfds_t n, int timeout) {
    struct timespec wait = {timeout / 1000, timeout % 1000 * 1000000};
    int ready = (int)syscall(SYS_ppoll, fds, n, timeout < 0 ? NULL : &wait, NULL, 0);
    if (n == 1 && ready == 1 && fds->fd == atomic_load(&contest.fd))
        for (int i = 0; i < 20; i++) sched_yield();
    return ready;
}

/* And this detects that the read would block its worker in the system. */
ssize_t readv(int fd, const struct iovec *parts, int n) {
    int there = 0;
    if (fd == atomic_load(&contest.fd)) {
        CHECK_EQ(ioctl(fd, FIONREAD, &there), 0);
        CHECK(there > 0);
    }
    return syscall(SYS_readv, fd, parts, n);
}

static void *compete(void *pair) {
    const struct pair *p = pair;
    char byte;
    size_t n = 1;
    int error;
    while ((error = cc_fd_read_until(p->in, &byte, 1, &n, cc_after_ms(1))) == ETIMEDOUT || n != 0) {
        CHECK(error == 0 || error == ETIMEDOUT);
        if (error == 0) atomic_fetch_add(&contest.got, 1);
        n = 1;
    }
    return NULL;
}

TEST_WORKERS(several_read_in_blocking_mode) {
    struct pair p = make_pipe(false);
    pthread_t threads[READERS];
    CCTask fibers[READERS];
    atomic_store(&contest.fd, p.in);
    for (int i = 0; i < READERS; i++) {
        CHECK_EQ(pthread_create(&threads[i], NULL, compete, &p), 0);
        fibers[i] = cc_fiber_spawn_task(compete, &p);
    }
    for (int i = 1; i <= test_scale(COMPETED_FOR); i++) {
        CHECK_EQ(write(p.out, "x", 1), 1);
        while (atomic_load(&contest.got) != i) sched_yield();
    }
    atomic_store(&contest.fd, -1);
    CHECK_EQ(close(p.out), 0);
    for (int i = 0; i < READERS; i++) {
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
        CHECK_EQ(cc_task_join(&fibers[i], NULL), 0);
    }
    CHECK_EQ(close(p.in), 0);
}

/* ---- the end of a wait and the edge at the same moment: the byte is read, or is still there ---- */

static struct {
    struct pair p;
    _Atomic uint64_t round, due; /* the thread writes the byte of that round at about that time */
} at_once;

static void *write_when_due(void *arg) {
    uint64_t rounds = *(uint64_t *)arg, rng = test_seed();
    for (uint64_t round = 1; round <= rounds; round++) {
        while (atomic_load(&at_once.round) != round) sched_yield();
        uint64_t due = atomic_load(&at_once.due) + test_random(&rng) % 40000;
        while (cc_now_ns() + 20000 < due) sched_yield();
        unsigned char byte = (unsigned char)round;
        CHECK_EQ(cc_fd_write(at_once.p.out, &byte, 1, NULL), 0);
    }
    return NULL;
}

static void *deadlines(void *arg) {
    uint64_t rounds = *(uint64_t *)arg, late = 0;
    for (uint64_t round = 1; round <= rounds; round++) {
        CCDeadline deadline = cc_after_ns(100000);
        unsigned char byte = 0;
        size_t n = 0;
        atomic_store(&at_once.due, deadline.ns);
        atomic_store(&at_once.round, round);
        int error = cc_fd_read_until(at_once.p.in, &byte, 1, &n, deadline);
        CHECK(error == 0 ? n == 1 : error == ETIMEDOUT && n == 0);
        if (error != 0) byte = read_byte(at_once.p.in);
        late += error != 0;
        CHECK_EQ(byte, (unsigned char)round);
    }
    test_count("deadlines that were first", late);
    return NULL;
}

static void run_at_once(void *(*fn)(void *), uint64_t rounds) {
    for (int adopt = 0; adopt < 2; adopt++) {
        pthread_t thread;
        at_once.p = make_pipe(adopt);
        atomic_store(&at_once.round, 0);
        CHECK_EQ(pthread_create(&thread, NULL, write_when_due, &rounds), 0);
        CHECK_EQ(cc_run(fn, &rounds, NULL), 0);
        CHECK_EQ(pthread_join(thread, NULL), 0);
        CHECK_EQ(cc_io_waiters(), 0);
        close_pair(at_once.p);
    }
}

TEST_WORKERS(a_deadline_at_the_edge) {
    run_at_once(deadlines, (uint64_t)test_scale(50));
}

CC_TASK(read_or_be_cancelled, { _Atomic int *byte; }) {
    unsigned char byte = 0;
    size_t n = 0;
    int error = cc_fd_read(at_once.p.in, &byte, 1, &n);
    CHECK(error == 0 ? n == 1 : error == ECANCELED && n == 0);
    if (error == 0) atomic_store(self->byte, byte);
    return NULL;
}

static void *cancellations(void *arg) {
    uint64_t rounds = *(uint64_t *)arg, late = 0, rng = ~test_seed();
    for (uint64_t round = 1; round <= rounds; round++) {
        _Atomic int byte = -1;
        CC_NURSERY(nursery) {
            CHECK_EQ(CC_GO_IN(nursery, read_or_be_cancelled, .byte = &byte), 0);
            await_waiters(1);
            uint64_t due = cc_now_ns() + 30000;
            atomic_store(&at_once.due, due);
            atomic_store(&at_once.round, round);
            due += test_random(&rng) % 100000;
            while (cc_now_ns() < due) cc_yield();
            CHECK_EQ(cc_nursery_cancel(nursery), 0);
        }
        late += atomic_load(&byte) < 0;
        CHECK_EQ(atomic_load(&byte) < 0 ? read_byte(at_once.p.in) : atomic_load(&byte), (unsigned char)round);
    }
    test_count("cancellations that were first", late);
    return NULL;
}

TEST_WORKERS(a_cancellation_against_data) {
    run_at_once(cancellations, (uint64_t)test_scale(50));
}

/* ---- close against every kind of wait ---- */

enum way { WAY_READ, WAY_WRITE, WAY_ACCEPT, WAY_CONNECT, WAY_SELECT, WAYS };

CC_TASK(wait_in_vain, {
    enum way way;
    int fd;
    struct sockaddr_in address;
}) {
    char byte = 0;
    size_t n;
    int error = -1, connection;
    CCCase readable = {.kind = CC_CASE_READABLE, .fd = self->fd};
    switch (self->way) {
    case WAY_READ:
        error = cc_fd_read(self->fd, &byte, 1, &n);
        break;
    case WAY_WRITE:
        error = cc_fd_write(self->fd, &byte, 1, &n);
        break;
    case WAY_ACCEPT:
        error = cc_fd_accept(self->fd, &connection, NULL, NULL);
        break;
    case WAY_CONNECT:
        error = cc_fd_connect(self->fd, (struct sockaddr *)&self->address, sizeof self->address);
        break;
    default:
        CHECK_EQ(cc_select(&readable, 1, CC_FOREVER, &n), 0);
        error = readable.error;
    }
    CHECK_EQ(error, EBADF);
    return NULL;
}

static int tcp(void) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0);
    return fd;
}

static int listener_at(struct sockaddr_in *address, int backlog) {
    socklen_t length = sizeof *address;
    int fd = tcp();
    *address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    CHECK_EQ(bind(fd, (struct sockaddr *)address, sizeof *address), 0);
    CHECK_EQ(listen(fd, backlog), 0);
    CHECK_EQ(getsockname(fd, (struct sockaddr *)address, &length), 0);
    return fd;
}

/* Of a listener: how many wait to be accepted, and how many may; one more than that fills it. */
static bool backlog_is(int listener, unsigned n, bool *full) {
    struct tcp_info info;
    socklen_t length = sizeof info;
    CHECK_EQ(getsockopt(listener, IPPROTO_TCP, TCP_INFO, &info, &length), 0);
    *full = info.tcpi_unacked > info.tcpi_sacked;
    return info.tcpi_unacked == n;
}

/* Fills the backlog: whoever connects then waits for an answer. */
static void fill_backlog(int listener, const struct sockaddr_in *address, int *fds, int *count, int most) {
    bool full = false;
    for (*count = 0; !full; ++*count) {
        CHECK(*count < most);
        fds[*count] = tcp();
        CHECK_EQ(connect(fds[*count], (const struct sockaddr *)address, sizeof *address), 0);
        while (!backlog_is(listener, (unsigned)*count + 1, &full)) rest_ms(1);
    }
}

static void close_against(enum way way, bool adopt) {
    struct sockaddr_in address = {0};
    struct pair p = make_sockets(false);
    int others[8], count = 0, listener = -1, fd = p.in;
    if (way == WAY_WRITE) fill(fd);
    if (way == WAY_ACCEPT) fd = listener = listener_at(&address, 8);
    if (way == WAY_CONNECT) {
        listener = listener_at(&address, 0);
        fill_backlog(listener, &address, others, &count, 8);
        fd = tcp();
    }
    if (adopt) CHECK_EQ(cc_fd_adopt(fd), 0);
    CC_NURSERY(nursery) {
        CHECK_EQ(CC_GO_IN(nursery, wait_in_vain, .way = way, .fd = fd, .address = address), 0);
        await_waiters(1);
        CHECK_EQ(cc_fd_close(fd), 0);
    }
    CHECK_EQ(cc_io_waiters(), 0);
    for (int i = 0; i < count; i++) close(others[i]);
    if (listener >= 0 && listener != fd) CHECK_EQ(cc_fd_close(listener), 0);
    if (p.in != fd) CHECK_EQ(cc_fd_close(p.in), 0);
    CHECK_EQ(cc_fd_close(p.out), 0);
}

static void *closes(void *arg) {
    for (enum way way = 0; way < WAYS; way++)
        for (int adopt = 0; adopt < 2; adopt++) close_against(way, adopt);
    return arg;
}

TEST_WORKERS(close_against_read_write_accept_connect_select) {
    CHECK_EQ(cc_run(closes, NULL, NULL), 0);
}

/* ---- a reader and an arm of a select at one descriptor ---- */

CC_TASK(select_readable, { int fd; }) {
    CCCase readable = {.kind = CC_CASE_READABLE, .fd = self->fd};
    size_t n;
    CHECK_EQ(cc_select(&readable, 1, CC_FOREVER, &n), 0);
    CHECK_EQ(readable.error, 0);
    return NULL;
}

CC_TASK(read_x, { int fd; }) {
    CHECK_EQ(read_byte(self->fd), 'x');
    return NULL;
}

/* Both are served, in any order: a second byte is sent if the reader has taken the first. */
static void *reader_and_arm(void *arg) {
    for (int adopt = 0; adopt < 2; adopt++)
        for (int first = 0; first < 2; first++) {
            struct pair p = make_pipe(adopt);
            CC_NURSERY(nursery) {
                if (first) CHECK_EQ(CC_GO_IN(nursery, read_x, .fd = p.in), 0);
                CHECK_EQ(CC_GO_IN(nursery, select_readable, .fd = p.in), 0);
                if (!first) CHECK_EQ(CC_GO_IN(nursery, read_x, .fd = p.in), 0);
                await_waiters(2);
                CHECK_EQ(cc_fd_write(p.out, "xx", 2, NULL), 0);
            }
            CHECK_EQ(read_byte(p.in), 'x');
            close_pair(p);
        }
    return arg;
}

TEST_WORKERS(a_reader_and_an_arm_of_a_select) {
    CHECK_EQ(cc_run(reader_and_arm, NULL, NULL), 0);
}

/* ---- adopted while others use it ---- */

static _Atomic bool adopted;

CC_TASK(use_meanwhile, { struct pair p; }) {
    char byte;
    size_t n;
    while (!atomic_load(&adopted)) {
        CHECK_EQ(cc_fd_write(self->p.out, "x", 1, &n), 0);
        CHECK_EQ(cc_fd_read(self->p.in, &byte, 1, &n), 0);
        CHECK_EQ(cc_fd_read_try(self->p.in, &byte, 1, &n), EAGAIN);
        cc_yield();
    }
    return NULL;
}

static void *adopt_again_and_again(void *arg) {
    struct pair *p = arg;
    for (long i = test_scale(200); i > 0; i--) {
        CHECK_EQ(cc_fd_adopt(p->in) + cc_fd_adopt(p->out), 0);
        if (i % 16 == 0) sched_yield();
    }
    atomic_store(&adopted, true);
    return NULL;
}

TEST_WORKERS(adopted_while_others_are_inside) {
    for (int sockets = 0; sockets < 2; sockets++) {
        struct pair p = sockets ? make_sockets(false) : make_pipe(false);
        pthread_t thread;
        struct io_use begun; /* of a call that has found it, and not yet entered */
        CHECK_EQ(cc__fd_find(p.out, &begun), 0);
        CHECK_EQ(cc_fd_adopt(p.out), 0);
        CHECK_EQ(cc__fd_enter(&begun), 0);
        cc__fd_leave(&begun);
        atomic_store(&adopted, false);
        CCTask task = CC_GO(use_meanwhile, .p = p);
        CHECK_EQ(pthread_create(&thread, NULL, adopt_again_and_again, &p), 0);
        CHECK_EQ(pthread_join(thread, NULL), 0);
        CHECK_EQ(cc_task_join(&task, NULL), 0);
        close_pair(p);
    }
}

/* ---- who polls ---- */

static _Atomic bool served;
static _Atomic int spinning;

CC_TASK(be_served, { int fd; }) {
    (void)read_byte(self->fd);
    atomic_store(&served, true);
    return NULL;
}

/* One turn, until another fiber has had one. */
static void *spin(void *arg) {
    atomic_fetch_add(&spinning, 1);
    while (!atomic_load(&served)) {
    }
    return arg;
}

/* The polling worker is notified, and stays busy: another sleeper takes over the poll. */
TEST_WORKERS(the_role_is_handed_over) {
    CHECK_EQ(cc_runtime_init(NULL), 0);
    int spinners = (int)cc_worker_count() - 1;
    if (spinners == 0) SKIP("needs two workers");
    if (spinners > 3) spinners = 3;
    struct pair p = make_pipe(true);
    CCTask reader = CC_GO(be_served, .fd = p.in), spinner[3];
    rest_until_waiters(1);
    for (int i = 0; i < spinners; i++) {
        spinner[i] = cc_fiber_spawn_task(spin, NULL);
        while (atomic_load(&spinning) == 0) rest_ms(1);
    }
    CHECK_EQ(write(p.out, "x", 1), 1);
    CHECK_EQ(cc_task_join(&reader, NULL), 0);
    for (int i = 0; i < spinners; i++) CHECK_EQ(cc_task_join(&spinner[i], NULL), 0);
    close_pair(p);
}

CC_TASK(spin_the_second_time, { int fd; }) {
    (void)read_byte(self->fd);
    (void)read_byte(self->fd);
    return spin(NULL);
}

/* The same after an idle period in which the watcher has given up its role: the polling worker was not the watcher. */
TEST_WORKERS(the_role_is_handed_over_after_idling) {
    CHECK_EQ(cc_runtime_init(NULL), 0);
    if (cc_worker_count() == 1) SKIP("needs two workers");
    struct pair first = make_pipe(true), second = make_pipe(true);
    CCTask spinner = CC_GO(spin_the_second_time, .fd = first.in), reader = CC_GO(be_served, .fd = second.in);
    rest_until_waiters(2);
    CHECK_EQ(write(first.out, "x", 1), 1);
    rest_ms(20); /* not what is waited for: a chance for the watcher to give up */
    rest_until_waiters(2);
    CHECK_EQ(write(first.out, "x", 1), 1);
    while (atomic_load(&spinning) == 0) rest_ms(1);
    CHECK_EQ(write(second.out, "x", 1), 1);
    CHECK_EQ(cc_task_join(&reader, NULL), 0);
    CHECK_EQ(cc_task_join(&spinner, NULL), 0);
    close_pair(first);
    close_pair(second);
}

/* The only worker stays in its turn, so only sysmon can poll, every 10 ms: then the reader no longer waits for its
 * descriptor, but for a worker, which is added for it. A sleep measures what 10 ms are here. */
static uint64_t ns_while_all_spin(uint64_t *reference) {
    CCRuntimeConfig config = {.workers = 1, .max_workers = 2};
    struct pair p = make_pipe(true);
    atomic_store(&served, false);
    atomic_store(&spinning, 0);
    CHECK_EQ(cc_runtime_init(&config), 0);
    CCTask reader = CC_GO(be_served, .fd = p.in);
    rest_until_waiters(1);
    CCTask spinner = cc_fiber_spawn_task(spin, NULL);
    while (atomic_load(&spinning) == 0) rest_ms(1);
    uint64_t begin = cc_now_ns();
    rest_ms(10);
    uint64_t written = cc_now_ns();
    if (written - begin > *reference) *reference = written - begin;
    CHECK_EQ(write(p.out, "x", 1), 1);
    while (cc_io_waiters() != 0) rest_ms(1);
    uint64_t ready = cc_now_ns();
    CHECK_EQ(cc_task_join(&reader, NULL), 0);
    CHECK_EQ(cc_task_join(&spinner, NULL), 0);
    close_pair(p);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    return ready - written;
}

TEST(sysmon_polls_when_all_workers_spin) {
    uint64_t best = UINT64_MAX, reference = 0;
    for (int i = 0; i < 50 && best >= 5 * reference; i++) { /* a busy machine: one good round is enough */
        uint64_t ns = ns_while_all_spin(&reference);
        if (ns < best) best = ns;
    }
    printf("ready after %.1f ms at best; a sleep of 10 ms took up to %.1f ms\n", (double)best / 1e6,
           (double)reference / 1e6);
    CHECK(best < 5 * reference);
}

/* Turns of a millisecond: the next switch polls. */
enum { COMPUTING = 3, ROUNDS = 9 };

static _Atomic long turns, turns_when_read;
static _Atomic bool computed;

static uint64_t cpu_ns(void) {
    struct timespec ts;
    CHECK_EQ(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts), 0);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void *compute(void *arg) {
    while (!atomic_load(&computed)) {
        for (uint64_t end = cpu_ns() + 1000000; cpu_ns() < end;) {
        }
        atomic_fetch_add(&turns, 1);
        cc_yield();
    }
    return arg;
}

CC_TASK(note_turns, { int fd; }) {
    for (int i = 0; i < ROUNDS; i++) {
        (void)read_byte(self->fd);
        atomic_store(&turns_when_read, atomic_load(&turns));
    }
    return NULL;
}

static int by_size(const void *a, const void *b) {
    long x = *(const long *)a, y = *(const long *)b;
    return (x > y) - (x < y);
}

TEST(served_at_the_next_switch) {
    CCRuntimeConfig config = {.workers = 1, .max_workers = 1}; /* no other one counts turns */
    CHECK_EQ(cc_runtime_init(&config), 0);
    struct pair p = make_pipe(true);
    CCTask reader = CC_GO(note_turns, .fd = p.in), computing[COMPUTING];
    for (int i = 0; i < COMPUTING; i++) computing[i] = cc_fiber_spawn_task(compute, NULL);
    long waited[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        rest_until_waiters(1);
        atomic_store(&turns_when_read, -1);
        CHECK_EQ(write(p.out, "x", 1), 1);
        long before = atomic_load(&turns), after;
        while ((after = atomic_load(&turns_when_read)) < 0) rest_ms(1);
        waited[i] = after - before;
        printf("served after %ld turns\n", waited[i]);
    }
    atomic_store(&computed, true);
    CHECK_EQ(cc_task_join(&reader, NULL), 0);
    for (int i = 0; i < COMPUTING; i++) CHECK_EQ(cc_task_join(&computing[i], NULL), 0);
    close_pair(p);
    qsort(waited, ROUNDS, sizeof *waited, by_size);
    CHECK(waited[ROUNDS / 2] <= COMPUTING + 1); /* the current turn, and one of each of the others */
}

/* ---- a ticker beside connections that are always busy ---- */

enum { BUSY = 20, TICKS = 25 };

static _Atomic uint64_t due;
static _Atomic long late;

CC_TASK(stay_busy, { int fd; }) {
    char bytes[32];
    size_t n = 1;
    while (cc_fd_read(self->fd, bytes, sizeof bytes, &n) == 0 && n > 0) {
        if (cc_now_ns() >= atomic_load(&due)) atomic_fetch_add(&late, 1);
        if (cc_fd_write(self->fd, bytes, n, NULL) != 0) break;
    }
    return NULL;
}

static void *tick(void *arg) {
    long *turns_late = arg;
    struct pair p[BUSY];
    atomic_store(&due, UINT64_MAX);
    CC_NURSERY(nursery) {
        for (int i = 0; i < BUSY; i++) {
            p[i] = make_sockets(true);
            CHECK_EQ(CC_GO_IN(nursery, stay_busy, .fd = p[i].in), 0);
            CHECK_EQ(CC_GO_IN(nursery, stay_busy, .fd = p[i].out), 0);
            CHECK_EQ(cc_fd_write(p[i].in, "ping", 4, NULL), 0);
        }
        for (int i = 0; i < TICKS; i++) {
            CCDeadline next = cc_after_ms(2);
            atomic_store(&late, 0);
            atomic_store(&due, next.ns);
            CHECK_EQ(cc_sleep_until(next), 0);
            turns_late[i] = atomic_load(&late);
        }
        CHECK_EQ(cc_nursery_cancel(nursery), 0);
    }
    for (int i = 0; i < BUSY; i++) close_pair(p[i]);
    return NULL;
}

/* In turns of others, which a busy machine does not change. */
TEST(a_ticker_beside_busy_connections) {
    CCRuntimeConfig config = {.workers = 1, .max_workers = 1};
    long turns_late[TICKS];
    CHECK_EQ(cc_runtime_init(&config), 0);
    CHECK_EQ(cc_run(tick, turns_late, NULL), 0);
    qsort(turns_late, TICKS, sizeof *turns_late, by_size);
    printf("a tick is late by %ld turns, at most %ld\n", turns_late[TICKS / 2], turns_late[TICKS - 1]);
    CHECK(turns_late[TICKS / 2] <= 64);
}

/* ---- workers that come and go ---- */

static _Atomic bool blocked;

CC_TASK(block_worker, { int fd; }) {
    char byte;
    atomic_store(&blocked, true);
    CHECK_EQ(read(self->fd, &byte, 1), 1);
    return NULL;
}

TEST(an_elastic_worker_retires_while_it_polls) {
    CCRuntimeConfig config = {.workers = 1, .max_workers = 2};
    struct pair p = make_pipe(true);
    int ends[2];
    CHECK_EQ(pipe(ends), 0);
    CHECK_EQ(cc_runtime_init(&config), 0);
    CCTask blocker = CC_GO(block_worker, .fd = ends[0]);
    while (!atomic_load(&blocked)) rest_ms(1);
    CCTask reader = CC_GO(be_served, .fd = p.in); /* by a worker that is added for it */
    while (cc__get(&cc__sched.idle.poller) != &cc__sched.workers[1]) rest_ms(1);
    CHECK_EQ(write(ends[1], "x", 1), 1);
    CHECK_EQ(cc_task_join(&blocker, NULL), 0);
    while (cc_worker_count() != 1) rest_ms(1);
    CHECK_EQ(cc_io_waiters(), 1);
    CHECK_EQ(write(p.out, "x", 1), 1);
    CHECK_EQ(cc_task_join(&reader, NULL), 0);
    close(ends[0]);
    close(ends[1]);
    close_pair(p);
}

/* ---- fork and exec ---- */

TEST_WORKERS(a_forked_child_has_no_waiters) {
    struct pair p = make_pipe(true);
    CCTask readers[3];
    for (int i = 0; i < 3; i++) readers[i] = CC_GO(read_x, .fd = p.in);
    rest_until_waiters(3);
    fflush(stdout);
    pid_t child = test_fork();
    CHECK(child >= 0);
    if (child == 0) {
        char byte;
        size_t n;
        bool right = cc_io_waiters() == 0 && cc_fd_read_try(p.in, &byte, 1, &n) == EAGAIN &&
                     cc_fd_write_try(p.out, "xxx", 3, &n) == 0 && n == 3 && cc_fd_close(p.in) == 0 &&
                     cc_fd_close(p.out) == 0;
        _exit(right ? 0 : 1);
    }
    for (int i = 0; i < 3; i++) CHECK_EQ(cc_task_join(&readers[i], NULL), 0);
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    close_pair(p);
}

static void *number_used_again(void *arg) {
    struct pair *old = arg, p = make_pipe(true);
    char byte;
    size_t n;
    for (; p.in != old->in; p = make_pipe(true)) close_pair(p); /* sysmon may have a file open, for a moment */
    CHECK_EQ(cc_fd_write(old->out, "old", 3, NULL), 0);         /* to what the other program still has */
    CHECK_EQ(cc_fd_read_until(p.in, &byte, 1, &n, cc_after_ms(5)), ETIMEDOUT);
    CHECK_EQ(cc_fd_write(p.out, "x", 1, NULL), 0);
    CHECK_EQ(read_byte(p.in), 'x');
    close_pair(p);
    return NULL;
}

/* Another program keeps the open file description: after the close here, it causes no events here. */
TEST_WORKERS(a_program_that_was_started_keeps_the_description) {
    struct pair p = make_sockets(true);
    int hold[2];
    char byte;
    size_t n;
    CHECK_EQ(pipe2(hold, O_CLOEXEC), 0);
    CHECK_EQ(fcntl(p.in, F_SETFD, 0), 0);
    CHECK_EQ(cc_fd_read_until(p.in, &byte, 1, &n, cc_after_ms(1)), ETIMEDOUT); /* it is registered */
    fflush(stdout);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        dup2(hold[0], 0);
        execlp("cat", "cat", (char *)NULL);
        _exit(127);
    }
    CHECK_EQ(cc_fd_close(p.in), 0);
    CHECK_EQ(cc_run(number_used_again, &p, NULL), 0);
    close(hold[0]);
    close(hold[1]);
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    CHECK_EQ(cc_fd_close(p.out), 0);
}
