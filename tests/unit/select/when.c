/* when.c - CC_WHEN: runs one body; evaluates expressions once; leaving, nesting, closing; misuse. */
#include "arms.h"

#include <stdatomic.h>
#include <string.h>

static void *result_of(void *arg) {
    return arg;
}

CC_ASYNC(int, twice, { int of; }) {
    return 2 * self->of;
}

/* Each kind of arm. */
static void *kinds_body(void *unused) {
    (void)unused;
    CCChan *in = new_chan(sizeof(int), 1), *out = new_chan(sizeof(long), 1);
    int v = 0, which = -1;
    long w = 5;
    CC_WHEN {
        CC_ON_RECV(in, &v) {
            which = 0;
        }
        CC_ON_SEND(out, &w) {
            which = 1;
        }
    }
    CHECK_EQ(which, 1);
    CHECK_EQ(cc_chan_len(out), 1);
    CC_WHEN {
        CC_ON_RECV(in, &v) {
            which = 0;
        }
        CC_ON_SEND(out, &w) {
            which = 1;
        }
        CC_ON_DEFAULT() {
            which = 2;
        }
    }
    CHECK_EQ(which, 2);
    v = 9;
    CHECK_EQ(cc_chan_send(in, &v, sizeof v), 0);
    v = 0;
    CC_WHEN {
        CC_ON_DEFAULT() {
            which = 2;
        }
        CC_ON_SEND(out, &w) {
            which = 1;
        }
        CC_ON_RECV(in, &v) {
            which = 0;
            CHECK_EQ(CC_WHEN_ERROR, 0);
        }
    }
    CHECK_EQ(which, 0);
    CHECK_EQ(v, 9);
    uint64_t start = cc_now_ns();
    CC_WHEN {
        CC_ON_RECV(in, &v) {
            which = 0;
        }
        CC_ON_AFTER_MS(2) {
            which = 3;
        }
    }
    CHECK_EQ(which, 3);
    CHECK(cc_now_ns() - start >= 2000000);
    CC_WHEN {
        CC_ON_UNTIL(CC_PASSED) {
            which = 4;
        }
        CC_ON_RECV(in, &v) {
            which = 0;
        }
    }
    CHECK_EQ(which, 4);
    CCTask task = cc_fiber_spawn_task(result_of, &v);
    void *result = NULL;
    CC_WHEN {
        CC_ON_RECV(in, &v) {
            which = 0;
        }
        CC_ON_JOIN(&task, &result) {
            which = 5;
        }
    }
    CHECK_EQ(which, 5);
    CHECK(result == &v && task.id == 0);
    CC_FUTURE(twice, f);
    CHECK_EQ(CC_START(&f, twice, .of = 4), 0);
    CC_WHEN {
        CC_ON_RECV(in, &v) {
            which = 0;
        }
        CC_ON_AWAIT(&f) {
            which = CC_AWAIT(&f);
        }
    }
    CHECK_EQ(which, 8);
    CC_WHEN {
        CC_ON_RECV(NULL, &v) {
            which = 0;
        }
        CC_ON_DEFAULT() {
            which = 6;
        }
    }
    CHECK_EQ(which, 6);
    cc_chan_free(in);
    cc_chan_free(out);
    return NULL;
}

TEST_WORKERS(kinds) {
    both_contexts(kinds_body);
}

/* A task that waits is ended by what comes from another fiber. */
static void *send_later(void *ch) {
    int v = 3;
    cc_yield();
    CHECK_EQ(cc_chan_send(ch, &v, sizeof v), 0);
    return NULL;
}

static void *waits_body(void *unused) {
    (void)unused;
    CCChan *a = new_chan(sizeof(int), 0), *b = new_chan(sizeof(int), 0);
    CCTask task = cc_fiber_spawn_task(send_later, b);
    int v = 0, which = -1;
    CC_WHEN {
        CC_ON_RECV(a, &v) {
            which = 0;
        }
        CC_ON_RECV(b, &v) {
            which = 1;
        }
    }
    CHECK_EQ(which, 1);
    CHECK_EQ(v, 3);
    CHECK_EQ(cc_task_join(&task, NULL), 0);
    cc_chan_free(a);
    cc_chan_free(b);
    return NULL;
}

