/* select.c - descriptors as arms of a select, beside channels, tasks and points in time. */
#include "pair.h"

#include "io/fd.h"

#include <ccc/ccc.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* ---- what is ready ---- */

static void *without_waiting(void *arg) {
    for (int adopt = 0; adopt < 2; adopt++) {
        struct pair p = make_sockets(adopt);
        int status = -1, taken = 0;
        CC_MATCH_TRY(CC_READABLE_CASE(p.in, &status)) {
        case CC_MATCH_NONE:
            taken = 1;
        }
        CHECK_EQ(taken, 1);
        CC_MATCH(CC_READABLE_CASE(p.in, NULL), CC_WRITABLE_CASE(p.out, &status)) {
        case 1:
            taken = 2;
        }
        CHECK(taken == 2 && status == 0);
        put(p.out, 1);
        CCCase one = {.kind = CC_CASE_READABLE, .fd = p.in};
        size_t chosen = 9;
        for (int i = 0; i < 3; i++) CHECK_EQ(cc_select(&one, 1, CC_FOREVER, &chosen), 0); /* it stays so */
        CHECK(chosen == 0 && one.error == 0);
        take(p.in, 1);
        CHECK_EQ(cc_select(&one, 1, cc_after_ms(2), &chosen), ETIMEDOUT);
        CHECK_EQ(cc_select_try(&one, 1, &chosen), EAGAIN);
        one.fd = -1;
        CHECK_EQ(cc_select(&one, 1, CC_FOREVER, &chosen), 0);
        CHECK_EQ(one.error, EBADF);
        one.fd = 99999;
        CHECK_EQ(cc_select(&one, 1, CC_FOREVER, &chosen), 0);
        CHECK_EQ(one.error, EBADF);
        taken = 0;
        CC_WHEN {
            CC_ON_READABLE(p.in) {
                taken = 3;
            }
            CC_ON_WRITABLE(p.in) {
                taken = CC_WHEN_ERROR == 0 ? 4 : 5;
            }
        }
        CHECK_EQ(taken, 4);
        close_pair(p);
    }
    return arg;
}

TEST_WORKERS(what_is_ready_is_chosen) {
    CHECK_EQ(cc_run(without_waiting, NULL, NULL), 0);
}

/* ---- waiting ---- */

enum { READ, WRITE, RECV, JOIN, AT, ARMS };

CC_TASK(select_all, {
    int in, full;
    CCChan *ch;
    CCTask *task;
    size_t expected;
    int error;
}) {
    int value = 0;
    size_t chosen = 99;
    CCCase cases[ARMS] = {
        [READ] = {.kind = CC_CASE_READABLE, .fd = self->in},
        [WRITE] = {.kind = CC_CASE_WRITABLE, .fd = self->full},
        [RECV] = {.kind = CC_CASE_RECV, .ch = self->ch, .value = &value, .size = sizeof value},
        [JOIN] = {.kind = CC_CASE_JOIN, .task = self->task},
        [AT] = {.kind = CC_CASE_AT, .deadline = self->expected == AT ? cc_after_ms(2) : CC_FOREVER},
    };
    CHECK_EQ(cc_select(cases, ARMS, CC_FOREVER, &chosen), 0);
    CHECK_EQ(chosen, self->expected);
    CHECK_EQ(cases[chosen].error, self->error);
    return NULL;
}

static void *wait_for_event(void *arg) {
    CHECK_EQ(cc_event_wait(arg), 0);
    return NULL;
}

