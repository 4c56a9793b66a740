/* cancel.c - in a cancelled scope every wait below ends with ECANCELED, the current one and all later ones. */
#include "scene.h"

#include "../crew.h"

static atomic_int cancelled;

/* ---- when ---- */

static void *set_flag_and_wait(void *arg) {
    (void)count_up(arg);
    return wait_for_cancel(&cancelled);
}

static void before_the_start(void) {
    cancelled = 0;
    CCNursery *n = new_nursery(NULL);
    CHECK_EQ(cc_nursery_cancel(n), 0);
    for (int i = 0; i < 10; i++) CHECK_EQ(cc_nursery_spawn(n, wait_for_cancel, &cancelled), 0);
    CHECK_EQ(cc_nursery_wait(n), ECANCELED);
    CHECK_EQ(cancelled, 10);
    check_empty(n);
    CHECK_EQ(cc_nursery_free(n), 0);
}

static void while_they_wait(void) {
    cancelled = 0;
    CCNursery *n = new_nursery(NULL);
    CCFiberId id = start_child(n, wait_for_cancel, &cancelled);
    UNTIL(is_parked(id));
    CHECK_EQ(cc_nursery_cancel(n), 0);
    CHECK_EQ(cc_nursery_wait(n), ECANCELED);
    CHECK_EQ(cancelled, 1);
    check_empty(n);
    CHECK_EQ(cc_nursery_free(n), 0);
}

static void twice(void) {
    cancelled = 0;
    CCNursery *n = new_nursery(NULL);
    CHECK_EQ(cc_nursery_spawn(n, wait_for_cancel, &cancelled), 0);
    CHECK_EQ(cc_nursery_cancel_with(n, EXDEV, "first"), 0);
    CHECK_EQ(cc_nursery_cancel_with(n, EIO, "second"), 0);
    CHECK_EQ(cc_nursery_cancel(n), 0);
    CHECK_EQ(cc_nursery_wait(n), EXDEV); /* the first reason stays */
    CHECK_EQ(cc_nursery_cancel(n), 0);
    CHECK_EQ(cc_nursery_wait(n), EXDEV);
    CHECK_EQ(cancelled, 1);
    CHECK_EQ(cc_nursery_free(n), 0);
}

TEST_WORKERS(before_and_during_and_twice) {
    for (int i = 0; i < 20; i++) {
        before_the_start();
        while_they_wait();
        twice();
    }
    in_fiber(before_the_start);
    in_fiber(while_they_wait);
    in_fiber(twice);
}

/* The cancellation comes while the children start. */
static void during_the_start(void) {
    for (long i = 0, rounds = test_rounds(300, 30000); i < rounds; i++) {
        atomic_int started = 0;
        cancelled = 0;
        CCNursery *n = new_nursery(NULL);
        for (int k = 0; k < 8; k++) CHECK_EQ(cc_nursery_spawn(n, set_flag_and_wait, &started), 0);
        UNTIL(started >= (int)(i % 9));
        CHECK_EQ(cc_nursery_cancel(n), 0);
        CHECK_EQ(cc_nursery_wait(n), ECANCELED);
        CHECK_EQ(cancelled, 8);
        CHECK_EQ(cc_nursery_free(n), 0);
    }
}

TEST_WORKERS(during_the_start_of_children) {
    during_the_start();
    in_fiber(during_the_start);
}

/* A nursery may be older than the runtime, and outlive it; cancelled stays cancelled. */
TEST_WORKERS(older_than_the_runtime) {
    cancelled = 0;
    CCNursery *n = new_nursery(NULL);
    CHECK_EQ(cc_nursery_cancel(n), 0);
    for (int life = 1; life <= 3; life++) {
        CHECK_EQ(cc_nursery_spawn(n, wait_for_cancel, &cancelled), 0);
        CHECK_EQ(cc_nursery_wait(n), ECANCELED);
        CHECK_EQ(cancelled, life);
        CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    }
    CHECK_EQ(cc_nursery_free(n), 0);
}

/* ---- levels, not edges ---- */

static CCChan *never;

