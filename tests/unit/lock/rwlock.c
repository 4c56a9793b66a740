/* rwlock.c - readers share, writers are exclusive, and neither starves the other. */
#include "../../programs/where.h"
#include "one_worker.h"
#include "waiters.h"

/* ---- alone: the zero value, three forms, bad arguments ---- */

static void no_object(void) {
    CHECK_EQ(cc_rwlock_read_lock(NULL), EINVAL);
    CHECK_EQ(cc_rwlock_read_lock_try(NULL), EINVAL);
    CHECK_EQ(cc_rwlock_read_lock_until(NULL, CC_FOREVER), EINVAL);
    CHECK_EQ(cc_rwlock_read_unlock(NULL), EINVAL);
    CHECK_EQ(cc_rwlock_write_lock(NULL), EINVAL);
    CHECK_EQ(cc_rwlock_write_lock_try(NULL), EINVAL);
    CHECK_EQ(cc_rwlock_write_lock_until(NULL, CC_FOREVER), EINVAL);
    CHECK_EQ(cc_rwlock_write_unlock(NULL), EINVAL);
    CHECK_EQ(cc_rwlock_read_lock_uncancellable(NULL), EINVAL);
    CHECK_EQ(cc_rwlock_write_lock_uncancellable(NULL), EINVAL);
}

static void use_alone(void) {
    static CCRWLock rw;
    CHECK_EQ(cc_rwlock_read_lock(&rw), 0);
    CHECK_EQ(cc_rwlock_read_lock_try(&rw), 0);
    CHECK_EQ(cc_rwlock_write_lock_try(&rw), EAGAIN);
    times_out(call_write, &rw);
    CHECK_EQ(cc_rwlock_read_lock_until(&rw, past), 0); /* a writer that timed out blocks nobody */
    for (int i = 0; i < 3; i++) CHECK_EQ(cc_rwlock_read_unlock(&rw), 0);
    CHECK_EQ(cc_rwlock_write_lock(&rw), 0);
    CHECK_EQ(cc_rwlock_write_lock_try(&rw), EAGAIN);
    CHECK_EQ(cc_rwlock_read_lock_try(&rw), EAGAIN);
    CHECK_EQ(cc_rwlock_write_unlock(&rw), 0);
    CHECK_EQ(cc_rwlock_write_lock_until(&rw, past), 0);
    CHECK_EQ(cc_rwlock_write_unlock(&rw), 0);
    CHECK_EQ(rw.word, 0);
    CHECK(rw.first == NULL);
}

TESTS_ALONE(no_object, use_alone)

static CCRWLock rw;

/* ---- exclusion ---- */

struct pages {
    CCRWLock rw;
    long left, right; /* equal, except while a writer is inside */
    long each;
    atomic_int readers, most;
};

static void *read_and_write(void *arg) {
    struct pages *p = arg;
    for (long i = 0; i < p->each; i++) {
        if (i % 4 == 0) {
            CHECK_EQ(i % 8 ? cc_rwlock_write_lock(&p->rw) : cc_rwlock_write_lock_until(&p->rw, cc_after_ms(3600000)),
                     0);
            CHECK_EQ(p->readers, 0);
            p->left++;
            if (i % 64 == 0) cc_yield();
            p->right++;
            CHECK_EQ(cc_rwlock_write_unlock(&p->rw), 0);
        } else if (i % 4 == 1 && cc_rwlock_read_lock_until(&p->rw, cc_after_ns(2000)) != 0) {
            continue;
        } else {
            if (i % 4 != 1) CHECK_EQ(cc_rwlock_read_lock(&p->rw), 0);
            int readers = atomic_fetch_add(&p->readers, 1) + 1, most = p->most;
            if (readers > most) atomic_compare_exchange_strong(&p->most, &most, readers);
            CHECK_EQ(p->left, p->right);
            if (i % 32 == 2) cc_yield();
            atomic_fetch_sub(&p->readers, 1);
            CHECK_EQ(cc_rwlock_read_unlock(&p->rw), 0);
        }
    }
    return NULL;
}

