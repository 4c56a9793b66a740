/* order.c - the order in which fibers with ready descriptors are served. Counted in turns on one worker, which a busy
 * machine does not change; it may change which poll finds an event, so that one good round among some is enough. */
#include "pair.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

enum { ROUNDS = 50 };

static void start(void) {
    CCRuntimeConfig config = {.workers = 1};
    CHECK_EQ(cc_runtime_init(&config), 0);
}

/* ---- NEXT-2: events are served in their order ---- */

enum { FIRST = 100 };

static struct pair pipes[2 * FIRST];
static _Atomic int first_served, overtakes;

/* Each of the first fibers causes an event for one of the others, while the rest of the first ones still wait. */
CC_TASK(be_served, { int index; }) {
    char byte;
    size_t n;
    CHECK_EQ(cc_fd_read(pipes[self->index].in, &byte, 1, &n), 0);
    if (self->index < FIRST) {
        atomic_fetch_add(&first_served, 1);
        CHECK_EQ(cc_fd_write(pipes[self->index + FIRST].out, "x", 1, NULL), 0);
    } else if (atomic_load(&first_served) < FIRST) {
        atomic_fetch_add(&overtakes, 1);
    }
    for (uint64_t end = cc_now_ns() + 20000; cc_now_ns() < end;) { /* a turn that is worth a poll */
    }
    return NULL;
}

static void *serve_all(void *arg) {
    CC_NURSERY(nursery) {
        atomic_store(&first_served, 0);
        atomic_store(&overtakes, 0);
        for (int i = 0; i < 2 * FIRST; i++) CHECK_EQ(CC_GO_IN(nursery, be_served, .index = i), 0);
        await_waiters(2 * FIRST);
        for (int i = 0; i < FIRST; i++) CHECK_EQ(cc_fd_write(pipes[i].out, "x", 1, NULL), 0);
    }
    return arg;
}

TEST(events_are_served_in_their_order) {
    int least = FIRST, enough = FIRST / 5; /* about half, if events went to the front */
    for (int i = 0; i < 2 * FIRST; i++) pipes[i] = make_pipe(true);
    start();
    for (int i = 0; i < ROUNDS && least > enough; i++) {
        CHECK_EQ(cc_run(serve_all, NULL, NULL), 0);
        int n = atomic_load(&overtakes);
        printf("%d of %d later events were served first\n", n, FIRST);
        if (n < least) least = n;
    }
    for (int i = 0; i < 2 * FIRST; i++) close_pair(pipes[i]);
    CHECK(least <= enough);
}

/* ---- a timer that is due just after many events have come ---- */

enum { SLEEPS = 20 };

static _Atomic int served;

CC_TASK(take_long, { int index; }) {
    char byte;
    size_t n;
    CHECK_EQ(cc_fd_read(pipes[self->index].in, &byte, 1, &n), 0);
    atomic_fetch_add(&served, 1);
    for (uint64_t end = cc_now_ns() + 100000; cc_now_ns() < end;) { /* a poll after every turn */
    }
    return NULL;
}

static void *sleep_beside_events(void *late) {
    CC_NURSERY(nursery) {
        atomic_store(&served, 0);
        for (int i = 0; i < FIRST; i++) CHECK_EQ(CC_GO_IN(nursery, take_long, .index = i), 0);
        await_waiters(FIRST);
        for (int i = 0; i < FIRST; i++) CHECK_EQ(cc_fd_write(pipes[i].out, "x", 1, NULL), 0);
        CHECK_EQ(cc_sleep_until((CCDeadline){cc_now_ns() + 50000}), 0);
        if (atomic_load(&served) > FIRST / 2) ++*(int *)late;
    }
    return NULL;
}

TEST(timer_beside_many_events) {
    int late = 0;
    for (int i = 0; i < FIRST; i++) pipes[i] = make_pipe(true);
    start();
    for (int i = 0; i < SLEEPS; i++) CHECK_EQ(cc_run(sleep_beside_events, &late, NULL), 0);
    for (int i = 0; i < FIRST; i++) close_pair(pipes[i]);
    printf("%d of %d timers waited for the turns of most others\n", late, SLEEPS);
    CHECK(late <= SLEEPS / 4);
}

/* ---- CALL-3: connections that wait to be accepted beside many fibers that are ready ---- */

enum { CLIENTS = 300, BUSY = 256 };

static _Atomic bool accepted_all;
static _Atomic long yields;

static void *stay_busy(void *arg) {
    while (!atomic_load(&accepted_all)) {
        atomic_fetch_add(&yields, 1);
        cc_yield();
    }
    return arg;
}

/* All connect before the first is accepted. */
static int listen_for(int *clients) {
    struct sockaddr_un at = {.sun_family = AF_UNIX}; /* a name that the system chooses */
    socklen_t length = sizeof at.sun_family;
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_EQ(bind(listener, (struct sockaddr *)&at, length), 0);
    CHECK_EQ(listen(listener, CLIENTS), 0);
    length = sizeof at;
    CHECK_EQ(getsockname(listener, (struct sockaddr *)&at, &length), 0);
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        CHECK_EQ(connect(clients[i], (struct sockaddr *)&at, length), 0);
    }
    CHECK_EQ(cc_fd_adopt(listener), 0);
    return listener;
}

/* How many rounds of all the others it takes. */
static void *accept_all(void *arg) {
    double *rounds = arg;
    int clients[CLIENTS], accepted[CLIENTS], listener = listen_for(clients);
    CC_NURSERY(nursery) {
        atomic_store(&accepted_all, false);
        for (int i = 0; i < BUSY; i++) CHECK_EQ(cc_nursery_spawn(nursery, stay_busy, NULL), 0);
        for (int i = 0; i < 8; i++) cc_yield(); /* many turns of others */
        long before = atomic_load(&yields);
        for (int i = 0; i < CLIENTS; i++) CHECK_EQ(cc_fd_accept(listener, &accepted[i], NULL, NULL), 0);
        *rounds = (double)(atomic_load(&yields) - before) / BUSY;
        atomic_store(&accepted_all, true);
    }
    for (int i = 0; i < CLIENTS; i++) {
        CHECK_EQ(cc_fd_close(accepted[i]), 0);
        close(clients[i]);
    }
    CHECK_EQ(cc_fd_close(listener), 0);
    return NULL;
}

TEST(accepts_take_few_rounds) {
    double least = CLIENTS, enough = 2; /* 64 in each round would be four */
    FILE *file = fopen("/proc/sys/net/core/somaxconn", "r");
    int backlog = 0;
    if (file != NULL && fscanf(file, "%d", &backlog) != 1) backlog = 0;
    if (file != NULL) fclose(file);
    if (backlog < CLIENTS) SKIP("the backlog of this system is too small");
    start();
    for (int i = 0; i < ROUNDS && least > enough; i++) {
        double rounds;
        CHECK_EQ(cc_run(accept_all, &rounds, NULL), 0);
        printf("%d connections in %.2f rounds of %d others\n", CLIENTS, rounds, BUSY);
        if (rounds < least) least = rounds;
    }
    CHECK(least <= enough);
}