static void *wait_in_every_way(void *arg) {
    int value = 0;
    size_t chosen;
    for (int round = 0; round < 3; round++) {
        CHECK_EQ(cc_sleep_until(CC_FOREVER), ECANCELED);
        CHECK_EQ(cc_sleep_ms(3600 * 1000), ECANCELED);
        CHECK_EQ(cc_chan_recv(never, &value, sizeof value), ECANCELED);
        CHECK_EQ(cc_chan_send(never, &value, sizeof value), ECANCELED);
        CHECK_EQ(cc_chan_recv_until(never, &value, sizeof value, cc_after_ms(3600 * 1000)), ECANCELED);
        CCCase cases[] = {CC_RECV(never, &value, NULL), CC_SEND(never, &value, NULL)};
        CHECK_EQ(cc_select(cases, 1, CC_FOREVER, &chosen), ECANCELED);
        CHECK_EQ(cc_select(cases, 2, CC_FOREVER, &chosen), ECANCELED);
        CHECK_EQ(cc_select(cases, 2, cc_after_ms(3600 * 1000), &chosen), ECANCELED);
        CHECK_EQ(cc_select(NULL, 0, CC_FOREVER, &chosen), ECANCELED);
        CCTask endless = *(CCTask *)arg;
        CHECK_EQ(cc_task_join(&endless, NULL), ECANCELED);
        CHECK_EQ(cc_task_join_until(&endless, NULL, cc_after_ms(3600 * 1000)), ECANCELED);
        CHECK(endless.id != 0); /* not joined */
        /* A call that does not have to wait succeeds. */
        CHECK_EQ(cc_sleep_ms(0), 0);
        CHECK_EQ(cc_chan_recv_try(never, &value, sizeof value), EAGAIN);
        CHECK_EQ(cc_select_try(cases, 2, &chosen), EAGAIN);
        cc_yield();
    }
    atomic_fetch_add(&cancelled, 1);
    return NULL;
}

static void every_wait(void) {
    cancelled = 0;
    atomic_int other = 0;
    never = cc_chan_create(sizeof(int), 0);
    CCNursery *apart = new_nursery(NULL), *n = new_nursery(NULL);
    CCTask endless;
    CHECK_EQ(cc_nursery_spawn_ex(apart, &endless, wait_for_cancel, &other, NULL), 0);
    CHECK_EQ(cc_nursery_spawn(n, wait_in_every_way, &endless), 0);
    CHECK_EQ(cc_nursery_cancel(n), 0);
    CHECK_EQ(cc_nursery_wait(n), ECANCELED);
    CHECK_EQ(cancelled, 1);
    CHECK_EQ(other, 0);
    CHECK_EQ(cc_chan_len(never), 0);
    CHECK_EQ(cc_task_detach(&endless), 0);
    CHECK_EQ(cc_nursery_free(n), 0);
    CHECK_EQ(cc_nursery_free(apart), 0);
    CHECK_EQ(other, 1);
    cc_chan_free(never);
}

TEST_WORKERS(every_wait_ends_every_time) {
    every_wait();
    in_fiber(every_wait);
}

/* ---- the tree ---- */

static void *wait_and_tell(void *arg) {
    CCError *why = arg;
    CHECK_EQ(cc_sleep_until(CC_FOREVER), ECANCELED);
    CHECK_EQ(cc_cancel_reason(why), 0);
    return NULL;
}