static void exclusion_with(enum parties who, size_t unused) {
    (void)unused;
    enum { PARTIES = 8 };
    struct pages p = {.each = test_scale(4000)};
    struct party parties[PARTIES];
    for (int i = 0; i < PARTIES; i++) parties[i] = party_start(who, i, read_and_write, &p);
    parties_end(parties, PARTIES);
    CHECK_EQ(p.left, PARTIES * ((p.each + 3) / 4));
    CHECK_EQ(p.rw.word, 0);
    CHECK_EQ(queued(&p.rw), 0);
}

TEST_WORKERS(readers_or_a_writer, .timeout = 120) {
    for_each_kind(exclusion_with, 0);
}

/* ---- the queue ---- */

static atomic_int stage;

static void *write_once(void *at) {
    CHECK_EQ(cc_rwlock_write_lock(&rw), 0);
    CHECK_EQ(atomic_fetch_add(&stage, 1), (intptr_t)at);
    CHECK_EQ(cc_rwlock_write_unlock(&rw), 0);
    return NULL;
}

static CCBarrier together;

static void *read_once(void *unused) {
    CHECK_EQ(cc_rwlock_read_lock(&rw), 0);
    CHECK_EQ(cc_barrier_wait(&together), 0); /* all readers are inside, or this would hang */
    CHECK_EQ(cc_rwlock_read_unlock(&rw), 0);
    return unused;
}

/* One reader is inside; in the queue: a writer, three readers, a writer. Nobody else comes. */
TEST_WORKERS(first_come_first_served) {
    together = (CCBarrier)CC_BARRIER_INIT(3);
    CCTask tasks[5];
    CHECK_EQ(cc_rwlock_read_lock(&rw), 0);
    tasks[0] = cc_fiber_spawn_task(write_once, (void *)0);
    await_queued(&rw, 1);
    CHECK_EQ(cc_rwlock_read_lock_try(&rw), EAGAIN); /* the lock is held for reading, but a writer waits */
    for (int i = 1; i < 4; i++) {
        tasks[i] = cc_fiber_spawn_task(read_once, NULL);
        await_queued(&rw, i + 1);
    }
    tasks[4] = cc_fiber_spawn_task(write_once, (void *)1);
    await_queued(&rw, 5);
    CHECK_EQ(stage, 0);
    CHECK_EQ(cc_rwlock_read_unlock(&rw), 0);
    for (int i = 0; i < 5; i++) CHECK_EQ(cc_task_join(&tasks[i], NULL), 0);
    CHECK_EQ(stage, 2);
    CHECK_EQ(rw.word, 0);
}

/* ---- nobody starves ---- */

static atomic_bool over;

static void *read_on(void *unused) {
    while (!over) {
        CHECK_EQ(cc_rwlock_read_lock(&rw), 0);
        cc_yield(); /* another reader comes in before this one leaves: the lock is never free by itself */
        CHECK_EQ(cc_rwlock_read_unlock(&rw), 0);
    }
    return unused;
}

static void *write_on(void *unused) {
    while (!over) {
        CHECK_EQ(cc_rwlock_write_lock(&rw), 0);
        cc_yield();
        CHECK_EQ(cc_rwlock_write_unlock(&rw), 0);
    }
    return unused;
}

static void *write_some(void *arg) {
    for (int i = 0; i < 20; i++) {
        CHECK_EQ(cc_rwlock_write_lock(&rw), 0);
        CHECK_EQ(cc_rwlock_write_unlock(&rw), 0);
        cc_yield();
    }
    return arg;
}

static void *read_some(void *arg) {
    for (int i = 0; i < 20; i++) {
        CHECK_EQ(cc_rwlock_read_lock(&rw), 0);
        CHECK_EQ(cc_rwlock_read_unlock(&rw), 0);
        cc_yield();
    }
    return arg;
}

static void against(CCTaskFn others, CCTaskFn one) {
    CCTask tasks[6];
    for (int i = 0; i < 6; i++) tasks[i] = cc_fiber_spawn_task(others, NULL);
    CHECK_EQ(cc_run(one, NULL, NULL), 0);
    over = true;
    for (int i = 0; i < 6; i++) CHECK_EQ(cc_task_join(&tasks[i], NULL), 0);
}

TEST_WORKERS(a_writer_among_readers) {
    against(read_on, write_some);
}

TEST_WORKERS(a_reader_among_writers) {
    against(write_on, read_some);
}