static void *mixed(void *arg) {
    for (int adopt = 0; adopt < 2; adopt++) {
        struct pair p = make_sockets(adopt), q = make_sockets(adopt);
        CCChan *ch = cc_chan_create(sizeof(int), 0);
        fill(q.out);
        for (size_t expected = 0; expected < ARMS; expected++) {
            CCEvent event = {0};
            CCTask task;
            CHECK_EQ(cc_spawn(&task, wait_for_event, &event, NULL), 0);
            CC_NURSERY(nursery) {
                CHECK_EQ(CC_GO_IN(nursery, select_all, .in = p.in, .full = q.out, .ch = ch, .task = &task,
                                  .expected = expected),
                         0);
                if (expected != AT) await_waiters(2);
                if (expected == READ) put(p.out, 1);
                if (expected == WRITE) drain(q.in);
                if (expected == RECV) CHECK_EQ(cc_chan_send(ch, &(int){7}, sizeof(int)), 0);
                if (expected == JOIN) CHECK_EQ(cc_event_set(&event), 0);
            }
            if (expected == READ) take(p.in, 1);
            if (expected == WRITE) fill(q.out);
            if (expected != JOIN) {
                CHECK_EQ(cc_event_set(&event), 0);
                CHECK_EQ(cc_task_join(&task, NULL), 0);
            }
            CHECK_EQ(cc_io_waiters(), 0);
        }
        cc_chan_free(ch);
        close_pair(p);
        close_pair(q);
    }
    return arg;
}

TEST_WORKERS(beside_channels_tasks_and_time) {
    CHECK_EQ(cc_run(mixed, NULL, NULL), 0);
}

/* An arm that was not chosen has consumed nothing: the reader gets what arrived meanwhile. */
CC_TASK(recv_or_read, {
    int fd;
    CCChan *ch;
    _Atomic int *sum;
    int total;
}) {
    int value = 0;
    while (atomic_load(self->sum) < self->total) {
        CC_MATCH(CC_RECV(self->ch, &value, NULL), CC_READABLE_CASE(self->fd, NULL)) {
        case 0:
            atomic_fetch_add(self->sum, 1);
            break;
        case 1: {
            char byte;
            size_t n;
            int error = cc_fd_read_try(self->fd, &byte, 1, &n);
            if (error == 0) atomic_fetch_add(self->sum, 1);
            CHECK(error == 0 || error == EAGAIN);
            break;
        }
        case CC_MATCH_FAILED:
            return NULL;
        }
    }
    return NULL;
}

CC_TASK(feed, {
    int fd;
    CCChan *ch;
    int count;
}) {
    for (int i = 0; i < self->count; i++) {
        if (self->ch != NULL && i % 2)
            CHECK_EQ(cc_chan_send(self->ch, &i, sizeof i), 0);
        else
            put(self->fd, 1);
        if (i % 5 == 0) cc_yield();
    }
    return NULL;
}

static void *nothing_lost(void *arg) {
    for (int adopt = 0; adopt < 2; adopt++) {
        struct pair p = make_sockets(adopt);
        CCChan *ch = cc_chan_create(sizeof(int), 2);
        _Atomic int sum = 0;
        int count = (int)test_scale(400);
        CC_NURSERY(nursery) {
            for (int i = 0; i < 3; i++)
                CHECK_EQ(CC_GO_IN(nursery, recv_or_read, .fd = p.in, .ch = ch, .sum = &sum, .total = 2 * count), 0);
            CC_NURSERY(feeders) {
                CHECK_EQ(CC_GO_IN(feeders, feed, .fd = p.out, .ch = ch, .count = count), 0);
                CHECK_EQ(CC_GO_IN(feeders, feed, .fd = p.out, .count = count), 0);
            }
            while (atomic_load(&sum) < 2 * count) cc_yield();
            CHECK_EQ(cc_nursery_cancel(nursery), 0); /* those who wait for more */
        }
        CHECK_EQ(sum, 2 * count);
        cc_chan_free(ch);
        close_pair(p);
    }
    return arg;
}

TEST_WORKERS(no_edge_is_lost_when_another_arm_wins) {
    CHECK_EQ(cc_run(nothing_lost, NULL, NULL), 0);
}

/* ---- the same descriptor twice, close, cancellation ---- */

CC_TASK(select_twice, {
    int fd, error;
    bool cancelled;
}) {
    size_t chosen = 9;
    CCCase cases[] = {{.kind = CC_CASE_READABLE, .fd = self->fd}, {.kind = CC_CASE_READABLE, .fd = self->fd}};
    CHECK_EQ(cc_select(cases, 2, CC_FOREVER, &chosen), self->cancelled ? ECANCELED : 0);
    if (!self->cancelled) CHECK_EQ(cases[chosen].error, self->error);
    return NULL;
}