TEST_WORKERS(waits) {
    both_contexts(waits_body);
}

/* ---- once ---- */

static int evaluated;

static CCChan *counted(CCChan *ch) {
    evaluated++;
    return ch;
}

static void *once_body(void *unused) {
    (void)unused;
    CCChan *ch = new_chan(sizeof(int), 8), *full = new_chan(sizeof(int), 0);
    int v[4] = {0, 0, 0, 0}, at = 0, bodies = 0;
    for (int i = 0; i < 2; i++) CHECK_EQ(cc_chan_send(ch, &i, sizeof i), 0);
    evaluated = 0;
    CC_WHEN {
        CC_ON_RECV(counted(ch), &v[at++]) {
            bodies++;
        }
        CC_ON_SEND(counted(full), &v[at++]) {
            CHECK(!"nobody receives");
        }
    }
    CHECK_EQ(evaluated, 2);
    CHECK_EQ(at, 2);
    CHECK_EQ(bodies, 1);
    CHECK_EQ(cc_chan_len(ch), 1);
    cc_chan_free(ch);
    cc_chan_free(full);
    return NULL;
}

TEST_WORKERS(once) {
    both_contexts(once_body);
}

/* ---- leaving ---- */

static int by_return(CCChan *ch) {
    int v;
    CC_WHEN {
        CC_ON_RECV(ch, &v) {
            return v;
        }
        CC_ON_CLOSED(ch) {
            return -CC_WHEN_ERROR;
        }
    }
    return 99;
}

static void *leaving_body(void *unused) {
    (void)unused;
    CCChan *ch = new_chan(sizeof(int), 4);
    int v, sum = 0, rounds = 0, after = 0;
    for (v = 1; v <= 4; v++) CHECK_EQ(cc_chan_send(ch, &v, sizeof v), 0);
    CC_WHEN {
        CC_ON_RECV(ch, &v) {
            sum += v;
            if (sum > 0) break;
            after++;
        }
    }
    CC_WHEN {
        CC_ON_RECV(ch, &v) {
            sum += v;
            if (sum > 0) continue; /* the same */
            after++;
        }
    }
    CHECK_EQ(sum, 3);
    CHECK_EQ(after, 0);
    CHECK_EQ(by_return(ch), 3);
    for (rounds = 0; rounds < 10; rounds++) { /* break leaves the block, and the loop goes on */
        CC_WHEN {
            CC_ON_RECV(ch, &v) {
                break;
            }
            CC_ON_DEFAULT() {
                break;
            }
        }
    }
    CHECK_EQ(rounds, 10);
    CHECK_EQ(cc_chan_close_err(ch, ENOENT), 0);
    CHECK_EQ(by_return(ch), -ENOENT);
    cc_chan_free(ch);
    return NULL;
}

TEST_WORKERS(leaving) {
    both_contexts(leaving_body);
}

static void *nesting_body(void *unused) {
    (void)unused;
    CCChan *outer = new_chan(sizeof(int), 1), *inner = new_chan(sizeof(int), 1);
    int v = 1, w = 2, trace = 0;
    CHECK_EQ(cc_chan_send(outer, &v, sizeof v), 0);
    CHECK_EQ(cc_chan_send(inner, &w, sizeof w), 0);
    v = w = 0;
    CC_WHEN {
        CC_ON_AFTER_MS(60000) {
            trace = -1;
        }
        CC_ON_RECV(outer, &v) {
            trace = trace * 10 + v;
            CC_WHEN {
                CC_ON_RECV(outer, &v) {
                    trace = -2;
                }
                CC_ON_RECV(inner, &w) {
                    trace = trace * 10 + w;
                }
            }
            trace = trace * 10 + 3;
        }
        CC_ON_RECV(inner, &w) {
            trace = trace * 10 + w;
            CC_WHEN {
                CC_ON_RECV(outer, &v) {
                    trace = trace * 10 + v;
                }
            }
            trace = trace * 10 + 3;
        }
    }
    CHECK(trace == 123 || trace == 213);
    cc_chan_free(outer);
    cc_chan_free(inner);
    return NULL;
}

