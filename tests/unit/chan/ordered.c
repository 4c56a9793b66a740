/* ordered.c - an ordered channel delivers results in the order of sending, whatever the order in which tasks end. */
#include "harness.h"

#include "../../battery/battery.h"

static CCChan *ordered_chan(size_t capacity) {
    CCChan *ch = cc_chan_create_ex(&(CCChanConfig){.ordered = true, .capacity = capacity});
    CHECK(ch != NULL);
    return ch;
}

enum { TASKS = 40 };

struct job {
    long number;
    CCChan *before; /* the token that lets it end */
    CCChan *after;  /* the token that it passes on */
    atomic_int ended;
};

/* Ends only after the next job has ended: in reverse order of sending. */
static void *late_job(void *arg) {
    struct job *job = arg;
    CHECK_EQ(cc_chan_recv(job->before, NULL, 0), 0);
    atomic_store(&job->ended, 1);
    CHECK_EQ(cc_chan_send(job->after, NULL, 0), 0);
    return (void *)(job->number + 1);
}

static void *reverse_body(void *arg) {
    size_t capacity = *(size_t *)arg;
    CCChan *ch = ordered_chan(capacity);
    static struct job jobs[TASKS];
    CCChan *gates[TASKS + 1];
    int n = capacity < TASKS ? (int)capacity : TASKS;
    for (int i = 0; i <= n; i++) gates[i] = new_chan(0, 1);
    for (int i = 0; i < n; i++) {
        jobs[i].number = i;
        jobs[i].before = gates[i + 1];
        jobs[i].after = gates[i];
        atomic_store(&jobs[i].ended, 0);
        CCTask task;
        CHECK_EQ(cc_spawn(&task, late_job, &jobs[i], NULL), 0);
        CHECK_EQ(cc_chan_send_task(ch, &task), 0);
        CHECK_EQ(task.id, 0); /* consumed */
    }
    CHECK_EQ(cc_chan_close(ch), 0);
    CHECK_EQ(cc_chan_send(gates[n], NULL, 0), 0); /* the last may end, then the one before it, … */
    void *result = NULL;
    for (int i = 0; i < n; i++) {
        CHECK_EQ(cc_chan_recv_task(ch, &result), 0);
        CHECK_EQ((long)result, i + 1);
        for (int k = i; k < n; k++) CHECK_EQ(atomic_load(&jobs[k].ended), 1); /* the later ones had ended before */
    }
    CHECK_EQ(cc_chan_recv_task(ch, &result), EPIPE);
    for (int i = 0; i <= n; i++) cc_chan_free(gates[i]);
    cc_chan_free(ch);
    return NULL;
}

TEST_WORKERS(results_in_the_order_of_sending) {
    static size_t capacities[] = {1, 3, 64};
    for (int k = 0; k < 3; k++) {
        reverse_body(&capacities[k]);
        CHECK_EQ(cc_run(reverse_body, &capacities[k], NULL), 0);
    }
}

/* ---- a pipeline with a bound on jobs in progress ---- */

static void *square(void *arg) {
    long n = (long)arg;
    if (n % 3 == 0) cc_yield();
    if (n % 5 == 0) (void)cc_sleep_until(cc_after_ns(20000));
    return (void *)(n * n);
}

struct squares {
    CCChan *ch;
    long count;
};

static void *start_squares(void *arg) {
    struct squares *s = arg;
    for (long i = 0; i < s->count; i++) {
        CCTask task = cc_fiber_spawn_task(square, (void *)i);
        CHECK(task.id != 0);
        CHECK_EQ(cc_chan_send_task(s->ch, &task), 0);
    }
    CHECK_EQ(cc_chan_close(s->ch), 0);
    return NULL;
}

static void *take_squares(void *arg) {
    struct squares *s = arg;
    void *result;
    long n = 0;
    int rc;
    for (; (rc = cc_chan_recv_task(s->ch, &result)) == 0; n++) CHECK_EQ((long)result, n * n);
    CHECK_EQ(rc, EPIPE);
    CHECK_EQ(n, s->count);
    return NULL;
}

