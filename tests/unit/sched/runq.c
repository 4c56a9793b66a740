/* runq.c - the order in which a worker picks fibers: slot, FIFO, fresh ones newest first; and what a thief gets. */
#include "harness.h"

#include "sched/inject.h"
#include "sched/next.h"
#include "sched/runq.h"
#include "sched/wake.h"

#include <string.h>

enum { FIBERS = 16 };
static struct worker worker;
static struct fiber fibers[FIBERS];
static struct runq *const q = &worker.runq;

static void open_queue(void) {
    memset(&cc__sched, 0, sizeof cc__sched);
    cc__barrier_init(true);
    memset(&worker, 0, sizeof worker);
    worker.core.owner = 3;
    cc__set(&worker.worth_ns, WORTH_NS);
    cc__list_init(&q->fifo);
    cc__list_init(&q->fresh);
    for (int i = 0; i < FIBERS; i++) cc__set(&fibers[i].word, FIBER_IDLE);
}

/* Each makes fibers[n] runnable in one of the ways. */
static void spawn(int n) {
    cc__sched_spawn(&worker, &fibers[n], ARGS_POINTER);
}

static void make_woken(int n) {
    cc__state_spawn(&fibers[n], 3, ARGS_POINTER);
    cc__state_run(&fibers[n], 3);
    cc__state_yield(&fibers[n], 3);
}

/* As cc__sched_ready does on a worker. */
static void wake(int n) {
    make_woken(n);
    cc__worker_set(&worker);
    cc__sched_ready(&fibers[n]);
    cc__worker_set(NULL);
}

static void append(int n) {
    make_woken(n);
    struct link list;
    cc__list_init(&list);
    cc__list_push_back(&list, &fibers[n].link);
    (void)cc__runq_append(&worker, &list, 1);
}

/* Picks until nothing is left; `digits` are the expected numbers in hexadecimal. */
static void check_picks(const char *digits) {
    for (; *digits != '\0'; digits++) {
        struct fiber *f = cc__runq_pick_owner(&worker);
        CHECK(f != NULL);
        CHECK_EQ("0123456789abcdef"[f - fibers], *digits);
    }
    CHECK(cc__runq_pick_owner(&worker) == NULL);
    CHECK_EQ(cc__get(&q->count), 0);
}

TEST(empty) {
    open_queue();
    check_picks("");
}

TEST(slot_then_fifo_then_fresh) {
    open_queue();
    spawn(0);
    spawn(1);
    spawn(2);
    append(3);
    append(4);
    wake(5);
    CHECK_EQ(cc__get(&q->count), 6);
    check_picks("534210");
}

/* If there are many, the contexts of the next ones are prefetched: here these are invalid addresses. The order is the
 * same, with many in the FIFO as with one there and many that never ran. */
TEST(many_are_picked_in_order) {
    enum { MANY = 3 * RUNQ_MANY };
    static struct fiber many[MANY];
    open_queue();
    for (int round = 0; round < 2; round++) {
        struct link list;
        cc__list_init(&list);
        for (int i = 0; i < MANY; i++) {
            struct fiber *f = &many[i];
            memset(&f->context, 0x5a + i, sizeof f->context);
            cc__set(&f->word, FIBER_IDLE);
            if (round == 1 && i > 0) {
                cc__sched_spawn(&worker, f, ARGS_POINTER);
                continue;
            }
            cc__state_spawn(f, 3, ARGS_POINTER);
            cc__state_run(f, 3);
            cc__state_yield(f, 3);
            cc__list_push_back(&list, &f->link);
        }
        (void)cc__runq_append(&worker, &list, round == 0 ? MANY : 1);
        CHECK_EQ(cc__get(&q->count), MANY);
        for (int i = 0; i < MANY; i++) {
            int expected = round == 0 || i == 0 ? i : MANY - i;
            CHECK(cc__runq_pick_owner(&worker) == &many[expected]);
        }
        check_picks("");
    }
}