TEST_WORKERS(nesting) {
    both_contexts(nesting_body);
}

/* Arms from a loop, more than 16. */
static void *many_body(void *unused) {
    (void)unused;
    enum { MANY = 40 };
    CCChan *ch[MANY];
    int v = 0, which = -1;
    for (int i = 0; i < MANY; i++) ch[i] = new_chan(sizeof(int), 1);
    for (int k = 0; k < MANY; k += 13) {
        CHECK_EQ(cc_chan_send(ch[k], &k, sizeof k), 0);
        which = -1;
        CC_WHEN_N(64) {
            for (int i = 0; i < MANY; i++) {
                CC_ON_RECV(ch[i], &v) {
                    which = i;
                }
            }
            CC_ON_AFTER_MS(60000) {
                which = -2;
            }
        }
        CHECK_EQ(which, k);
        CHECK_EQ(v, k);
    }
    for (int i = 0; i < MANY; i++) cc_chan_free(ch[i]);
    return NULL;
}

TEST_WORKERS(many) {
    both_contexts(many_body);
}

/* Several are ready: the first of them, every time. */
static void *ordered_body(void *unused) {
    (void)unused;
    enum { ROUNDS = 20, MANY = 20 };
    CCChan *ch[MANY], *empty = new_chan(sizeof(int), 1);
    int v = 0;
    for (int i = 0; i < MANY; i++) ch[i] = new_chan(sizeof(int), ROUNDS);
    for (int i = 0; i < MANY; i++)
        for (int k = 0; k < ROUNDS; k++) CHECK_EQ(cc_chan_send(ch[i], &i, sizeof i), 0);
    for (int k = 0; k < MANY * ROUNDS; k++) {
        int which = -1;
        CC_WHEN_ORDERED_N(MANY + 3) {
            CC_ON_DEFAULT() { /* its place does not matter */
                which = -2;
            }
            CC_ON_RECV(empty, &v) {
                which = -3;
            }
            for (int i = 0; i < MANY; i++) {
                CC_ON_RECV(ch[i], &v) {
                    which = i;
                }
            }
            CC_ON_UNTIL(CC_PASSED) {
                which = -4;
            }
        }
        CHECK_EQ(which, k / ROUNDS);
        CHECK_EQ(v, which);
    }
    for (int i = 0; i < MANY; i++) cc_chan_free(ch[i]);
    cc_chan_free(empty);
    return NULL;
}

TEST_WORKERS(ordered) {
    both_contexts(ordered_body);
}

/* One arm becomes ready during the wait. */
static void *ordered_waits_body(void *unused) {
    (void)unused;
    CCChan *first = new_chan(sizeof(int), 1);
    CCTask task = cc_fiber_spawn_task(result_of, &task);
    void *result = NULL;
    int v = 0, which = -1;
    CC_WHEN_ORDERED {
        CC_ON_RECV(first, &v) {
            which = 0;
        }
        CC_ON_JOIN(&task, &result) {
            which = 1;
        }
    }
    CHECK_EQ(which, 1);
    CHECK(result == &task);
    CHECK_EQ(cc_chan_close(first), 0);
    CC_WHEN_ORDERED {
        CC_ON_CLOSED(first) {
            which = 2;
        }
        CC_ON_RECV(first, &v) {
            which = 0;
        }
        CC_ON_UNTIL(CC_PASSED) {
            which = 3;
        }
    }
    CHECK_EQ(which, 2);
    cc_chan_free(first);
    return NULL;
}

TEST_WORKERS(ordered_waits) {
    both_contexts(ordered_waits_body);
}

CC_CHILD(cancelled_in_order, { CCChan *full; }) {
    int v = 0, which = -1;
    while (!cc_cancelled()) cc_yield();
    for (int i = 0; i < 20; i++) {
        CC_WHEN_ORDERED {
            CC_ON_CANCEL() {
                which = 0;
            }
            CC_ON_RECV(self->full, &v) {
                which = 1;
            }
        }
        CHECK_EQ(which, 0);
        CC_WHEN_ORDERED {
            CC_ON_RECV(self->full, &v) {
                which = 1;
            }
            CC_ON_CANCEL() {
                which = 0;
            }
        }
        CHECK_EQ(which, 1);
    }
    return 0;
}

