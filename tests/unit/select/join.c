/* join.c - a task's end is an arm like any other, and consumes the handle only when it is chosen. */
#include "arms.h"

#include <sched.h>

struct gated {
    CCChan *gate;
    long answer;
};

static void *wait_at_gate(void *arg) {
    struct gated *g = arg;
    CHECK_EQ(cc_chan_recv(g->gate, NULL, 0), 0);
    return (void *)g->answer;
}

static void *give_back(void *arg) {
    return arg;
}

static void *joined_at_once(void *unused) {
    (void)unused;
    CCChan *ch = new_chan(8, 1);
    uint64_t in = 4711;
    for (long i = 1; i < 50; i++) {
        CCTask task, copy;
        CHECK_EQ(cc_spawn(&task, give_back, (void *)i, NULL), 0);
        CHECK_EQ(cc_task_dup(&task, &copy), 0);
        void *result = NULL;
        CHECK_EQ(cc_task_join(&copy, NULL), 0); /* it has ended */
        CCTask consumed = task;
        int status = 4711;
        size_t chosen = 99;
        CCCase cases[] = {recv_arm(ch, &in), CC_JOIN(&task, &result, &status)};
        CHECK_EQ(i % 2 ? cc_select(cases, 2, CC_FOREVER, &chosen) : cc_select_try(cases, 2, &chosen), 0);
        CHECK_EQ(chosen, 1);
        CHECK_EQ(cases[1].error, 0);
        CHECK_EQ(status, 0);
        CHECK_EQ((long)result, i);
        CHECK_EQ(task.id, 0); /* used up */
        CHECK_EQ(cc_task_join(&consumed, NULL), ESRCH);
    }
    cc_chan_free(ch);
    return NULL;
}

TEST_WORKERS(joined_at_once) {
    both_contexts(joined_at_once);
}

/* What the chooser does, and what it saw. */
struct joiner {
    CCTask task;
    CCChan *ch;
    uint64_t in;
    void *result;
    CCDeadline deadline;
    size_t chosen;
    int error;
    atomic_int returned;
};

static void *choose_join(void *arg) {
    struct joiner *j = arg;
    CCCase cases[] = {CC_JOIN(&j->task, &j->result, &j->error), recv_arm(j->ch, &j->in)};
    atomic_store(&j->returned, cc_select(cases, 2, j->deadline, &j->chosen));
    return NULL;
}

static void joined_later_with(enum parties kind, size_t which) {
    struct gated gated = {new_chan(0, 0), 42};
    struct joiner j = {.ch = new_chan(8, 0), .deadline = CC_FOREVER, .chosen = 99, .error = 4711, .returned = -1};
    CHECK_EQ(cc_spawn(&j.task, wait_at_gate, &gated, NULL), 0);
    CCTask name = j.task;
    struct party p = party_start(kind, 0, choose_join, &j);
    await_receivers(gated.gate, 1);
    await_receivers(j.ch, 1);
    CHECK_EQ(atomic_load(&j.returned), -1);
    if (which == 0) { /* the task ends */
        CHECK_EQ(cc_chan_send(gated.gate, NULL, 0), 0);
        party_end(&p);
        CHECK_EQ(j.chosen, 0);
        CHECK_EQ(j.error, 0);
        CHECK_EQ((long)j.result, 42);
        CHECK_EQ(j.task.id, 0);
        CHECK_EQ(cc_task_join(&name, NULL), ESRCH);
    } else { /* the channel is first: the handle is unchanged, and the arm is unlinked from the task */
        CHECK_EQ(send_number(j.ch, 8, 6), 0);
        party_end(&p);
        CHECK_EQ(j.chosen, 1);
        CHECK_EQ(j.in, 6);
        CHECK_EQ(j.task.id, name.id);
        CHECK(j.result == NULL);
        CHECK_EQ(j.error, 4711);
        CHECK_EQ(cc_chan_send(gated.gate, NULL, 0), 0);
        void *result = NULL;
        CHECK_EQ(cc_task_join(&j.task, &result), 0);
        CHECK_EQ((long)result, 42);
    }
    CHECK_EQ(j.returned, 0);
    check_clean(j.ch);
    check_clean(gated.gate);
    cc_chan_free(j.ch);
    cc_chan_free(gated.gate);
}