static void *twice(void *arg) {
    for (int adopt = 0; adopt < 2; adopt++) {
        struct pair p = make_sockets(adopt);
        CC_NURSERY(nursery) {
            CHECK_EQ(CC_GO_IN(nursery, select_twice, .fd = p.in), 0);
            await_waiters(2);
            put(p.out, 1);
        }
        take(p.in, 1);
        CC_NURSERY(nursery) {
            CHECK_EQ(CC_GO_IN(nursery, select_twice, .fd = p.in, .cancelled = true), 0);
            await_waiters(2);
            CHECK_EQ(cc_nursery_cancel(nursery), 0);
        }
        CHECK_EQ(cc_io_waiters(), 0);
        CC_NURSERY(nursery) {
            CHECK_EQ(CC_GO_IN(nursery, select_twice, .fd = p.in, .error = EBADF), 0);
            await_waiters(2);
            CHECK_EQ(cc_fd_close(p.in), 0);
        }
        CHECK_EQ(cc_io_waiters(), 0);
        CHECK_EQ(cc_fd_close(p.out), 0);
    }
    return arg;
}

TEST_WORKERS(twice_closed_and_cancelled) {
    CHECK_EQ(cc_run(twice, NULL, NULL), 0);
}

/* More arms than fit into a frame. */
enum { MANY = 40 };

CC_TASK(select_many, {
    const int *fds;
    size_t expected;
}) {
    CCCase cases[MANY] = {{0}};
    size_t chosen;
    for (int i = 0; i < MANY; i++) cases[i] = (CCCase){.kind = CC_CASE_READABLE, .fd = self->fds[i]};
    CHECK_EQ(cc_select(cases, MANY, CC_FOREVER, &chosen), 0);
    CHECK_EQ(chosen, self->expected);
    return NULL;
}

static void *many(void *arg) {
    int fds[MANY];
    uint64_t one = 1;
    for (int i = 0; i < MANY; i++) {
        fds[i] = eventfd(0, EFD_CLOEXEC);
        CHECK(fds[i] >= 0);
        if (i % 2) CHECK_EQ(cc_fd_adopt(fds[i]), 0);
    }
    for (size_t i = 0; i < 2; i++) CC_NURSERY(nursery) {
            CHECK_EQ(CC_GO_IN(nursery, select_many, .fds = fds, .expected = MANY - 1 - i), 0);
            await_waiters(MANY);
            CHECK_EQ(cc_fd_write(fds[MANY - 1 - i], &one, sizeof one, NULL), 0);
            CHECK_EQ(cc_nursery_wait(nursery), 0);
            size_t n;
            CHECK_EQ(cc_fd_read(fds[MANY - 1 - i], &one, sizeof one, &n), 0);
        }
    for (int i = 0; i < MANY; i++) CHECK_EQ(cc_fd_close(fds[i]), 0);
    return arg;
}

TEST_WORKERS(many_arms) {
    CHECK_EQ(cc_run(many, NULL, NULL), 0);
}

/* ---- OS threads ---- */

static void await_from_outside(size_t n) {
    while (cc_io_waiters() != n) {
        struct timespec ms = {0, 1000000};
        nanosleep(&ms, NULL);
    }
}

static void *put_later(void *arg) {
    await_from_outside(1);
    put(*(int *)arg, 1);
    return NULL;
}

TEST_WORKERS(an_os_thread_selects) {
    for (int adopt = 0; adopt < 2; adopt++) {
        struct pair p = make_sockets(adopt);
        CCChan *ch = cc_chan_create(sizeof(int), 0);
        pthread_t thread;
        int value, taken = 0;
        CC_MATCH(CC_READABLE_CASE(p.in, NULL), CC_RECV(ch, &value, NULL), CC_AFTER_MS(2)) {
        case 2:
            taken = 1;
        }
        CHECK_EQ(taken, 1);
        CHECK_EQ(pthread_create(&thread, NULL, put_later, &p.out), 0);
        CC_MATCH(CC_READABLE_CASE(p.in, NULL), CC_RECV(ch, &value, NULL)) {
        case 0:
            taken = 2;
        }
        CHECK_EQ(taken, 2);
        CHECK_EQ(pthread_join(thread, NULL), 0);
        cc_chan_free(ch);
        close_pair(p);
    }
}