/* A cancellation has its place like other arms. */
static void *ordered_cancel_body(void *unused) {
    (void)unused;
    CCChan *full = new_chan(sizeof(int), 20);
    for (int i = 0; i < 20; i++) CHECK_EQ(cc_chan_send(full, &i, sizeof i), 0);
    int rc = 0;
    CC_NURSERY(n, .result = &rc) {
        CHECK_EQ(CC_GO_IN(n, cancelled_in_order, .full = full), 0);
        cc_nursery_cancel(n);
    }
    CHECK_EQ(cc_chan_len(full), 0);
    cc_chan_free(full);
    return NULL;
}

TEST_WORKERS(ordered_cancel) {
    both_contexts(ordered_cancel_body);
}

/* Arms behind conditions: an else belongs to its condition. */
static void *conditions_body(void *unused) {
    (void)unused;
    CCChan *even = new_chan(sizeof(int), 8), *odd = new_chan(sizeof(int), 8);
    int v = 0;
    for (v = 0; v < 8; v++) CHECK_EQ(cc_chan_send(v % 2 == 0 ? even : odd, &v, sizeof v), 0);
    for (int i = 0; i < 8; i++) {
        int which = -1;
        CC_WHEN {
            if (i % 2 == 0) CC_ON_RECV(even, &v) {
                    which = 0;
                }
            else
                CC_ON_RECV(odd, &v) {
                    which = 1;
                }
        }
        CHECK_EQ(which, i % 2);
        CHECK_EQ(v, i);
        CC_WHEN {
            if (i > 8) CC_ON_RECV(even, &v) which = 2;
            CC_ON_DEFAULT() which = 3;
        }
        CHECK_EQ(which, 3);
    }
    cc_chan_free(even);
    cc_chan_free(odd);
    return NULL;
}

TEST_WORKERS(conditions) {
    both_contexts(conditions_body);
}

/* ---- a future that could not start ---- */

static atomic_int refused;

static void *start_in_shutdown(void *unused) {
    int error = 0;
    for (refused = 0; !refused;) {
        CHECK_EQ(cc_sleep_until(CC_FOREVER), ECANCELED);
        CC_FUTURE(twice, f);
        if (CC_START(&f, twice, .of = 1) == 0) continue; /* that shutdown has given up */
        CC_WHEN {
            CC_ON_AWAIT(&f) {
                error = CC_WHEN_ERROR;
                CHECK_EQ(cc_await(&f, CC_FOREVER), ECANCELED);
            }
        }
        CHECK_EQ(error, ECANCELED);
        refused = 1;
    }
    return unused;
}

TEST_WORKERS(await_refused) {
    CCTask task = cc_fiber_spawn_task(start_in_shutdown, NULL);
    CHECK_EQ(cc_task_detach(&task), 0);
    while (cc_runtime_shutdown(0) == ETIMEDOUT) {
    }
    CHECK(refused);
}

/* ---- closed, cancelled ---- */

static void *closed_body(void *unused) {
    (void)unused;
    CCChan *in = new_chan(sizeof(int), 2), *out = new_chan(sizeof(int), 1), *never = new_chan(sizeof(int), 0);
    int v = 1, values = 0, closed = 0;
    CHECK_EQ(cc_chan_send(in, &v, sizeof v), 0);
    CHECK_EQ(cc_chan_close(in), 0);
    while (!closed) {
        CC_WHEN {
            CC_ON_CLOSED(never) {
                CHECK(!"it is open");
            }
            CC_ON_RECV(never, &v) {
                CHECK(!"nobody sends");
            }
            CC_ON_RECV(in, &v) {
                values++;
            }
            CC_ON_CLOSED(in) {
                closed = CC_WHEN_ERROR;
            }
        }
    }
    CHECK_EQ(values, 1);
    CHECK_EQ(closed, EPIPE);
    CHECK_EQ(cc_chan_close(out), 0);
    closed = 0;
    CC_WHEN {
        CC_ON_SEND(out, &v) {
            CHECK(!"it is closed");
        }
        CC_ON_CLOSED(out) {
            closed = CC_WHEN_ERROR;
        }
    }
    CHECK_EQ(closed, EPIPE);
    CCChanConfig drop_new = {.elem_size = sizeof(int), .capacity = 1, .mode = CC_CHAN_MODE_DROP_NEW};
    CCChan *drops = cc_chan_create_ex(&drop_new);
    CHECK_EQ(cc_chan_send(drops, &v, sizeof v), 0);
    CC_WHEN {
        CC_ON_SEND(drops, &v) {
            closed = CC_WHEN_ERROR;
        }
    }
    CHECK_EQ(closed, EAGAIN);
    cc_chan_free(in);
    cc_chan_free(out);
    cc_chan_free(never);
    cc_chan_free(drops);
    return NULL;
}