/* A second wake moves the first one from the slot to the FIFO's end. */
TEST(last_woken_first) {
    open_queue();
    append(0);
    wake(1);
    wake(2);
    wake(3);
    check_picks("3012");
}

/* The slot is used at most SLOT_STREAK times in a row: then the FIFO gets a turn. */
TEST(streak_is_capped) {
    open_queue();
    append(0);
    for (int turn = 0; turn < SLOT_STREAK; turn++) {
        cc__set(&fibers[1].word, FIBER_IDLE);
        wake(1);
        CHECK(cc__runq_pick_owner(&worker) == &fibers[1]);
    }
    cc__set(&fibers[1].word, FIBER_IDLE);
    wake(1);
    CHECK(cc__runq_pick_owner(&worker) == &fibers[0]);
    check_picks("1");
    /* And the count starts again. */
    append(2);
    cc__set(&fibers[1].word, FIBER_IDLE);
    wake(1);
    check_picks("12");
}

/* If there are no others, the cap has no effect. */
TEST(streak_of_a_lone_fiber) {
    open_queue();
    for (int turn = 0; turn < 5 * SLOT_STREAK; turn++) {
        cc__set(&fibers[1].word, FIBER_IDLE);
        wake(1);
        CHECK(cc__runq_pick_owner(&worker) == &fibers[1]);
        CHECK_EQ(cc__get(&q->count), 0);
    }
}

TEST(level_puts_all_in_line) {
    open_queue();
    spawn(0);
    spawn(1);
    append(2);
    wake(3);
    cc__runq_level_owner(q);
    CHECK_EQ(cc__get(&q->count), 4);
    check_picks("3201"); /* the slot, the FIFO, the fresh ones oldest first */
}

/* Of the fibers whose timers have fired, `front` go to the front of the FIFO, the others to its end. */
static void admit(int first, int n, uint32_t front) {
    struct link list;
    cc__list_init(&list);
    for (int i = first; i < first + n; i++) {
        make_woken(i);
        cc__list_push_back(&list, &fibers[i].link);
    }
    cc__runq_admit(&worker, &list, (uint32_t)n, front);
    CHECK(cc__list_empty(&list));
}

TEST(admitted_at_both_ends) {
    open_queue();
    append(0);
    append(1);
    admit(2, 4, 2);
    CHECK_EQ(cc__get(&q->count), 6);
    check_picks("230145");
    admit(6, 2, 0);
    append(8);
    admit(9, 2, 2);
    check_picks("9a678");
}

/* A timed spawn has never run: it goes to this worker's fresh fibers, so that a joiner may take it. */
TEST(admitted_fresh) {
    open_queue();
    append(0);
    cc__state_spawn(&fibers[1], 0, ARGS_POINTER);
    struct link list;
    cc__list_init(&list);
    cc__list_push_back(&list, &fibers[1].link);
    cc__runq_admit(&worker, &list, 1, 1);
    CHECK_EQ(cc__word_owner(cc__get(&fibers[1].word)), 3);
    check_picks("10");
}

/* ---- thieves ---- */

/* Takes up to n and compares. */
static void check_theft(uint32_t n, bool all, const char *digits) {
    struct link list;
    cc__list_init(&list);
    uint32_t count = cc__get(&q->count);
    CHECK_EQ(cc__runq_take_oldest(q, n, all, &list), strlen(digits));
    CHECK_EQ(cc__get(&q->count), count - strlen(digits));
    for (; *digits != '\0'; digits++) {
        struct fiber *f = cc__fiber_of(cc__list_pop_front(&list));
        CHECK_EQ("0123456789abcdef"[f - fibers], *digits);
        CHECK_EQ(cc__word_state(cc__get(&f->word)), FIBER_RUNNABLE);
        CHECK_EQ(cc__word_owner(cc__get(&f->word)), 0); /* without an owner: its joiner must not find it here */
    }
    CHECK(cc__list_empty(&list));
}