static void down_the_tree(void) {
    enum { LEVELS = 20 };
    CCNursery *n[LEVELS], *late;
    CCError why[LEVELS][2], late_why;
    for (int i = 0; i < LEVELS; i++) {
        n[i] = new_nursery(i > 0 ? n[i - 1] : NULL);
        for (int k = 0; k < 2; k++) CHECK_EQ(cc_nursery_spawn(n[i], wait_and_tell, &why[i][k]), 0);
    }
    CHECK_EQ(cc_nursery_cancel_with(n[1], EXDEV, "the reason"), 0);
    late = new_nursery(n[LEVELS - 1]); /* made afterwards */
    CHECK_EQ(cc_nursery_spawn(late, wait_and_tell, &late_why), 0);
    CHECK_EQ(cc_nursery_wait(late), ECANCELED);
    CHECK_EQ(late_why.code, EXDEV);
    CHECK_EQ(cc_nursery_free(late), 0);
    for (int i = LEVELS - 1; i >= 1; i--) {
        CHECK_EQ(cc_nursery_wait(n[i]), i == 1 ? EXDEV : ECANCELED); /* the reason is that of one nursery */
        for (int k = 0; k < 2; k++) {
            CHECK_EQ(why[i][k].code, EXDEV);
            CHECK_EQ(strcmp(why[i][k].text, "the reason"), 0);
            CHECK(why[i][k].who == cc_fiber_id());
        }
        CHECK_EQ(cc_nursery_free(n[i]), 0);
    }
    CHECK_EQ(cc_nursery_children(n[0]), 2); /* above nothing has happened */
    CHECK_EQ(cc_nursery_cancel_with(n[0], 0, NULL), 0);
    CHECK_EQ(cc_nursery_wait(n[0]), ECANCELED);
    CHECK_EQ(cc_nursery_free(n[0]), 0);
}

TEST_WORKERS(twenty_levels) {
    down_the_tree();
    in_fiber(down_the_tree);
}

/* A scope that is cancelled before its parent keeps its own reason. */
static void inner_first(void) {
    CCNursery *above = new_nursery(NULL), *n = new_nursery(above);
    CCError why;
    CHECK_EQ(cc_nursery_cancel_with(n, EXDEV, "inner"), 0);
    CHECK_EQ(cc_nursery_cancel_with(above, EIO, "outer"), 0);
    CHECK_EQ(cc_nursery_spawn(n, wait_and_tell, &why), 0);
    CHECK_EQ(cc_nursery_wait(n), EXDEV);
    CHECK_EQ(strcmp(why.text, "inner"), 0);
    CHECK_EQ(cc_nursery_free(n), 0);
    CHECK_EQ(cc_nursery_wait(above), EIO);
    CHECK_EQ(cc_nursery_free(above), 0);
}

TEST_WORKERS(inner_reason_stays) {
    inner_first();
    in_fiber(inner_first);
}

/* A child that passes on what its own nursery's wait has returned does not fail in one that was cancelled: the code is
 * ECANCELED, whether the cancellation reaches the child in its wait or the nursery first. */
static int levels_below(void *arg) {
    long levels = (long)arg;
    int rc;
    if (levels == 0) return cc_sleep_until(CC_FOREVER);
    CC_NURSERY(n, .result = &rc)
    CHECK_EQ(cc_nursery_spawn_status(n, levels_below, (void *)(levels - 1)), 0); // NOLINT: a number
    CHECK_EQ(rc, ECANCELED);
    return rc;
}

static void passed_on(void) {
    CCNursery *n = new_nursery(NULL);
    CHECK_EQ(cc_nursery_spawn_status(n, levels_below, (void *)50), 0); // NOLINT: a number
    for (long i = 0, turns = (long)(cc_now_ns() % 60); i < turns; i++) let_others();
    CHECK_EQ(cc_nursery_cancel_with(n, EINTR, "enough"), 0);
    CHECK_EQ(cc_nursery_wait(n), EINTR);
    CHECK_EQ(cc_nursery_failures(n), 0);
    CHECK_EQ(cc_nursery_free(n), 0);
}

TEST_WORKERS(codes_passed_on_up_the_tree) {
    for (long i = 0, rounds = test_rounds(50, 5000); i < rounds; i++) passed_on();
    in_fiber(passed_on);
}

/* ---- cc_run: what it has started ends before it returns ---- */

static atomic_int body_ended;

static void *run_by_another(void *arg) {
    CHECK_EQ(cc_sleep_until(CC_FOREVER), ECANCELED);
    CHECK(cc_cancelled());
    for (int i = 0; i < 10; i++) cc_yield();
    *(int *)arg = 42;
    body_ended = 1;
    return arg;
}

static void *run_panics(void *arg) {
    CHECK_EQ(cc_sleep_until(CC_FOREVER), ECANCELED);
    if (arg != NULL) cc_panic("after the cancellation");
    return arg;
}