TEST_WORKERS(closed) {
    both_contexts(closed_body);
}

/* The memory of the arms still holds those of the block before: the default is not taken for one of them. */
static void *closed_again_body(void *unused) {
    (void)unused;
    CCChan *ch = new_chan(sizeof(int), 1);
    int v, which = -1;
    CHECK_EQ(cc_chan_close(ch), 0);
    for (int i = 0; i < 2; i++) {
        which = -1;
        CC_WHEN {
            CC_ON_RECV(ch, &v) {
                CHECK(!"it is closed");
            }
            if (i == 0) {
                CC_ON_CLOSED(ch) {
                    which = 0;
                }
            } else {
                CC_ON_DEFAULT() {
                    which = 1;
                }
            }
            CC_ON_CLOSED(ch) {
                which = 2;
            }
        }
        CHECK_EQ(which, i == 0 ? 0 : 2);
    }
    cc_chan_free(ch);
    return NULL;
}

TEST_WORKERS(closed_again) {
    both_contexts(closed_again_body);
}

static void *cancelled_body(void *unused) {
    (void)unused;
    CCChan *ch = new_chan(sizeof(int), 0);
    int v, with = 0, without = 0, rc;
    CC_NURSERY(n, .result = &rc) {
        CHECK_EQ(cc_nursery_cancel(n), 0);
        CC_WHEN {
            CC_ON_RECV(ch, &v) {
                with = -1;
            }
            CC_ON_CANCEL() {
                with = 1;
            }
        }
        CC_WHEN {
            CC_ON_RECV(ch, &v) {
                without = -1;
            }
        }
    }
    CHECK_EQ(rc, ECANCELED);
    CHECK_EQ(with, 1);
    CHECK_EQ(without, 0);
    cc_chan_free(ch);
    return NULL;
}

TEST_WORKERS(cancelled) {
    both_contexts(cancelled_body);
}

/* A loop that never waits may hog the worker that would fire the deadline: the arm checks the clock. */
static void *cancelled_by_the_clock_body(void *arg) {
    (void)arg;
    bool cancelled = false;
    CC_WITH_DEADLINE(cc_after_ms(1)) {
        while (!cc_deadline_has_passed(cc_deadline())) {
        }
        CC_WHEN {
            CC_ON_CANCEL() {
                cancelled = true;
            }
            CC_ON_DEFAULT() {}
        }
    }
    CHECK(cancelled);
    CC_WITH_DEADLINE(cc_after_ms(1)) {
        CC_SHIELD {
            while (!cc_deadline_has_passed(cc_deadline())) {
            }
            CC_WHEN {
                CC_ON_CANCEL() {
                    cancelled = false;
                }
                CC_ON_DEFAULT() {}
            }
        }
    }
    CHECK(cancelled);
    return NULL;
}

TEST_WORKERS(cancelled_by_the_clock) {
    both_contexts(cancelled_by_the_clock_body);
}

/* ---- misuse ---- */

static void expect_panic(CCDeferFn misuse, void *arg, const char *text) {
    CCPanic why;
    CHECK_EQ(cc_try(misuse, arg, &why), ENOTRECOVERABLE);
    if (strstr(why.message, text) == NULL) test_fail(__FILE__, __LINE__, "'%s' lacks '%s'", why.message, text);
}

static void too_many(void *ch) {
    int v;
    CC_WHEN_N(2) {
        for (int i = 0; i < 3; i++) {
            CC_ON_RECV((CCChan *)ch, &v) {}
        }
    }
}