TEST(thieves_take_the_oldest) {
    open_queue();
    for (int i = 0; i < 3; i++) spawn(i);
    for (int i = 3; i < 6; i++) append(i);
    wake(6);
    check_theft(0, true, "");
    check_theft(2, true, "01");
    check_theft(2, true, "23");
    check_theft(9, false, "45"); /* the slot belongs to the owner, which is about to run it */
    check_theft(9, true, "6");   /* unless the owner is stuck */
    check_theft(9, true, "");
    check_picks("");
}

TEST(owner_and_thief_meet_in_the_middle) {
    open_queue();
    for (int i = 0; i < 6; i++) spawn(i);
    check_theft(2, true, "01");
    CHECK(cc__runq_pick_owner(&worker) == &fibers[5]);
    check_theft(1, true, "2");
    check_picks("43");
}

/* Fresh fibers from elsewhere count as older than the worker's own, and the newest of them runs first; a joiner here
 * may take them. */
TEST(append_keeps_fresh_ones_fresh) {
    open_queue();
    spawn(0);
    spawn(1);
    struct link list;
    cc__list_init(&list);
    for (int i = 2; i < 6; i++) {
        if (i % 2)
            make_woken(i);
        else
            cc__state_spawn(&fibers[i], 0, ARGS_POINTER);
        cc__list_push_back(&list, &fibers[i].link);
    }
    (void)cc__runq_append(&worker, &list, 4);
    CHECK(cc__list_empty(&list));
    CHECK_EQ(cc__get(&q->count), 6);
    CHECK_EQ(cc__word_owner(cc__get(&fibers[2].word)), 3);
    CHECK_EQ(cc__word_owner(cc__get(&fibers[4].word)), 3);
    CHECK(cc__get(&fibers[4].word) & WORD_FRESH);
    check_picks("351042");
}

/* ---- what others should have ---- */

/* A worker searches; a fiber that will get its turn soon anyway must not be given away. */
TEST(short_turns_are_kept) {
    open_queue();
    cc__set(&cc__sched.want, WANT_SEARCHING);
    cc__set(&worker.core.share_at, 1);
    cc__set(&worker.turn_ns, 50);
    for (int n = 0; n < 4; n++) wake(n);
    CHECK(!cc__policy_worth_sharing(&worker));
    CHECK_EQ(cc__get(&q->count), 4);
    check_picks("3012");
}

TEST(long_turns_and_long_queues_are_shared) {
    open_queue();
    CHECK(!cc__policy_worth_sharing(&worker));
    cc__set(&worker.turn_ns, 50);
    for (int n = 0; n < 4; n++) append(n);
    CHECK(!cc__policy_worth_sharing(&worker));
    cc__set(&worker.turn_ns, WORTH_NS / 4);
    CHECK(cc__policy_worth_sharing(&worker));
    cc__set(&worker.turn_ns, WORTH_NS / 8);
    CHECK(!cc__policy_worth_sharing(&worker));
    for (int n = 4; n < 8; n++) append(n);
    CHECK(cc__policy_worth_sharing(&worker));
}

TEST(returned_fibers_raise_the_limit) {
    uint32_t worth = WORTH_NS;
    CHECK_EQ(cc__policy_worth_next(worth, false, false), WORTH_NS);
    CHECK_EQ(cc__policy_worth_next(worth, true, false), WORTH_NS);
    for (int i = 0; i < 40; i++) worth = cc__policy_worth_next(worth, true, true);
    CHECK_EQ(worth, WORTH_MAX_NS);
    CHECK_EQ(cc__policy_worth_next(worth, true, false), WORTH_MAX_NS / 2); /* others took all */
    for (int i = 0; i < 200; i++) worth = cc__policy_worth_next(worth, false, false);
    CHECK_EQ(worth, WORTH_NS); /* forgotten */
}

TEST(fresh_fibers_are_shared) {
    open_queue();
    cc__set(&worker.turn_ns, 1);
    wake(0);
    CHECK(!cc__policy_worth_sharing(&worker));
    spawn(1);
    CHECK(cc__policy_worth_sharing(&worker));
}