static void *select_for_ever(void *arg) {
    CCCase one = {.kind = CC_CASE_READABLE, .fd = *(int *)arg};
    size_t chosen;
    return (void *)(intptr_t)cc_select(&one, 1, CC_FOREVER, &chosen);
}

TEST_WORKERS(a_shutdown_ends_an_os_threads_select) {
    for (int adopt = 0; adopt < 2; adopt++) {
        struct pair p = make_sockets(adopt);
        pthread_t thread;
        void *error;
        CHECK_EQ(pthread_create(&thread, NULL, select_for_ever, &p.in), 0);
        await_from_outside(1);
        CHECK_EQ(cc_runtime_shutdown(10000), 0);
        CHECK_EQ(pthread_join(thread, &error), 0);
        CHECK_EQ((intptr_t)error, ECANCELED);
        CHECK_EQ(cc_io_waiters(), 0);
        close_pair(p);
    }
}

/* ---- a spurious event, and a channel that is freed before the select runs ---- */

CC_TASK(selects, {
    CCChan *ch;
    int fd;
    bool timed;
}) {
    int value = 0;
    size_t chosen = 9;
    CCCase cases[] = {CC_READABLE_CASE(self->fd, NULL), CC_RECV(self->ch, &value, NULL)};
    CHECK_EQ(cc_select(cases, 2, self->timed ? cc_after_s(60) : CC_FOREVER, &chosen), 0);
    CHECK_EQ(chosen, 1);
    CHECK_EQ(cases[1].error, EPIPE);
    return NULL;
}

/* As if the poller had reported the descriptor. */
static void report(int number) {
    struct io_use use;
    struct wakes wakes;
    CHECK_EQ(cc__fd_find(number, &use), 0);
    uint64_t generation = cc__get(&use.fd->word) >> 32;
    cc__wakes_init(&wakes);
    cc__fd_event(&(struct poller_event){generation << 32 | (uint32_t)number, POLLER_READ}, &wakes);
    cc__wakes_flush(&wakes);
}

static void *free_before_it_runs(void *arg) {
    for (int i = 0; i < 4; i++) {
        struct pair p = make_sockets(i & 1);
        CCChan *ch = cc_chan_create(sizeof(int), 1);
        CC_NURSERY(n) {
            CHECK_EQ(CC_GO_IN(n, selects, .ch = ch, .fd = p.in, .timed = i >= 2), 0);
            while (cc_io_waiters() == 0) cc_yield();
            for (int k = 0; k < 3; k++) {
                report(p.in); /* nothing is there */
                if (k < 2) cc_yield();
            }
            cc_chan_free(ch);
        }
        close_pair(p);
    }
    return arg;
}

TEST(a_channel_is_freed_while_an_event_makes_the_select_poll_again) {
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = 1, .max_workers = 1}), 0);
    CHECK_EQ(cc_run(free_before_it_runs, NULL, NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
}

/* ---- the simulator has no descriptors ---- */

static void *simulated(void *arg) {
    struct pair p = make_sockets(false);
    int status = -1, taken = 0;
    CC_MATCH(CC_WRITABLE_CASE(p.in, &status)) {
    case 0:
        taken = 1;
    }
    CHECK(taken == 1 && status == 0);
    CC_MATCH(CC_READABLE_CASE(p.in, &status)) {
    case 0:
        taken = 2;
    }
    CHECK(taken == 2 && status == ENOTSUP);
    CHECK_EQ(cc_fd_wait(p.in, CC_READABLE, NULL), ENOTSUP);
    CHECK_EQ(cc_fd_wait(p.in, CC_WRITABLE, NULL), 0);
    CHECK_EQ(cc_poll(NULL, 0, cc_after_ms(1000), NULL), ETIMEDOUT); /* simulated time */
    close_pair(p);
    return arg;
}

TEST(in_a_simulation) {
    CHECK_EQ(cc_sim_run(7, simulated, NULL, NULL), 0);
}