static void far_too_many(void *ch) {
    int v;
    CC_WHEN_N(300) {
        for (int i = 0; i < 300; i++) {
            CC_ON_RECV((CCChan *)ch, &v) {}
        }
    }
}

/* Conditions that change between the two times that the block is executed. */
static void another_arm(void *ch) {
    int v = 0, times = 0;
    CC_WHEN {
        if (times++ > 0) {
            CC_ON_SEND((CCChan *)ch, &v) {
                test_fail(__FILE__, __LINE__, "nothing was sent");
            }
        } else {
            CC_ON_AFTER_MS(1) {}
        }
    }
}

static void no_arm(void *ch) {
    int v = 7;
    CC_WHEN {
        if (v == 7) {
            CC_ON_RECV((CCChan *)ch, &v) {}
        }
    }
}

/* After the body it does not matter. */
static void later_arms(void *ch) {
    int v = 7;
    CC_WHEN {
        CC_ON_RECV((CCChan *)ch, &v) {}
        if (v == 7) {
            CC_ON_AFTER_MS(10000) {}
            CC_ON_DEFAULT() {}
        }
    }
}

static void wrong_size(void *ch) {
    int v;
    short wrong;
    CC_WHEN {
        CC_ON_SEND((CCChan *)ch, &v) {}
        CC_ON_RECV((CCChan *)ch, &wrong) {}
    }
}

static void no_task(void *unused) {
    (void)unused;
    CCTask task = {0};
    CC_WHEN {
        CC_ON_JOIN(&task, NULL) {}
    }
}

static void no_ticker(void *ticker) {
    CC_WHEN {
        CC_ON_TICK((CCTicker *)ticker) {}
    }
}

static void no_event(void *event) {
    CC_WHEN {
        CC_ON_EVENT((CCEvent *)event) {}
    }
}

static void no_sem(void *sem) {
    CC_WHEN {
        CC_ON_ACQUIRE((CCSem *)sem) {}
    }
}

static void no_process(void *process) {
    CC_WHEN {
        CC_ON_EXITED((CCProcess *)process, NULL) {}
    }
}

/* The arm before it is ready: it does not happen. */
static void no_event_beside(void *sem) {
    CC_WHEN {
        CC_ON_ACQUIRE((CCSem *)sem) {}
        CC_ON_EVENT((CCEvent *)NULL) {}
    }
}

CC_ASYNC(int, one) {
    return 1;
}

static void await_unstarted(void *unused) {
    (void)unused;
    CC_FUTURE(one, f);
    CC_WHEN {
        CC_ON_AWAIT(&f) {}
    }
}

static void await_awaited(void *unused) {
    (void)unused;
    CC_FUTURE(one, f);
    CC_START(&f, one);
    (void)CC_AWAIT(&f);
    CC_WHEN {
        CC_ON_AWAIT(&f) {}
    }
}

static void no_closed(void *ch) {
    int v;
    CC_WHEN {
        CC_ON_RECV((CCChan *)ch, &v) {}
    }
}

static int create_nothing(void *item, void *context) {
    (void)item, (void)context;
    return EIO;
}

