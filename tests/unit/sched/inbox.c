/* inbox.c - a worker's inbox keeps the order of the pushes, and each fiber is taken once, by any worker. */
#include "harness.h"

#include "../crew.h"
#include "base/mem.h"
#include "os/thread.h"
#include "sched/inbox.h"
#include "sched/sched.h"

#include <ccc/ccc.h>
#include <sched.h>
#include <unistd.h>

static struct worker worker;
static struct fiber fibers[8];

static void push(struct fiber *f) {
    cc__set(&f->word, FIBER_RUNNABLE); /* nothing else is put into a queue (SPEC-1) */
    cc__inbox_push(&worker, f);
}

TEST(first_in_first_out) {
    struct link list;
    cc__list_init(&list);
    CHECK(cc__inbox_empty(&worker));
    CHECK_EQ(cc__inbox_take(&worker, &list), 0);
    for (int i = 0; i < 5; i++) push(&fibers[i]);
    CHECK(!cc__inbox_empty(&worker));
    CHECK_EQ(cc__get(&worker.remote.inbox_len), 5);
    CHECK_EQ(cc__inbox_take(&worker, &list), 5);
    for (int i = 0; i < 5; i++) CHECK(cc__fiber_of(cc__list_pop_front(&list)) == &fibers[i]);
    CHECK(cc__list_empty(&list));
    CHECK(cc__inbox_empty(&worker));
    CHECK_EQ(cc__get(&worker.remote.inbox_len), 0);
}

/* Taken fibers are appended to the list. */
TEST(take_appends) {
    struct link list;
    cc__list_init(&list);
    for (int i = 0; i < 2; i++) cc__list_push_back(&list, &fibers[i].link);
    for (int i = 2; i < 5; i++) push(&fibers[i]);
    CHECK_EQ(cc__inbox_take(&worker, &list), 3);
    for (int i = 0; i < 5; i++) CHECK(cc__fiber_of(cc__list_pop_front(&list)) == &fibers[i]);
    CHECK(cc__list_empty(&list));
}

enum { PUSHERS = 3, TAKERS = 2 };

static struct {
    struct fiber *fibers;
    uint32_t each;
    _Atomic uint32_t taken;
} run;

/* A fiber's slot counts how often it came out; its generation is its position in its pusher's order. */
static void push_or_take(int index, void *arg) {
    (void)arg;
    if (index < PUSHERS) {
        for (uint32_t i = 0; i < run.each; i++) {
            struct fiber *f = &run.fibers[(uint32_t)index * run.each + i];
            f->generation = i;
            push(f);
        }
        return;
    }
    while (cc__get(&run.taken) < PUSHERS * run.each) {
        struct link list;
        cc__list_init(&list);
        uint32_t n = cc__inbox_take(&worker, &list), seen = 0;
        int64_t last[PUSHERS] = {-1, -1, -1};
        for (; !cc__list_empty(&list); seen++) {
            struct fiber *f = cc__fiber_of(cc__list_pop_front(&list));
            CHECK_EQ(f->slot++, 0);
            int64_t *before = &last[(uint32_t)(f - run.fibers) / run.each];
            CHECK((int64_t)f->generation > *before); /* within one take, each pusher's order */
            *before = f->generation;
        }
        CHECK_EQ(seen, n);
        cc__add(&run.taken, n);
        if (n == 0) sched_yield();
    }
}

TEST(each_comes_out_once) {
    run.each = (uint32_t)test_rounds(30000, 500000);
    run.fibers = cc__mem_alloc(PUSHERS * run.each * sizeof *run.fibers);
    crew_run(PUSHERS + TAKERS, push_or_take, NULL);
    for (uint32_t i = 0; i < PUSHERS * run.each; i++) CHECK_EQ(run.fibers[i].slot, 1);
    CHECK_EQ(cc__get(&worker.remote.inbox_len), 0);
    cc__mem_free(run.fibers);
}

/* ---- the inbox of a worker that is blocked ---- */

static int pipe_ends[2];
static _Atomic uint32_t blocked;

static void *blocks(void *arg) {
    char byte;
    cc__set_release(&blocked, 1);
    CHECK_EQ(read(pipe_ends[0], &byte, 1), 1);
    return arg;
}

static void *does_nothing(void *arg) {
    return arg;
}

/* One worker is blocked. The other one has looked for work for the last time, and sleeps. */
static void await_both_asleep(void) {
    for (;; sched_yield()) {
        if (want_idle(cc__get_seq(&cc__sched.want)) == 0) continue;
        if (cc__thread_state(cc__get(&cc__sched.workers[0].remote.tid)) == 'R') continue;
        if (cc__thread_state(cc__get(&cc__sched.workers[1].remote.tid)) != 'R') return;
    }
}

/* The sender assumes that a worker searches, and notifies only the receiving worker; that one is blocked, and the other
 * worker sleeps. Its next tick finds what was sent (IDLE-4). */
TEST(of_a_blocked_worker_is_found) {
    CCTask blocker, sent;
    CHECK_EQ(pipe(pipe_ends), 0);
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = 2, .max_workers = 2}), 0);
    CHECK_EQ(cc_spawn(&blocker, blocks, NULL, NULL), 0);
    while (cc__get_acquire(&blocked) == 0) sched_yield();
    for (int i = 0; i < 4; i++) { /* alternately to both */
        await_both_asleep();
        cc__add_seq(&cc__sched.want, WANT_SEARCHING);
        CHECK_EQ(cc_spawn(&sent, does_nothing, NULL, NULL), 0);
        cc__sub_seq(&cc__sched.want, WANT_SEARCHING);
        CHECK_EQ(cc_task_join(&sent, NULL), 0);
    }
    CHECK_EQ(write(pipe_ends[1], "x", 1), 1);
    CHECK_EQ(cc_task_join(&blocker, NULL), 0);
}