TEST_WORKERS(joined_later) {
    for_each_kind(joined_later_with, 0);
}

TEST_WORKERS(not_chosen_keeps_the_handle) {
    for_each_kind(joined_later_with, 1);
}

static void join_deadline_with(enum parties kind, size_t unused) {
    (void)unused;
    struct gated gated = {new_chan(0, 0), 42};
    struct joiner j = {.ch = NULL, .deadline = cc_after_ms(2), .chosen = 99, .returned = -1};
    CHECK_EQ(cc_spawn(&j.task, wait_at_gate, &gated, NULL), 0);
    struct party p = party_start(kind, 0, choose_join, &j);
    party_end(&p);
    CHECK_EQ(j.returned, ETIMEDOUT);
    CHECK_EQ(j.chosen, 99);
    CHECK(cc_now_ns() >= j.deadline.ns);
    CHECK_EQ(cc_chan_send(gated.gate, NULL, 0), 0);
    void *result = NULL;
    CHECK_EQ(cc_task_join(&j.task, &result), 0);
    CHECK_EQ((long)result, 42);
    cc_chan_free(gated.gate);
}

TEST_WORKERS(deadline_before_the_end) {
    for_each_kind(join_deadline_with, 0);
}

/* Many tasks, joined as they end; each exactly once. */
static void *quick(void *arg) {
    long n = (long)arg;
    for (long i = 0; i < n % 5; i++) cc_yield();
    return arg;
}

static void *join_any(void *unused) {
    (void)unused;
    enum { N = 32 };
    for (long round = 0; round < test_rounds(30, 3000); round++) {
        CCTask tasks[N];
        void *results[N] = {0};
        CCCase cases[N];
        long sum = 0;
        for (long i = 0; i < N; i++) {
            CHECK_EQ(cc_spawn(&tasks[i], quick, (void *)(i + 1), NULL), 0);
            CCCase c = CC_JOIN(&tasks[i], &results[i], NULL);
            cases[i] = c;
        }
        for (int left = N; left > 0; left--) {
            size_t chosen;
            CHECK_EQ(cc_select(cases, N, CC_FOREVER, &chosen), 0);
            CHECK_EQ(cases[chosen].error, 0);
            CHECK_EQ(tasks[chosen].id, 0);
            CHECK_EQ((long)results[chosen], (long)chosen + 1);
            sum += (long)results[chosen];
            cases[chosen].kind = CC_CASE_NONE;
        }
        CHECK_EQ(sum, N * (N + 1) / 2);
    }
    return NULL;
}

TEST_WORKERS(join_any) {
    both_contexts(join_any);
}

/* ---- what cannot be joined ---- */

/* The header allows both: the select rejects the arm, or the arm is ready with the error that the join would return. */
static int error_of(CCCase *cases, size_t n, size_t arm) {
    size_t chosen = 99;
    int rc = cc_select(cases, n, cc_after_ms(5000), &chosen);
    if (rc != 0) return rc;
    CHECK_EQ(chosen, arm);
    return cases[chosen].error;
}

static void *consumed_handles(void *unused) {
    (void)unused;
    CCTask task, copy;
    void *result = NULL;
    CCChan *ch = new_chan(8, 0);
    uint64_t in;
    CHECK_EQ(cc_spawn(&task, give_back, NULL, NULL), 0);
    copy = task;
    CHECK_EQ(cc_task_join(&task, NULL), 0);
    CCCase cases[] = {recv_arm(ch, &in), CC_JOIN(&copy, &result, NULL)};
    CHECK_EQ(error_of(cases, 2, 1), ESRCH);
    CHECK(copy.id != 0);
    CCTask invented = {UINT64_C(0x7fffffff00000001)};
    CCCase others[] = {recv_arm(ch, &in), CC_JOIN(&invented, &result, NULL)};
    CHECK_EQ(error_of(others, 2, 1), ESRCH);
    check_clean(ch);
    cc_chan_free(ch);
    return NULL;
}