static void *calls_run(void *arg) {
    int local = 0;
    void *result = NULL;
    body_ended = 0;
    CHECK_EQ(cc_run(run_by_another, &local, &result), ECANCELED);
    CHECK_EQ(body_ended, 1);
    CHECK_EQ(local, 42);
    CHECK(result == &local);
    CHECK_EQ(cc_run(run_panics, &local, NULL), ENOTRECOVERABLE);
    return arg;
}

static void run_is_cancelled(void) {
    int rc;
    CC_NURSERY(n, .result = &rc, .deadline = cc_after_ms(2)) {
        (void)calls_run(NULL);
        CHECK_EQ(cc_nursery_spawn(n, calls_run, NULL), 0);
    }
    CHECK_EQ(rc, ETIMEDOUT);
}

TEST_WORKERS(run_waits_for_what_it_cancels) {
    run_is_cancelled();
    in_fiber(run_is_cancelled);
}

/* A fiber that was started without a nursery belongs to none, wherever it was started; a root has no parent. */
static atomic_int let_go;

static void *not_mine(void *arg) {
    (void)arg;
    CHECK(!cc_cancelled());
    CCError why;
    CHECK_EQ(cc_cancel_reason(&why), ESRCH);
    UNTIL(let_go);
    CHECK_EQ(cc_sleep_ms(1), 0);
    CHECK_EQ(cc_deadline().ns, CC_FOREVER.ns);
    return NULL;
}

static void *spawn_outside(void *arg) {
    *(CCTask *)arg = cc_fiber_spawn_task(not_mine, NULL);
    CCNursery *root = cc_nursery_create_ex(&(CCNurseryConfig){.root = true});
    CHECK(root->scope.parent == NULL);
    CHECK_EQ(cc_nursery_spawn(root, not_mine, NULL), 0);
    CHECK_EQ(cc_sleep_until(CC_FOREVER), ECANCELED);
    let_go = 1;
    CC_SHIELD CHECK_EQ(cc_nursery_wait(root), 0);
    CHECK_EQ(cc_nursery_free(root), 0);
    return NULL;
}

static void outsiders(void) {
    let_go = 0;
    CCTask outside;
    CCNursery *n = new_nursery(NULL);
    CHECK_EQ(cc_nursery_spawn(n, spawn_outside, &outside), 0);
    CHECK_EQ(cc_nursery_cancel(n), 0);
    CHECK_EQ(cc_nursery_wait(n), ECANCELED);
    CHECK_EQ(cc_task_join(&outside, NULL), 0);
    CHECK_EQ(cc_nursery_free(n), 0);
}

TEST_WORKERS(no_nursery_is_not_cancelled) {
    outsiders();
    in_fiber(outsiders);
}

/* ---- from an OS thread, and many at once ---- */

static void cancel_from_thread(int index, void *n) {
    (void)index;
    CHECK_EQ(cc_nursery_cancel_with(n, EXDEV, "a thread"), 0);
}

static void threads_cancel(void) {
    CCError why[50];
    CCNursery *n = new_nursery(NULL);
    for (int i = 0; i < 50; i++) CHECK_EQ(cc_nursery_spawn(n, wait_and_tell, &why[i]), 0);
    crew_run(4, cancel_from_thread, n);
    CHECK_EQ(cc_nursery_wait(n), EXDEV);
    for (int i = 0; i < 50; i++) {
        CHECK_EQ(why[i].who, 0);
        CHECK_EQ(strcmp(why[i].text, "a thread"), 0);
    }
    CHECK_EQ(cc_nursery_free(n), 0);
}

TEST_WORKERS(from_threads) {
    for (int i = 0; i < 20; i++) threads_cancel();
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
}

/* ---- whoever waits for a nursery ---- */

static void *wait_for_nursery(void *arg) {
    CHECK_EQ(cc_nursery_wait(arg), ECANCELED);
    CHECK_EQ(cc_nursery_children(arg), 0); /* it has waited for the end nevertheless */
    return NULL;
}