static void *misuse_body(void *unused) {
    (void)unused;
    CCChan *ch = new_chan(sizeof(int), 0);
    expect_panic(too_many, ch, "CC_WHEN: more than 2 arms; CC_WHEN_N(n) has room for n");
    expect_panic(far_too_many, ch, "CC_WHEN: 300 arms, and a select can have 256");
    expect_panic(another_arm, ch, "CC_WHEN: the arm that was executed is not found again: a condition");
    CCChan *full = new_chan(sizeof(int), 2);
    for (int i = 0; i < 2; i++) CHECK_EQ(cc_chan_send(full, &i, sizeof i), 0);
    expect_panic(no_arm, full, "CC_WHEN: the arm that was executed is not found again: a condition");
    CHECK_EQ(cc_try(later_arms, full, NULL), 0);
    cc_chan_free(full);
    expect_panic(wrong_size, ch, "CC_WHEN: arm 2 of 2: the pointer is NULL, or does not point to a value");
    expect_panic(no_task, NULL, "CC_WHEN: arm 1 of 1: there is no task");
    expect_panic(no_ticker, &(CCTicker){.period = 0}, "arm 1 of 1: there is no task; or no ticker");
    expect_panic(no_ticker, NULL, "CC_WHEN: arm 1 of 1: there is no task; or no ticker, which cc_ticker_init makes");
    expect_panic(no_event, NULL, "CC_WHEN: arm 1 of 1: the event is NULL");
    expect_panic(no_sem, NULL, "CC_WHEN: arm 1 of 1: the semaphore is NULL");
    expect_panic(no_process, NULL, "CC_WHEN: arm 1 of 1: the process is NULL");
    CCSem sem = CC_SEM_INIT(1);
    expect_panic(no_event_beside, &sem, "CC_WHEN: arm 2 of 2: the event is NULL");
    CHECK_EQ(cc_sem_acquire_try(&sem), 0);
    expect_panic(await_unstarted, NULL, "CC_WHEN: arm 1 of 1: there is no task: it was not started");
    expect_panic(await_awaited, NULL, "CC_WHEN: arm 1 of 1: there is no task");
    CHECK_EQ(cc_chan_close(ch), 0);
    expect_panic(no_closed, ch, "the channel of arm 1 is closed (error 32), and there is no CC_ON_CLOSED for it");
    cc_chan_free(ch);
    CCChanConfig pool = {.elem_size = sizeof(int), .capacity = 1, .on_create = create_nothing};
    ch = cc_chan_create_ex(&pool);
    expect_panic(no_closed, ch, "arm 1 is closed or has failed (error 5), and there is no CC_ON_CLOSED for it");
    cc_chan_free(ch);
    return NULL;
}

TEST_WORKERS(misuse) {
    both_contexts(misuse_body);
}

/* ---- tokens: elements without a size ---- */

static void *send_token(void *tokens) {
    CHECK_EQ(cc_chan_send(tokens, NULL, 0), 0);
    return NULL;
}

static void *tokens_body(void *unused) {
    (void)unused;
    CCChan *tokens = new_chan(0, 1), *values = new_chan(sizeof(int), 1);
    int v = 0, received = 0, sent = 0, closed = 0, status = -1;
    for (int i = 0; i < 2; i++) { /* sends, then receives: there is room for one */
        CC_WHEN {
            CC_ON_RECV(tokens, NULL) {
                received++;
            }
            CC_ON_SEND(tokens, NULL) {
                sent++;
            }
            CC_ON_RECV(values, &v) {
                CHECK(false);
            }
        }
        CHECK_EQ(sent, 1);
        CHECK_EQ(received, i);
        CHECK_EQ(cc_chan_len(tokens), 1u - (unsigned)i);
    }
    CC_MATCH(CC_RECV(values, &v, NULL), CC_SEND(tokens, NULL, &status)) {
    case 1:
        sent++;
    }
    CHECK_EQ(sent, 2);
    CHECK_EQ(status, 0);
    CCTask sender = cc_fiber_spawn_task(send_token, tokens);
    for (int i = 0; i < 2; i++) { /* the second one may be waited for */
        CC_MATCH(CC_RECV(tokens, NULL, &status), CC_AFTER_MS(10000)) {
        case 0:
            CHECK_EQ(status, 0);
            received++;
        }
    }
    CHECK_EQ(received, 3);
    CHECK_EQ(cc_task_join(&sender, NULL), 0);
    CHECK_EQ(cc_chan_close(tokens), 0);
    CC_WHEN {
        CC_ON_RECV(tokens, NULL) {
            CHECK(false);
        }
        CC_ON_CLOSED(tokens) {
            closed = CC_WHEN_ERROR;
        }
    }
    CHECK_EQ(closed, EPIPE);
    /* A value is no token, and NULL no value. */
    CCCase value = CC_RECV(tokens, &v, NULL), none = CC_RECV(values, NULL, NULL);
    size_t chosen;
    CHECK_EQ(cc_select_try(&value, 1, &chosen), EINVAL);
    CHECK_EQ(cc_select_try(&none, 1, &chosen), EINVAL);
    cc_chan_free(tokens);
    cc_chan_free(values);
    return NULL;
}

TEST_WORKERS(tokens) {
    both_contexts(tokens_body);
}