TEST_WORKERS(consumed_handles) {
    both_contexts(consumed_handles);
}

/* A consumed handle matches no fiber, even if the caller reuses its record. */
struct past {
    CCTask tasks[64];
    atomic_int met;
};

static void *join_own_stale_handle(void *arg) {
    struct past *past = arg;
    for (int i = 0; i < 64; i++) {
        if ((uint32_t)past->tasks[i].id != (uint32_t)cc_fiber_id() || past->tasks[i].id == cc_fiber_id()) continue;
        CCCase cases[] = {CC_JOIN(&past->tasks[i], NULL, NULL)};
        CHECK_EQ(error_of(cases, 1, 0), ESRCH);
        atomic_fetch_add(&past->met, 1);
    }
    return NULL;
}

static void *live_again(void *arg) {
    struct past *past = arg;
    CCTask handles[64];
    for (int i = 0; i < 64; i++) {
        CHECK_EQ(cc_spawn(&past->tasks[i], give_back, NULL, NULL), 0);
        handles[i] = past->tasks[i];
    }
    for (int i = 0; i < 64; i++) CHECK_EQ(cc_task_join(&handles[i], NULL), 0);
    for (int i = 0; i < 64; i++) CHECK_EQ(cc_spawn(&handles[i], join_own_stale_handle, past, NULL), 0);
    cc_yield();
    for (int i = 0; i < 64; i++) CHECK_EQ(cc_task_join(&handles[i], NULL), 0);
    return NULL;
}

TEST(a_stale_handle_on_ones_own_record) {
    struct past past = {.met = 0};
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = 1}), 0);
    CHECK_EQ(cc_run(live_again, &past, NULL), 0);
    CHECK(past.met > 0); /* records are reused, or this test shows nothing */
}

static void *join_myself(void *arg) {
    CCTask *me = arg;
    CCChan *ch = new_chan(8, 0);
    uint64_t in;
    CCTask copy = {cc_fiber_id()};
    CHECK_EQ(me->id == 0 || me->id == copy.id, true);
    CCCase cases[] = {recv_arm(ch, &in), CC_JOIN(&copy, NULL, NULL)};
    CHECK_EQ(error_of(cases, 2, 1), EDEADLK);
    CHECK(copy.id != 0);
    check_clean(ch);
    cc_chan_free(ch);
    return NULL;
}

TEST_WORKERS(a_fiber_cannot_select_its_own_end) {
    CCTask task = {0};
    CHECK_EQ(cc_run(join_myself, &task, NULL), 0);
}

/* The same task in two arms, and beside other joiners: all waiters see the end, and one handle is used. */
TEST_WORKERS(one_task_in_two_arms) {
    struct gated gated = {new_chan(0, 0), 7};
    CCTask task, a, b;
    CHECK_EQ(cc_spawn(&task, wait_at_gate, &gated, NULL), 0);
    a = b = task;
    void *ra = NULL, *rb = NULL;
    CCCase cases[] = {CC_JOIN(&a, &ra, NULL), CC_JOIN(&b, &rb, NULL)};
    struct choice c;
    choice_init(&c, cases, 2);
    struct party p = party_start(FIBERS, 0, choose, &c);
    await_receivers(gated.gate, 1);
    CHECK_EQ(cc_chan_send(gated.gate, NULL, 0), 0);
    party_end(&p);
    CHECK_EQ(c.returned, 0);
    CHECK(c.chosen < 2);
    CHECK_EQ((long)(c.chosen == 0 ? ra : rb), 7);
    CHECK((c.chosen == 0 ? rb : ra) == NULL);
    CHECK_EQ(cc_task_join(&task, NULL), ESRCH);
    cc_chan_free(gated.gate);
}