/* A waiter that is cancelled cancels what it waits for. */
static void waiter_is_cancelled(void) {
    cancelled = 0;
    CCNursery *outer = new_nursery(NULL), *root = cc_nursery_create_ex(&(CCNurseryConfig){.root = true});
    for (int i = 0; i < 10; i++) CHECK_EQ(cc_nursery_spawn(root, wait_for_cancel, &cancelled), 0);
    CHECK_EQ(cc_nursery_spawn(outer, wait_for_nursery, root), 0);
    CHECK_EQ(cc_nursery_cancel(outer), 0);
    CHECK_EQ(cc_nursery_wait(outer), ECANCELED);
    CHECK_EQ(cancelled, 10);
    check_empty(root);
    CHECK_EQ(cc_nursery_free(root), 0);
    CHECK_EQ(cc_nursery_free(outer), 0);
}

static atomic_int gave_up;

static void *give_up_waiting(void *arg) {
    CHECK_EQ(cc_nursery_wait_until(arg, cc_after_ms(1)), ETIMEDOUT);
    gave_up = 1;
    CHECK_EQ(cc_nursery_wait_until(arg, CC_FOREVER), ECANCELED);
    CHECK_EQ(cc_nursery_children(arg), 1); /* the children go on */
    return NULL;
}

static void waiter_gives_up(void) {
    cancelled = gave_up = 0;
    CCNursery *outer = new_nursery(NULL), *root = cc_nursery_create_ex(&(CCNurseryConfig){.root = true});
    CHECK_EQ(cc_nursery_spawn(root, wait_for_cancel, &cancelled), 0);
    CCFiberId id = start_child(outer, give_up_waiting, root);
    CHECK_EQ(cc_nursery_wait_until(outer, cc_after_ms(5)), ETIMEDOUT);
    UNTIL(gave_up && is_parked(id));
    CHECK_EQ(cc_nursery_cancel(outer), 0);
    CHECK_EQ(cc_nursery_wait(outer), ECANCELED);
    CHECK_EQ(cancelled, 0);
    CHECK_EQ(cc_nursery_cancel(root), 0);
    CHECK_EQ(cc_nursery_wait_until(root, CC_FOREVER), ECANCELED);
    check_empty(root);
    CHECK_EQ(cc_nursery_free(root), 0);
    CHECK_EQ(cc_nursery_free(outer), 0);
}

TEST_WORKERS(waiters) {
    waiter_is_cancelled();
    in_fiber(waiter_is_cancelled);
    waiter_gives_up();
    in_fiber(waiter_gives_up);
}

/* A child, or a descendant, would wait for itself. */
static void *wait_for_own(void *arg) {
    CHECK_EQ(cc_nursery_wait(arg), EDEADLK);
    CHECK_EQ(cc_nursery_wait_until(arg, CC_FOREVER), EDEADLK);
    CHECK_EQ(cc_nursery_free(arg), EDEADLK);
    return NULL;
}

static void *wait_for_own_from_below(void *arg) {
    CC_NURSERY(n) CHECK_EQ(cc_nursery_spawn(n, wait_for_own, arg), 0);
    return wait_for_own(arg);
}

TEST_WORKERS(own_children_do_not_wait) {
    CCNursery *n = new_nursery(NULL);
    CHECK_EQ(cc_nursery_spawn(n, wait_for_own_from_below, n), 0);
    CHECK_EQ(cc_nursery_wait(n), 0);
    CHECK_EQ(cc_nursery_free(n), 0);
}

/* ---- one task ---- */

static void *cancelled_by_task_cancel(void *counter) {
    (void)wait_for_cancel(counter);
    CCError why;
    CHECK_EQ(cc_cancel_reason(&why), 0);
    CHECK_EQ(why.code, ECANCELED);
    CHECK(strstr(why.text, "cc_task_cancel") != NULL);
    return NULL;
}

static void *hold_the_worker(void *arg) {
    UNTIL(atomic_load((atomic_int *)arg) != 0);
    return NULL;
}

