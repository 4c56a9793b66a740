/* many_waiters.c - a hundred thousand fibers wait on one channel, and leave from anywhere in the queue. */
#include "harness.h"

#include "../../programs/where.h"
#include "chan/chan.h"

#include <ccc/ccc.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

struct waiters {
    CCChan *ch;
    atomic_long waiting, late, served;
};

CC_TASK(wait_a_while, {
    struct waiters *waiters;
    uint64_t until;
}) {
    uint64_t value = 0;
    atomic_fetch_add(&self->waiters->waiting, 1);
    int rc = cc_chan_recv_until(self->waiters->ch, &value, sizeof value, (CCDeadline){self->until});
    CHECK(rc == 0 || rc == ETIMEDOUT);
    atomic_fetch_add(rc == 0 ? &self->waiters->served : &self->waiters->late, 1);
    return NULL;
}

/* Unlinking is constant time: a search of the queue would take minutes, a hundred thousand times fifty thousand steps.
 * The remaining waiters are served afterwards, each once. */
TEST_WORKERS(leave_from_the_middle, .timeout = 120) {
    bool cheap = !(UNDER_ASAN || UNDER_TSAN || under_valgrind() || under_qemu());
    long count = cheap ? 100000 : 2000, stay = count / 10;
    CCTask *tasks = calloc((size_t)count, sizeof *tasks);
    CHECK(tasks != NULL);
    struct waiters waiters = {.ch = cc_chan_create(sizeof(uint64_t), 0)};
    uint64_t rng = test_seed(), now = cc_now_ns();
    for (long i = 0; i < count; i++) {
        bool stays = i % 10 == 0;
        uint64_t until = stays ? UINT64_MAX - 1 : now + 200000000 + test_random(&rng) % 200000000;
        tasks[i] = CC_GO(wait_a_while, .waiters = &waiters, .until = until);
        CHECK(tasks[i].id != 0);
    }
    for (long i = 0; i < count; i++)
        if (i % 10 != 0) CHECK_EQ(cc_task_join(&tasks[i], NULL), 0);
    /* A send serves a waiter, or waits for the next one. */
    for (uint64_t v = 0; v < (uint64_t)stay; v++) CHECK_EQ(cc_chan_send(waiters.ch, &v, sizeof v), 0);
    for (long i = 0; i < count; i += 10) CHECK_EQ(cc_task_join(&tasks[i], NULL), 0);
    CHECK_EQ(atomic_load(&waiters.late), count - stay);
    CHECK_EQ(atomic_load(&waiters.served), stay);
    CHECK(cc__list_empty(&waiters.ch->receivers));
    CHECK(cc__list_empty(&waiters.ch->senders));
    CHECK_EQ(waiters.ch->lost_claims, 0);
    cc_chan_free(waiters.ch);
    free(tasks);
}