/* ---- a shutdown comes while OS threads, which see the end last, unlink ---- */

/* ---- a pool's callback panics in a select with a join ---- */

static int panic_create(void *place, void *unused) {
    (void)place, (void)unused;
    cc_panic("no item");
    return 0;
}

struct join_and_pool {
    CCTask task;
    CCChan *pool;
};

static void select_join_and_pool(void *arg) {
    struct join_and_pool *s = arg;
    uint64_t in;
    size_t chosen;
    CCCase cases[] = {CC_JOIN(&s->task, NULL, NULL), CC_RECV(s->pool, &in, NULL)};
    (void)cc_select(cases, 2, CC_FOREVER, &chosen);
}

/* The thread is not inside the runtime any more, which may stop. */
TEST(a_panic_leaves_a_select_of_a_thread) {
    struct gated gated = {new_chan(0, 0), 7};
    struct join_and_pool s;
    CCPanic why;
    s.pool = cc_chan_create_ex(&(CCChanConfig){.elem_size = 8, .capacity = 1, .on_create = panic_create});
    CHECK(s.pool != NULL);
    CHECK_EQ(cc_spawn(&s.task, wait_at_gate, &gated, NULL), 0);
    CHECK_EQ(cc_try(select_join_and_pool, &s, &why), ENOTRECOVERABLE);
    CHECK_EQ(cc_chan_send(gated.gate, NULL, 0), 0);
    CHECK_EQ(cc_task_join(&s.task, NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(60 * 1000), 0);
    cc_chan_free(s.pool);
    cc_chan_free(gated.gate);
}

struct ends {
    CCTask tasks[2];
    atomic_int *selecting;
};

static void *select_ends(void *arg) {
    struct ends *ends = arg;
    struct sched_param none = {0};
    (void)pthread_setschedparam(pthread_self(), SCHED_IDLE, &none); /* so that the shutdown is quicker */
    CCCase cases[] = {CC_JOIN(&ends->tasks[0], NULL, NULL), CC_JOIN(&ends->tasks[1], NULL, NULL)};
    size_t chosen;
    atomic_fetch_add(ends->selecting, 1);
    CHECK_EQ(cc_select(cases, 2, CC_FOREVER, &chosen), 0);
    return NULL;
}

TEST(shutdown_while_threads_select) {
    enum { SELECTORS = 4 };
    for (long round = 0; round < test_scale(100); round++) {
        struct gated gated = {new_chan(0, 2), 7};
        struct ends ends[SELECTORS];
        atomic_int selecting = 0;
        pthread_t threads[SELECTORS];
        CCTask tasks[2];
        for (int i = 0; i < 2; i++) CHECK_EQ(cc_spawn(&tasks[i], wait_at_gate, &gated, NULL), 0);
        for (int i = 0; i < SELECTORS; i++) {
            for (int k = 0; k < 2; k++) CHECK_EQ(cc_task_dup(&tasks[k], &ends[i].tasks[k]), 0);
            ends[i].selecting = &selecting;
            CHECK_EQ(pthread_create(&threads[i], NULL, select_ends, &ends[i]), 0);
        }
        while (atomic_load(&selecting) < SELECTORS) CHECK_EQ(cc_sleep_ms(1), 0);
        for (int i = 0; i < 2; i++) CHECK_EQ(cc_task_detach(&tasks[i]), 0);
        for (int i = 0; i < 2; i++) CHECK_EQ(cc_chan_send(gated.gate, NULL, 0), 0);
        CHECK_EQ(cc_runtime_shutdown(60 * 1000), 0);
        for (int i = 0; i < SELECTORS; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
        cc_chan_free(gated.gate);
    }
}