static void one_task(void) {
    cancelled = 0;
    CCTask started, unstarted, ended, stale;
    CHECK_EQ(cc_spawn(&started, cancelled_by_task_cancel, &cancelled, NULL), 0);
    UNTIL(is_parked(started.id));
    CHECK_EQ(cc_task_cancel(&started), 0);
    CHECK_EQ(cc_task_cancel(&started), 0); /* twice; the handle stays */
    CHECK_EQ(cc_task_join(&started, NULL), 0);
    CHECK_EQ(cancelled, 1);

    CHECK_EQ(cc_spawn(&unstarted, cancelled_by_task_cancel, &cancelled, NULL), 0);
    CHECK_EQ(cc_task_cancel(&unstarted), 0);
    CHECK_EQ(cc_task_join(&unstarted, NULL), 0);
    CHECK_EQ(cancelled, 2);

    CHECK_EQ(cc_spawn(&ended, count_up, &cancelled, NULL), 0);
    UNTIL(cancelled == 3);
    struct fiber *f = cc__pool_find(ended.id);
    UNTIL(cc__word_state(cc__get_acquire(&f->word)) == FIBER_DONE);
    CHECK_EQ(cc_task_cancel(&ended), 0);
    stale = ended;
    CHECK_EQ(cc_task_join(&ended, NULL), 0);
    CHECK_EQ(cc_task_cancel(&ended), EINVAL);
    CHECK_EQ(cc_task_cancel(&stale), ESRCH);
    CHECK_EQ(cc_task_cancel(NULL), EINVAL);

    /* The fiber that reuses the record is not affected. */
    for (int i = 0; i < 20; i++) {
        CHECK_EQ(cc_spawn(&started, not_mine, NULL, NULL), 0);
        CHECK_EQ(cc_task_cancel(&stale), ESRCH);
        let_go = 1;
        CHECK_EQ(cc_task_join(&started, NULL), 0);
    }
}

TEST_WORKERS(a_task_by_its_handle) {
    one_task();
    in_fiber(one_task);
}

/* A child that is cancelled by its handle; its siblings are not, unless it says that it failed. */
static void one_child(void) {
    cancelled = 0;
    atomic_int stop = 0;
    CCTask task;
    CCNursery *n = new_nursery(NULL);
    CHECK_EQ(cc_nursery_spawn_ex(n, &task, cancelled_by_task_cancel, &cancelled, NULL), 0);
    CHECK_EQ(cc_nursery_spawn(n, hold_the_worker, &stop), 0);
    CHECK_EQ(cc_task_cancel(&task), 0);
    CHECK_EQ(cc_task_join(&task, NULL), 0);
    CHECK_EQ(cancelled, 1);
    CHECK_EQ(cc_nursery_children(n), 1);
    stop = 1;
    CHECK_EQ(cc_nursery_wait(n), 0);
    CHECK_EQ(cc_nursery_free(n), 0);
}

TEST_WORKERS(a_child_by_its_handle) {
    one_child();
    in_fiber(one_child);
}

/* ---- tasks that their joiners run ---- */

static void *wait_for_flag(void *flag) {
    UNTIL(atomic_load((atomic_int *)flag) != 0);
    return NULL;
}

/* A cancelled joiner does not wait for a task that the cancellation does not reach. */
static void *join_outsider(void *flag) {
    CCTask task = cc_fiber_spawn_task(wait_for_flag, flag);
    CHECK_EQ(cc_task_join(&task, NULL), ECANCELED);
    atomic_store((atomic_int *)flag, 1);
    CC_SHIELD CHECK_EQ(cc_task_join(&task, NULL), 0);
    return NULL;
}

/* Nor when it was cancelled before it joined. */
static void *join_when_cancelled(void *flag) {
    CHECK_EQ(cc_sleep_until(CC_FOREVER), ECANCELED);
    return join_outsider(flag);
}

static void joiners(void) {
    for (int i = 0; i < 20; i++) {
        atomic_int flag = 0, second = 0, third = 0;
        CCNursery *n = new_nursery(NULL);
        CCFiberId id = start_child(n, join_outsider, &flag);
        CHECK_EQ(cc_nursery_spawn(n, join_when_cancelled, &second), 0);
        if (i % 2 == 0) UNTIL(is_parked(id));
        CHECK_EQ(cc_nursery_cancel(n), 0);
        CHECK_EQ(cc_nursery_wait(n), ECANCELED);
        CHECK_EQ(cc_nursery_free(n), 0);
        CCTask task = cc_fiber_spawn_task(join_when_cancelled, &third);
        CHECK_EQ(cc_task_cancel(&task), 0);
        CHECK_EQ(cc_task_join(&task, NULL), 0);
    }
}