/* ---- a caller that takes the lock again at once, each time before the waiter has run ---- */

static void *read_at_last(void *unused) {
    CHECK_EQ(cc_rwlock_read_lock(&rw), 0);
    CHECK_EQ(cc_rwlock_read_unlock(&rw), 0);
    atomic_store(&over, true);
    return unused;
}

static void *write_at_last(void *unused) {
    CHECK_EQ(cc_rwlock_write_lock(&rw), 0);
    CHECK_EQ(cc_rwlock_write_unlock(&rw), 0);
    atomic_store(&over, true);
    return unused;
}

static void *retake(void *arg) {
    CCTaskFn waits = arg == NULL ? read_at_last : write_at_last;
    over = false;
    CHECK_EQ(cc_rwlock_write_lock(&rw), 0);
    CCTask waiter = cc_fiber_spawn_task(waits, NULL);
    await_queued(&rw, 1);
    for (CCDeadline end = cc_after_ms(10000); !over && cc_now_ns() < end.ns;) {
        CHECK_EQ(cc_rwlock_write_unlock(&rw), 0);
        CHECK_EQ(cc_rwlock_write_lock(&rw), 0);
        cc_yield(); /* the waiter runs here only, if there is one worker, and finds the lock taken */
    }
    CHECK(over);
    CHECK_EQ(cc_rwlock_write_unlock(&rw), 0);
    CHECK_EQ(cc_task_join(&waiter, NULL), 0);
    return arg;
}

TEST_WORKERS(a_waiter_is_overtaken_so_often_only) {
    CHECK_EQ(cc_run(retake, NULL, NULL), 0);
    CHECK_EQ(cc_run(retake, &rw, NULL), 0);
    CHECK_EQ(rw.word, 0);
}

/* ---- many readers are overtaken ---- */

/* All readers are woken, find that the lock is taken again, and have waited for so long that they are starving. Each
 * finds its place in constant time: a search of the queue would take a minute. */
static void *overtake_many(void *unused) {
    bool cheap = !(UNDER_ASAN || UNDER_TSAN || under_valgrind() || under_qemu());
    int count = cheap ? 30000 : 300;
    CCTask *readers = calloc((size_t)count, sizeof *readers);
    CHECK(readers != NULL);
    CHECK_EQ(cc_rwlock_write_lock(&rw), 0);
    for (int i = 0; i < count; i++) readers[i] = cc_fiber_spawn_task(read_at_last, NULL);
    await_queued(&rw, count);
    CHECK_EQ(cc_rwlock_write_unlock(&rw), 0);
    CHECK_EQ(cc_rwlock_write_lock_try(&rw), 0);
    for (CCDeadline end = cc_after_ms(2); cc_now_ns() < end.ns;) {
    }
    await_queued(&rw, count);
    CHECK_EQ(cc_rwlock_write_unlock(&rw), 0);
    for (int i = 0; i < count; i++) CHECK_EQ(cc_task_join(&readers[i], NULL), 0);
    CHECK_EQ(rw.word, 0);
    free(readers);
    return unused;
}

TEST(many_are_overtaken, .timeout = 30) {
    on_one_worker(overtake_many);
}

/* ---- a writer gives up: the readers behind it have nothing to wait for ---- */

static atomic_bool gave_up;

static void *write_in_vain(void *unused) {
    CHECK_EQ(cc_rwlock_write_lock_until(&rw, cc_after_ms(20)), ETIMEDOUT);
    atomic_store(&gave_up, true);
    return unused;
}

static void gives_up_with(enum parties who, size_t unused) {
    (void)unused;
    together = (CCBarrier)CC_BARRIER_INIT(2);
    CHECK_EQ(cc_rwlock_read_lock(&rw), 0);
    atomic_store(&gave_up, false);
    struct party writer = party_start(who, 0, write_in_vain, NULL), readers[2];
    while (queued(&rw) != 1 && !gave_up) cc_yield(); /* on a slow machine it may be too late to see it */
    for (int i = 0; i < 2; i++) readers[i] = party_start(who, i + 1, read_once, NULL);
    parties_end(readers, 2); /* beside the reader that stays inside */
    party_end(&writer);
    CHECK_EQ(cc_rwlock_read_unlock(&rw), 0);
    CHECK_EQ(rw.word, 0);
}

