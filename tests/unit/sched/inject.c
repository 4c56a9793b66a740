/* inject.c - the global queue takes everything and loses nothing, however small its ring is. */
#include "harness.h"

#include "../crew.h"
#include "base/mem.h"
#include "sched/elastic.h"
#include "sched/inbox.h"
#include "sched/inject.h"

#include <ccc/ccc.h>
#include <sched.h>
#include <string.h>

enum { FIBERS = 64 };
static struct fiber fibers[FIBERS];

static void put(struct fiber *f) {
    cc__set(&f->word, FIBER_RUNNABLE); /* nothing else is put into a queue (SPEC-1) */
    cc__inject_put(f);
}

static void open_queue(size_t slots) {
    memset(&cc__sched, 0, sizeof cc__sched);
    cc__list_init(&cc__sched.overflow.list);
    cc__sched.ring_count = 1;
    CHECK(cc__ring_init(&cc__sched.rings[0], slots));
}

static void close_queue(void) {
    cc__ring_destroy(&cc__sched.rings[0]);
}

/* Takes up to n and compares them with fibers[from] and the following. */
static void check_take(uint32_t n, uint32_t from, uint32_t expected) {
    struct link list;
    cc__list_init(&list);
    CHECK_EQ(cc__inject_take(NULL, n, &list), expected);
    for (uint32_t i = 0; i < expected; i++) CHECK(cc__fiber_of(cc__list_pop_front(&list)) == &fibers[from + i]);
    CHECK(cc__list_empty(&list));
}

/* The fibers of a retiring worker's inbox are moved here, in order. */
TEST(takes_over_from_a_worker_that_retires) {
    static struct worker w;
    w.core.owner = 1;
    open_queue(4);
    for (int i = 0; i < 10; i++) {
        cc__set(&fibers[i].word, FIBER_RUNNABLE);
        cc__inbox_push(&w, &fibers[i]);
    }
    cc__elastic_drain(&w);
    CHECK(cc__inbox_empty(&w));
    CHECK_EQ(cc__inject_len(), 10);
    check_take(20, 0, 10);
    close_queue();
}

TEST(first_in_first_out) {
    open_queue(64);
    check_take(10, 0, 0);
    for (int i = 0; i < 10; i++) {
        put(&fibers[i]);
        CHECK_EQ(cc__inject_len(), i + 1);
    }
    check_take(3, 0, 3);
    check_take(100, 3, 7);
    CHECK_EQ(cc__inject_len(), 0);
    close_queue();
}

/* What the ring cannot hold goes to the list, and both come out in the order of the puts. */
TEST(ring_overflows_to_the_list) {
    open_queue(2);
    for (int i = 0; i < FIBERS; i++) put(&fibers[i]);
    CHECK_EQ(cc__inject_len(), FIBERS);
    CHECK_EQ(cc__ring_len(&cc__sched.rings[0]), 2);
    check_take(1, 0, 1);
    check_take(4, 1, 4);
    check_take(FIBERS, 5, FIBERS - 5);
    check_take(1, 0, 0);
    close_queue();
}

/* INJECT-2: while the list is not empty, new fibers are appended to it although the ring has space. */
TEST(the_list_is_not_overtaken) {
    open_queue(2);
    for (int i = 0; i < 4; i++) put(&fibers[i]); /* 0 1 in the ring, 2 3 in the list */
    check_take(2, 0, 2);
    for (int i = 4; i < 8; i++) put(&fibers[i]);
    check_take(8, 2, 6);
    CHECK_EQ(cc__inject_len(), 0);
    for (int i = 0; i < 2; i++) put(&fibers[i]);
    CHECK_EQ(cc__ring_len(&cc__sched.rings[0]), 2); /* and then the ring is used again */
    check_take(2, 0, 2);
    close_queue();
}

TEST(puts_a_whole_list) {
    open_queue(4);
    struct link list;
    cc__list_init(&list);
    for (int i = 0; i < 10; i++) {
        cc__set(&fibers[i].word, FIBER_RUNNABLE);
        cc__list_push_back(&list, &fibers[i].link);
    }
    cc__inject_put_all(&list, 10);
    CHECK(cc__list_empty(&list));
    check_take(10, 0, 10);
    cc__inject_put_all(&list, 0);
    CHECK_EQ(cc__inject_len(), 0);
    close_queue();
}

/* Taken fibers are appended to the list. */
TEST(take_appends) {
    open_queue(4);
    struct link list;
    cc__list_init(&list);
    cc__list_push_back(&list, &fibers[0].link);
    put(&fibers[1]);
    CHECK_EQ(cc__inject_take(NULL, 5, &list), 1);
    CHECK(cc__fiber_of(cc__list_pop_front(&list)) == &fibers[0]);
    CHECK(cc__fiber_of(cc__list_pop_front(&list)) == &fibers[1]);
    close_queue();
}

/* ---- many at once ---- */

enum { PUTTERS = 3, TAKERS = 2 };

static struct {
    struct fiber *fibers;
    uint32_t each;
    _Atomic uint32_t taken;
} run;

static void put_or_take(int index, void *arg) {
    (void)arg;
    if (index < PUTTERS) {
        for (uint32_t i = 0; i < run.each; i++) put(&run.fibers[(uint32_t)index * run.each + i]);
        return;
    }
    struct link list;
    cc__list_init(&list);
    while (cc__get(&run.taken) < PUTTERS * run.each) {
        uint32_t n = cc__inject_take(NULL, 7, &list);
        for (uint32_t i = 0; i < n; i++) CHECK_EQ(cc__fiber_of(cc__list_pop_front(&list))->slot++, 0);
        CHECK(cc__list_empty(&list));
        cc__add(&run.taken, n);
        if (n == 0) sched_yield();
    }
}

TEST(each_comes_out_once) {
    for (size_t slots = 2; slots <= 1024; slots *= 8) {
        open_queue(slots);
        run.each = (uint32_t)test_rounds(20000, 200000);
        run.fibers = cc__mem_alloc(PUTTERS * run.each * sizeof *run.fibers);
        cc__set(&run.taken, 0);
        crew_run(PUTTERS + TAKERS, put_or_take, NULL);
        for (uint32_t i = 0; i < PUTTERS * run.each; i++) CHECK_EQ(run.fibers[i].slot, 1);
        CHECK_EQ(cc__inject_len(), 0);
        cc__mem_free(run.fibers);
        close_queue();
    }
}

/* ---- in the runtime ---- */

static _Atomic long ran;

static void *count(void *arg) {
    cc__add(&ran, 1);
    return arg;
}

static void spawn_many(int index, void *arg) {
    (void)index;
    for (long i = 0; i < *(long *)arg; i++) CHECK_EQ(cc_spawn(NULL, count, NULL, NULL), 0);
}

/* With two slots nearly everything overflows; nothing may be lost, and no spawn may block. */
TEST_WORKERS(nothing_lost_with_two_slots) {
    CCRuntimeConfig config = {.queue_slots = 2};
    CHECK_EQ(cc_runtime_init(&config), 0);
    long each = test_rounds(10000, 200000);
    crew_run(4, spawn_many, &each);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    CHECK_EQ(ran, 4 * each);
}