TEST_WORKERS(joiner_of_an_outsider) {
    joiners();
    in_fiber(joiners);
}

/* In one scope the joiner may run the task: both are cancelled. */
static void *join_sibling(void *n) {
    CCTask task;
    CHECK_EQ(cc_nursery_spawn_ex(n, &task, wait_for_cancel, &cancelled, NULL), 0);
    int rc = cc_task_join(&task, NULL);
    CHECK(rc == 0 || rc == ECANCELED);
    CHECK(cc_cancelled());
    if (rc != 0) CHECK_EQ(cc_task_detach(&task), 0);
    return NULL;
}

static void siblings(void) {
    for (int i = 0; i < 20; i++) {
        cancelled = 0;
        CCNursery *n = new_nursery(NULL);
        CCFiberId id = start_child(n, join_sibling, n);
        UNTIL(is_parked(id) && cc_nursery_children(n) == 2);
        CHECK_EQ(cc_nursery_cancel(n), 0);
        CHECK_EQ(cc_nursery_wait(n), ECANCELED);
        CHECK_EQ(cancelled, 1);
        check_empty(n);
        CHECK_EQ(cc_nursery_free(n), 0);
    }
}

TEST_WORKERS(joiner_of_a_sibling) {
    siblings();
    in_fiber(siblings);
}

/* ---- select ---- */

static void *select_on_cancel(void *arg) {
    int value;
    CCChan *ch = arg;
    CC_MATCH(CC_RECV(ch, &value, NULL), CC_CANCEL()) {
    case 0:
        CHECK(false);
        break;
    case 1:
        count_up(&cancelled);
        break;
    default:
        CHECK(false);
    }
    /* Ready at once, from now on; but not behind a shield. */
    CC_MATCH_TRY(CC_CANCEL(), CC_RECV(ch, &value, NULL)) {
    case 0:
        count_up(&cancelled);
        break;
    default:
        CHECK(false);
    }
    CC_SHIELD {
        CC_MATCH_TRY(CC_CANCEL(), CC_RECV(ch, &value, NULL)) {
        case CC_MATCH_NONE:
            count_up(&cancelled);
            break;
        default:
            CHECK(false);
        }
        size_t chosen;
        CCCase two[] = {CC_CANCEL(), CC_RECV(ch, &value, NULL)};
        CHECK_EQ(cc_select(two, 2, cc_after_ms(1), &chosen), ETIMEDOUT);
    }
    size_t chosen;
    CCCase cases[] = {CC_RECV(ch, &value, NULL), CC_CANCEL(), CC_CANCEL()};
    CHECK_EQ(cc_select_ordered(cases, 3, CC_SELECT_FIRST, CC_FOREVER, &chosen), 0);
    CHECK_EQ(chosen, 1);
    CHECK_EQ(cc_select(cases, 1, CC_FOREVER, &chosen), ECANCELED);
    CHECK_EQ(cc_match(cases, 1, true), CC_MATCH_FAILED);
    return NULL;
}

static void arms(void) {
    cancelled = 0;
    CCChan *ch = cc_chan_create(sizeof(int), 0);
    CCNursery *n = new_nursery(NULL);
    CCFiberId id = start_child(n, select_on_cancel, ch);
    UNTIL(is_parked(id));
    CHECK_EQ(cc_nursery_spawn(n, select_on_cancel, ch), 0); /* unstarted, mostly */
    CHECK_EQ(cc_nursery_cancel(n), 0);
    CHECK_EQ(cc_nursery_wait(n), ECANCELED);
    CHECK_EQ(cancelled, 6);
    CHECK_EQ(cc_nursery_free(n), 0);
    cc_chan_free(ch);
}

TEST_WORKERS(an_arm_of_a_select) {
    arms();
    in_fiber(arms);
}

/* On an OS thread such an arm is never ready. */
TEST(an_arm_on_a_thread) {
    size_t chosen;
    CCCase c = CC_CANCEL();
    CHECK_EQ(cc_select(&c, 1, cc_after_ms(1), &chosen), ETIMEDOUT);
    CHECK_EQ(cc_select_try(&c, 1, &chosen), EAGAIN);
}