TEST_WORKERS(a_writer_gives_up) {
    for_each_kind(gives_up_with, 0);
}

/* ---- the same, when the reader behind it gives up at the same moment, and the next is a writer ---- */

static atomic_int holding;
static CCDeadline moment;

static void *write_until_then(void *unused) {
    CHECK_EQ(cc_rwlock_write_lock_until(&rw, moment), ETIMEDOUT);
    return unused;
}

static void *read_until_then(void *unused) {
    int rc = cc_rwlock_read_lock_until(&rw, (CCDeadline){moment.ns + 1});
    if (rc == 0)
        CHECK_EQ(cc_rwlock_read_unlock(&rw), 0); /* a slow machine: the writer had left already */
    else
        CHECK_EQ(rc, ETIMEDOUT);
    return unused;
}

static void *write_alone(void *unused) {
    CHECK_EQ(cc_rwlock_write_lock(&rw), 0);
    CHECK_EQ(holding, 0);
    CHECK_EQ(cc_rwlock_write_unlock(&rw), 0);
    return unused;
}

/* One worker: both deadlines have passed before either of the two runs and leaves the queue. */
TEST(two_give_up_before_a_writer) {
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = 1}), 0);
    for (int round = 0; round < 10; round++) {
        CHECK_EQ(cc_rwlock_read_lock(&rw), 0);
        atomic_store(&holding, 1);
        moment = cc_after_ms(20);
        CCTask tasks[3];
        tasks[0] = cc_fiber_spawn_task(write_until_then, NULL);
        while (queued(&rw) != 1 && cc_now_ns() < moment.ns) cc_yield();
        tasks[1] = cc_fiber_spawn_task(read_until_then, NULL);
        while (queued(&rw) != 2 && cc_now_ns() < moment.ns) cc_yield();
        tasks[2] = cc_fiber_spawn_task(write_alone, NULL);
        for (int i = 0; i < 2; i++) CHECK_EQ(cc_task_join(&tasks[i], NULL), 0);
        await_queued(&rw, 1);
        atomic_store(&holding, 0);
        CHECK_EQ(cc_rwlock_read_unlock(&rw), 0);
        CHECK_EQ(cc_task_join(&tasks[2], NULL), 0);
    }
}

/* ---- a wait was cancelled, and its fiber has not run yet, when it would be served: the next waiter is served instead
 * ---- */

static void *write_and_unlock(void *arg) {
    (void)arg;
    int rc = cc_rwlock_write_lock(&rw);
    if (rc == 0) CHECK_EQ(cc_rwlock_write_unlock(&rw), 0);
    return result_of(rc);
}

static void write_unlock(void) {
    CHECK_EQ(cc_rwlock_write_unlock(&rw), 0);
}

static void *writers(void *arg) {
    CHECK_EQ(cc_rwlock_write_lock(&rw), 0);
    past_the_first(write_and_unlock, write_unlock);
    return arg;
}

TEST(it_goes_past_a_cancelled_writer) {
    on_one_worker(writers);
}

static void *read_and_unlock(void *arg) {
    (void)arg;
    int rc = cc_rwlock_read_lock(&rw);
    if (rc == 0) CHECK_EQ(cc_rwlock_read_unlock(&rw), 0);
    return result_of(rc);
}

/* A writer is queued between active and waiting readers; when it leaves, the waiting readers join. */
static void *readers(void *arg) {
    CHECK_EQ(cc_rwlock_read_lock(&rw), 0);
    CCTask writer = start(write_and_unlock), reader = start(read_and_unlock);
    CHECK_EQ(cc_rwlock_read_lock_try(&rw), EAGAIN);
    CHECK_EQ(cc_task_cancel(&writer), 0);
    ends_with(reader, 0);
    ends_with(writer, ECANCELED);
    CHECK_EQ(cc_rwlock_read_lock_try(&rw), 0);
    CHECK_EQ(cc_rwlock_read_unlock(&rw), 0);
    CHECK_EQ(cc_rwlock_read_unlock(&rw), 0);
    return arg;
}

TEST(readers_behind_a_writer_that_leaves) {
    on_one_worker(readers);
}