TEST_WORKERS(pipeline) {
    static const size_t capacities[] = {0, 1, 8};
    for (int k = 0; k < 3; k++)
        for (int kind = FIBERS; kind < KINDS; kind++) {
            struct squares s = {ordered_chan(capacities[k]), test_rounds(200, 20000)};
            struct party parties[] = {party_start((enum parties)kind, 0, start_squares, &s),
                                      party_start((enum parties)kind, 1, take_squares, &s)};
            parties_end(parties, 2);
            cc_chan_free(s.ch);
        }
}

/* ---- a send that fails waits for the task instead ---- */

static void *note_end(void *arg) {
    for (int i = 0; i < 3; i++) cc_yield();
    atomic_store((atomic_int *)arg, 1);
    return NULL;
}

static void *failed_sends(void *unused) {
    (void)unused;
    CCChan *closed = ordered_chan(2), *plain = new_chan(sizeof(CCTask), 2), *targets[] = {closed, plain, NULL};
    CHECK_EQ(cc_chan_close_err(closed, EIO), 0);
    static const int errors[] = {EIO, EINVAL, EINVAL};
    for (int i = 0; i < 3; i++) {
        atomic_int ended = 0;
        CCTask task, other;
        CHECK_EQ(cc_spawn(&task, note_end, &ended, NULL), 0);
        other = task;
        CHECK_EQ(cc_chan_send_task(targets[i], &task), errors[i]);
        CHECK_EQ(ended, 1);   /* it was joined, */
        CHECK_EQ(task.id, 0); /* and the handle is used up */
        CHECK_EQ(cc_task_join(&other, NULL), ESRCH);
    }
    CCTask none = {0};
    CHECK_EQ(cc_chan_send_task(closed, &none), EINVAL);
    CHECK_EQ(cc_chan_send_task(closed, NULL), EINVAL);
    CHECK_EQ(cc_chan_len(plain), 0);
    void *result;
    CHECK_EQ(cc_chan_recv_task(NULL, &result), EINVAL);
    CHECK_EQ(cc_chan_recv_task(plain, &result), EINVAL);
    CHECK_EQ(cc_chan_recv_task(closed, &result), EIO);
    cc_chan_free(closed);
    cc_chan_free(plain);
    return NULL;
}

TEST_WORKERS(a_failed_send_joins) {
    failed_sends(NULL);
    CHECK_EQ(cc_run(failed_sends, NULL, NULL), 0);
}

struct blocked_send {
    CCChan *ch;
    atomic_int ended, returned;
};

static void *send_one_task(void *arg) {
    struct blocked_send *b = arg;
    CCTask task;
    CHECK_EQ(cc_spawn(&task, note_end, &b->ended, NULL), 0);
    int rc = cc_chan_send_task(b->ch, &task);
    CHECK_EQ(atomic_load(&b->ended), 1);
    atomic_store(&b->returned, rc);
    return NULL;
}

/* A sender that waits when the channel closes joins its task too. */
TEST_WORKERS(close_while_a_task_waits_to_be_sent) {
    for (int kind = FIBERS; kind <= THREADS; kind++) {
        struct blocked_send b = {.ch = ordered_chan(0), .returned = -1};
        struct party p = party_start((enum parties)kind, 0, send_one_task, &b);
        await_senders(b.ch, 1);
        CHECK_EQ(cc_chan_close(b.ch), 0);
        party_end(&p);
        CHECK_EQ(b.returned, EPIPE);
        cc_chan_free(b.ch);
    }
}

static void *end_slowly(void *ended) {
    CHECK_EQ(cc_sleep_until(CC_FOREVER), ECANCELED);
    for (uint64_t until = cc_now_ns() + 30 * 1000 * 1000; cc_now_ns() < until;) cc_yield();
    return note_end(ended);
}

static void *send_slow_task(void *arg) {
    struct blocked_send *b = arg;
    CCTask task;
    CHECK_EQ(cc_spawn(&task, end_slowly, &b->ended, NULL), 0);
    int rc = cc_chan_send_task(b->ch, &task);
    CHECK_EQ(atomic_load(&b->ended), 1);
    atomic_store(&b->returned, rc);
    return NULL;
}

