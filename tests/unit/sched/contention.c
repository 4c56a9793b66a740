/* contention.c - a worker that loses its time to channels that other workers use, too, leaves its fibers to them.
 */
#include "../capture.h"
#include "harness.h"

#include "chan/chan.h"
#include "os/cpus.h"
#include "sched/contention.h"
#include "sched/idle.h"

#include <ccc/ccc.h>

#include <stdlib.h>
#include <string.h>

/* ---- when ---- */

/* Together n workers do less than one would alone if each has less than an nth of its time left. */
TEST(each_loses_more_than_its_share) {
    CHECK(!cc__policy_contended(1000, 1000, 1));
    enum { ALL = 1000 * MOVES_COST_TIMES };
    CHECK(!cc__policy_contended(499, ALL, 2));
    CHECK(cc__policy_contended(500, ALL, 2));
    CHECK(!cc__policy_contended(749, ALL, 4));
    CHECK(cc__policy_contended(750, ALL, 4));
    CHECK(!cc__policy_contended(980, ALL, 64));
    CHECK(cc__policy_contended(1000, ALL, 64));
    CHECK(!cc__policy_contended(0, ALL, 2));
}

static void run(unsigned workers, CCTaskFn fn, void *arg) {
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = workers, .max_workers = workers}), 0);
    CHECK_EQ(cc_run(fn, arg, NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
}

static uint32_t moves(void) {
    return cc__get(&cc__worker()->moves.count);
}

/* As if another worker had used it: one of another runtime, with the same number. */
static void use_elsewhere(CCChan *ch) {
    ch->last_user = cc__worker()->core.tag + 1024;
}

struct line {
    char text[64];
};

static void send_and_receive(CCChan *ch, size_t size) {
    struct line line = {{0}};
    CHECK_EQ(cc_chan_send(ch, &line, size), 0);
    CHECK_EQ(cc_chan_recv(ch, &line, size), 0);
}

static void *count_moves(void *arg) {
    size_t size = *(size_t *)arg;
    CCChan *ch = cc_chan_create(size, 2);
    uint32_t before = moves();
    send_and_receive(ch, size);
    CHECK_EQ(moves(), before); /* nobody used it before */
    use_elsewhere(ch);
    send_and_receive(ch, size);
    CHECK_EQ(moves(), before + 1);
    use_elsewhere(ch);
    CHECK_EQ(cc_chan_send_try(ch, &(struct line){{0}}, size), 0);
    CHECK_EQ(moves(), before + 2);
    use_elsewhere(ch);
    size_t chosen;
    struct line line;
    CCCase cases[] = {{.kind = CC_CASE_RECV, .ch = ch, .value = &line, .size = size}};
    CHECK_EQ(cc_select(cases, 1, CC_FOREVER, &chosen), 0);
    CHECK_EQ(moves(), before + 3);
    cc_chan_free(ch);
    return NULL;
}

TEST(changes_of_the_worker_are_counted) {
    run(1, count_moves, &(size_t){sizeof(uint64_t)});
    run(1, count_moves, &(size_t){sizeof(struct line)});
}

static int drops_seen;

static void count_drop(void *value, void *context) {
    (void)value, (void)context;
    drops_seen++;
}

/* An island's fibers cannot move; and what a callback of the program takes is no price of a move. */
static void *count_no_moves(void *arg) {
    CCChan *ch = cc_chan_create(sizeof(struct line), 2);
    uint32_t before = moves();
    ch->last_user = cc__worker()->core.tag + 1; /* there is one worker in the pool */
    send_and_receive(ch, sizeof(struct line));
    CHECK_EQ(moves(), before);
    cc_chan_free(ch);
    CCChanConfig drops = {
        .elem_size = sizeof(struct line), .capacity = 1, .mode = CC_CHAN_MODE_DROP_OLD, .on_drop = count_drop};
    ch = cc_chan_create_ex(&drops);
    for (int i = 0; i < 2; i++) {
        use_elsewhere(ch);
        cc__set(&cc__worker()->runq.timed, 1);
        CHECK_EQ(cc_chan_send(ch, &(struct line){{0}}, sizeof(struct line)), 0);
        CHECK_EQ(cc__get(&cc__worker()->runq.timed), 1); /* left to the next operation on another channel */
    }
    cc__set(&cc__worker()->runq.timed, 0);
    CHECK_EQ(drops_seen, 1);
    CHECK_EQ(moves(), before);
    cc_chan_free(ch);
    return arg;
}

TEST(islands_and_callbacks_do_not_count) {
    run(1, count_no_moves, NULL);
}

static void *time_moves(void *arg) {
    struct worker *w = cc__worker();
    CCChan *ch = cc_chan_create(sizeof(struct line), 2 * MOVES_TIMED), *own = cc_chan_create(sizeof(struct line), 2);
    struct line line = {{0}};
    for (int i = 0; i < MOVES_TIMED; i++) {
        CHECK_EQ(cc__get(&w->runq.timed), 0);
        use_elsewhere(ch);
        CHECK_EQ(cc_chan_send(ch, &line, sizeof line), 0);
    }
    CHECK_EQ(cc__get(&w->runq.timed), MOVES_TRIES);
    use_elsewhere(ch);
    CHECK_EQ(cc_chan_recv(ch, &line, sizeof line), 0);
    CHECK_EQ(cc__get(&w->runq.timed), 0);
    CHECK_EQ(cc__get(&w->moves.timed), 1);
    cc__set(&w->runq.timed, MOVES_TRIES);
    send_and_receive(own, sizeof line); /* nothing has moved: some of the next operations may */
    CHECK_EQ(cc__get(&w->runq.timed), MOVES_TRIES - 2);
    CHECK_EQ(cc__get(&w->moves.timed), 1);
    use_elsewhere(ch);
    CHECK_EQ(cc_chan_recv(ch, &line, sizeof line), 0);
    CHECK_EQ(cc__get(&w->runq.timed), 0);
    CHECK_EQ(cc__get(&w->moves.timed), 2);
    cc__set(&w->runq.timed, MOVES_TRIES);
    for (int i = 0; i < MOVES_TRIES; i++) send_and_receive(own, sizeof line);
    CHECK_EQ(cc__get(&w->runq.timed), 0);
    CHECK_EQ(cc__get(&w->moves.timed), 2);
    cc_chan_free(ch);
    cc_chan_free(own);
    return arg;
}

TEST(some_of_the_moves_are_timed) {
    run(1, time_moves, NULL);
}

/* ---- what happens ---- */

static _Atomic bool ended, ran;

static void *note(void *arg) {
    cc__set_release(&ran, true);
    return arg;
}

/* Stays in its turn until the other worker's fiber has run. */
static void *stay_in_turn(void *arg) {
    cc__set_release((_Atomic bool *)arg, true);
    while (!cc__get_acquire(&ended)) cc__cpu_relax();
    return NULL;
}

static void *yield_all_the_time(void *arg) {
    cc__set_release((_Atomic bool *)arg, true);
    while (!cc__get_acquire(&ended)) cc_yield();
    return NULL;
}

static void lose_all_time(CCChan *ch) {
    struct worker *w = cc__worker();
    cc__set(&w->moves.since, cc_now_ns());
    cc__set(&w->moves.timed, MOVES_JUDGED / MOVES_TIMED);
    cc__set(&w->moves.ns, UINT64_C(1000000000));
    cc__set(&w->moves.count, MOVES_JUDGED - 1);
    use_elsewhere(ch);
    CHECK_EQ(cc_chan_send_try(ch, &(struct line){{0}}, sizeof(struct line)), 0);
}

/* Waits until the fiber that was just started runs on the other worker. */
static CCTask start_elsewhere(CCTaskFn fn) {
    static _Atomic bool runs;
    cc__set(&runs, false);
    CCTask task = cc_fiber_spawn_task(fn, &runs);
    while (!cc__get_acquire(&runs)) cc__cpu_relax();
    return task;
}

static void *go_where_the_others_are(void *arg) {
    CCChan *ch = cc_chan_create(sizeof(struct line), 8);
    CCTask other = start_elsewhere(yield_all_the_time);
    unsigned before = cc__worker()->core.owner, after = before;
    for (int i = 0; i < 1000 && after == before; i++) {
        lose_all_time(ch);
        CHECK(cc__get(&cc__worker()->moves.give_back));
        struct line line;
        CHECK_EQ(cc_chan_recv(ch, &line, sizeof line), 0); /* yields */
        after = cc__worker()->core.owner;
    }
    CHECK(after != before);
    cc__set_release(&ended, true);
    CHECK_EQ(cc_task_join(&other, NULL), 0);
    cc_chan_free(ch);
    return arg;
}

static void with_two_workers(CCTaskFn fn) {
    if (cc__cpus_usable() < 2) SKIP("two workers need two CPUs");
    cc__set(&ended, false);
    cc__set(&ran, false);
    run(2, fn, NULL);
}

/* One that was interrupted does not count, nor do too few. */
static void *judge_moves(void *arg) {
    CCTask other = start_elsewhere(stay_in_turn); /* with one worker awake there is no contention */
    struct worker *w = cc__worker();
    for (uint32_t timed = 0; timed <= MOVES_JUDGED / MOVES_TIMED; timed++) {
        cc__set(&w->moves.since, cc_now_ns() - 1000 * 1000);
        cc__set(&w->moves.timed, timed);
        cc__set(&w->moves.ns, UINT64_C(1000000000) + 10 * timed);
        cc__set(&w->moves.longest, UINT64_C(1000000000));
        cc__contention_count(w, MOVES_JUDGED);
        CHECK(!cc__get(&w->moves.give_back));
        CHECK_EQ(cc__get(&w->moves.timed), 0);
        CHECK_EQ(cc__get(&w->moves.longest), 0);
    }
    cc__set_release(&ended, true);
    CHECK_EQ(cc_task_join(&other, NULL), 0);
    return arg;
}

TEST(the_longest_move_does_not_count) {
    with_two_workers(judge_moves);
}

TEST(a_contended_worker_leaves_its_fibers) {
    CHECK_EQ(setenv("CC_PREEMPT", "1", 1), 0);
    with_two_workers(go_where_the_others_are);
}

/* Nobody takes them there: the watcher does. */
static void *leave_to_a_stuck_worker(void *arg) {
    CCChan *ch = cc_chan_create(sizeof(struct line), 8);
    CCTask other = start_elsewhere(stay_in_turn);
    CCTask child = cc_fiber_spawn_task(note, NULL); /* no other worker is free to take it */
    lose_all_time(ch);
    CHECK(cc__get(&cc__worker()->moves.give_back));
    cc_yield();
    while (!cc__get_acquire(&ran)) cc_yield();
    cc__set_release(&ended, true);
    CHECK_EQ(cc_task_join(&other, NULL), 0);
    CHECK_EQ(cc_task_join(&child, NULL), 0);
    cc_chan_free(ch);
    return arg;
}

TEST(fibers_are_not_left_behind_a_long_turn) {
    with_two_workers(leave_to_a_stuck_worker);
}

/* A thread that revokes the lock of the queue, for instance to cancel a fiber, waits for one batch at most. */
enum { LEFT = 3 * SHARE_MAX };

static void *leave_many(void *arg) {
    CCChan *ch = cc_chan_create(sizeof(struct line), 8);
    CCTask other = start_elsewhere(stay_in_turn);
    CCNursery *children = cc_nursery_create(NULL);
    for (int i = 0; i < LEFT; i++) CHECK_EQ(cc_nursery_spawn(children, note, NULL), 0);
    lose_all_time(ch);
    CHECK(cc__get(&cc__worker()->moves.give_back));
    cc_yield();
    cc__set_release(&ended, true);
    CHECK_EQ(cc_task_join(&other, NULL), 0);
    CHECK_EQ(cc_nursery_wait(children), 0);
    CHECK_EQ(cc_nursery_free(children), 0);
    cc_chan_free(ch);
    return arg;
}

TEST(fibers_are_left_in_batches) {
    static struct capture capture;
    if (cc__cpus_usable() < 2) SKIP("two workers need two CPUs");
    CHECK_EQ(setenv("CC_TRACE", "steal", 1), 0);
    capture_start(&capture);
    with_two_workers(leave_many);
    const char *text = capture_end(&capture);
    unsigned long left = 0;
    for (const char *at = text; (at = strstr(at, "shares ")) != NULL;) {
        unsigned long n = strtoul(at += strlen("shares "), NULL, 10);
        CHECK(n <= SHARE_MAX);
        left += n;
    }
    CHECK(left >= LEFT);
}

/* One stops at a time: what another one has measured before that does not hold any more. */
static void *stop_after_another(void *arg) {
    CCChan *ch = cc_chan_create(sizeof(struct line), 8);
    CCTask other = start_elsewhere(stay_in_turn);
    struct worker *w = cc__worker();
    lose_all_time(ch);
    CHECK(cc__get(&w->moves.give_back));
    uint64_t stopped = cc__get(&w->moves.since) + 1;
    cc__set(&cc__sched.idle.contended_at, stopped);
    cc_yield();
    CHECK(!cc__get(&w->moves.give_back));
    CHECK_EQ(cc__get(&cc__sched.idle.contended_at), stopped); /* it has not stopped */
    cc__set(&cc__sched.idle.contended_at, cc_now_ns() + UINT64_C(1000000000));
    lose_all_time(ch);
    CHECK(!cc__get(&w->moves.give_back));
    cc__set_release(&ended, true);
    CHECK_EQ(cc_task_join(&other, NULL), 0);
    cc_chan_free(ch);
    return arg;
}

TEST(one_stops_at_a_time) {
    with_two_workers(stop_after_another);
}

/* Alone, it goes on. */
static void *lose_time_alone(void *arg) {
    CCChan *ch = cc_chan_create(sizeof(struct line), 8);
    lose_all_time(ch);
    CHECK(!cc__get(&cc__worker()->moves.give_back));
    cc_chan_free(ch);
    return arg;
}

TEST(the_only_worker_goes_on) {
    run(1, lose_time_alone, NULL);
}