/* A worker searches, and has not fetched yet what is in the global queue: both get half of all. */
TEST(unfetched_fibers_count) {
    open_queue();
    cc__list_init(&cc__sched.overflow.list);
    cc__sched.ring_count = 1;
    CHECK(cc__ring_init(&cc__sched.rings[0], FIBERS));
    cc__set(&cc__sched.want, WANT_SEARCHING);
    cc__set(&worker.turn_ns, WORTH_NS);
    cc__set(&worker.core.share_at, 1);
    for (int n = 0; n < 12; n++) append(n);
    cc__runq_tell(&worker, 2);
    CHECK_EQ(cc__inject_len(), 5); /* two are for the worker itself */
    cc__runq_tell(&worker, 0);
    CHECK_EQ(cc__inject_len(), 6);
    for (int i = 0; i < 3; i++) cc__runq_tell(&worker, 0);
    CHECK_EQ(cc__inject_len(), 6);
    CHECK_EQ(cc__get(&q->count), 6);
    cc__set(&worker.core.poll_at, UINT64_MAX);
    cc__next_plan_sharing(&worker);
    CHECK_EQ(cc__get(&worker.core.poll_at), UINT64_MAX); /* no poll for that, either */
    append(12);
    cc__next_plan_sharing(&worker);
    CHECK_EQ(cc__get(&worker.core.poll_at), cc__get(&worker.core.turns));
    cc__ring_destroy(&cc__sched.rings[0]);
}

/* A worker sleeps. */
static struct worker sleeper;

static void put_one_to_sleep(void) {
    memset(&sleeper, 0, sizeof sleeper);
    cc__list_init(&cc__sched.idle.list);
    cc__list_push_back(&cc__sched.idle.list, &sleeper.remote.idle);
    sleeper.remote.asleep = true;
    cc__set(&cc__sched.want, WANT_IDLE);
}

/* There is a watcher, and wakes have not paid off: the sleeper is not notified, and the watcher can see that a wake was
 * deferred. */
TEST(a_deferred_wake_is_left_to_the_watcher) {
    open_queue();
    put_one_to_sleep();
    cc__set(&cc__sched.want, WANT_IDLE | WANT_WATCH);
    cc__set(&cc__sched.credit, 0);
    cc__set(&worker.core.turns, 7);
    wake(0);
    CHECK(sleeper.remote.asleep);
    CHECK_EQ(cc__get(&cc__sched.want), WANT_IDLE | WANT_WATCH);
    CHECK_EQ(cc__get(&worker.core.deferred), 7);
    check_picks("0");
}

/* Without a watcher nothing would make up for a deferred wake: the sleeper is notified, whether wakes have paid off or
 * not. */
TEST(without_a_watcher_no_wake_is_deferred) {
    open_queue();
    put_one_to_sleep();
    cc__set(&cc__sched.credit, 0);
    wake(0);
    CHECK(!sleeper.remote.asleep);
    CHECK(cc__get(&sleeper.remote.wake) != 0);
    CHECK_EQ(cc__get(&cc__sched.want), WANT_SEARCHING); /* the sleeper's place */
}

TEST(while_wakes_pay_none_is_deferred) {
    open_queue();
    put_one_to_sleep();
    cc__set(&cc__sched.want, WANT_IDLE | WANT_WATCH);
    cc__sched.idle.watcher = &sleeper;
    cc__set(&cc__sched.credit, 1);
    wake(0);
    CHECK(!sleeper.remote.asleep);
    CHECK_EQ(cc__get(&cc__sched.want), WANT_SEARCHING); /* the role of the watcher ends with its sleep */
    CHECK(cc__sched.idle.watcher == NULL);
}

TEST(fresh_fibers_wake_others) {
    open_queue();
    put_one_to_sleep();
    spawn(0);
    CHECK(!sleeper.remote.asleep);
}