/* A shutdown cancels the sender's join, too, and again. */
TEST_WORKERS(shutdown_while_a_task_waits_to_be_sent) {
    struct blocked_send b = {.ch = ordered_chan(0), .returned = -1};
    CHECK_EQ(cc_spawn(NULL, send_slow_task, &b, NULL), 0);
    await_senders(b.ch, 1);
    (void)cc_runtime_shutdown(0);
    CHECK_EQ(cc_runtime_shutdown(60 * 1000), 0);
    CHECK_EQ(b.returned, ECANCELED);
    cc_chan_free(b.ch);
}

/* Handles that nobody received are released with the channel: no handle leaks, no task is lost. */
TEST_WORKERS(freed_with_tasks_inside) {
    atomic_int ended[3] = {0, 0, 0};
    CCTask known[3];
    CCChan *ch = ordered_chan(4);
    for (int i = 0; i < 3; i++) {
        CCTask task;
        CHECK_EQ(cc_spawn(&task, note_end, &ended[i], NULL), 0);
        known[i] = task;
        CHECK_EQ(cc_chan_send_task(ch, &task), 0);
    }
    cc_chan_free(ch);
    for (int i = 0; i < 3; i++) CHECK_EQ(cc_task_join_try(&known[i], NULL), ESRCH); /* nobody has a handle any more */
    CHECK_EQ(cc_runtime_shutdown(10000), 0);                                        /* all have run to their end */
    for (int i = 0; i < 3; i++) CHECK_EQ(ended[i], 1);
}

/* ---- a cancelled receiver waits for no task; a cancelled sender cancels its task and waits for it ---- */

struct cancelled_call {
    CCChan *ch, *gate;
    CCTask other; /* the same handle */
    bool receives;
    int got; /* what the task's receive returned; -1: it has not ended */
};

static void *wait_at_gate(void *arg) {
    struct cancelled_call *c = arg;
    c->got = cc_chan_recv(c->gate, NULL, 0);
    return NULL;
}

static void *call_until_cancelled(void *arg) {
    struct cancelled_call *c = arg;
    CCTask task;
    CHECK_EQ(cc_spawn(&task, wait_at_gate, c, NULL), 0);
    c->other = task;
    await_receivers(c->gate, 1); /* it has started, so the caller does not run it itself */
    int rc = cc_chan_send_task(c->ch, &task);
    CHECK_EQ(task.id, 0);
    if (c->receives) {
        CHECK_EQ(rc, 0);
        void *result = &task;
        rc = cc_chan_recv_task(c->ch, &result);
        CHECK(result == &task);
    } else {
        CHECK_EQ(c->got, ECANCELED); /* it has been waited for */
    }
    CHECK_EQ(rc, ECANCELED);
    CHECK(cc_cancelled());
    return NULL;
}

TEST_WORKERS(cancelled_with_a_task) {
    for (int receives = 0; receives < 2; receives++) {
        struct cancelled_call c = {ordered_chan((size_t)receives), new_chan(0, 0), {0}, receives, -1};
        CCTask caller;
        CHECK_EQ(cc_spawn(&caller, call_until_cancelled, &c, NULL), 0);
        if (!receives) await_senders(c.ch, 1);
        await_receivers(c.gate, 1);
        CHECK_EQ(cc_task_cancel(&caller), 0);
        CHECK_EQ(cc_task_join(&caller, NULL), 0);
        CHECK_EQ(cc_task_join_try(&c.other, NULL), ESRCH); /* no handle is left */
        if (receives) {
            CHECK_EQ(cc_chan_send(c.gate, NULL, 0), 0); /* and the task goes on */
            CHECK_EQ(cc_runtime_shutdown(10000), 0);
            CHECK_EQ(c.got, 0);
        }
        check_clean(c.ch);
        cc_chan_free(c.ch);
        cc_chan_free(c.gate);
    }
}
