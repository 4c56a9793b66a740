/* wait_queue.c - a wait ends by its object, by its deadline, or by cancellation: by exactly one of them, and nothing is
 * lost. */
#include "waiters.h"

enum { MANY = 6 };

/* ---- what an object must provide for these tests ---- */

struct kind {
    const char *name;
    int (*call)(void *, CCDeadline);
    void (*close)(void *); /* makes everybody wait */
    void (*give)(void *);  /* releases one, or all */
    void (*after)(void *); /* what a released party does; may be NULL */
    void (*clean)(void *); /* nobody waits, nothing is left: checks that, after one more give for `all` == false */
    bool all;              /* give releases all, not one */
};

union object {
    CCMutex mutex;
    CCRWLock rw;
    CCSem sem;
    CCWaitGroup group;
    CCEvent event;
    struct watch watch;
};

static void mutex_close(void *o) {
    CHECK_EQ(cc_mutex_lock(o), 0);
}
static void mutex_give(void *o) {
    CHECK_EQ(cc_mutex_unlock(o), 0);
}
static void mutex_clean(void *o) {
    CHECK_EQ(mutex_waiters(o), 0);
    CHECK_EQ(cc_mutex_lock_try(o), 0);
    CHECK_EQ(cc_mutex_unlock(o), 0);
}

static void write_close(void *o) {
    CHECK_EQ(cc_rwlock_write_lock(o), 0);
}
static void write_give(void *o) {
    CHECK_EQ(cc_rwlock_write_unlock(o), 0);
}
static void read_after(void *o) {
    CHECK_EQ(cc_rwlock_read_unlock(o), 0);
}
static void rw_clean(void *o) {
    CHECK_EQ(queued(o), 0);
    CHECK_EQ(cc_rwlock_write_lock_try(o), 0);
    CHECK_EQ(cc_rwlock_write_unlock(o), 0);
}

static void sem_close(void *o) {
    (void)o;
}
static void sem_give(void *o) {
    CHECK_EQ(cc_sem_release(o, 1), 0);
}
static void sem_clean(void *o) { /* as many permits as are left: the caller gives one for each party */
    CHECK_EQ(queued(o), 0);
}

static void group_close(void *o) {
    CHECK_EQ(cc_wait_group_add(o, 1), 0);
}
static void group_give(void *o) {
    CHECK_EQ(cc_wait_group_done(o), 0);
}
static void group_clean(void *o) {
    CHECK_EQ(queued(o), 0);
    CHECK_EQ(cc_wait_group_wait_try(o), 0);
}

static void event_close(void *o) {
    CHECK_EQ(cc_event_reset(o), 0);
}
static void event_give(void *o) {
    CHECK_EQ(cc_event_set(o), 0);
}
static void event_clean(void *o) {
    CHECK_EQ(queued(o), 0);
    CHECK_EQ(((CCEvent *)o)->word, 1);
}

static void cond_close(void *o) {
    (void)o;
}
static void cond_give(void *o) {
    struct watch *w = o;
    CHECK_EQ(cc_mutex_lock(&w->mutex), 0);
    CHECK_EQ(cc_cond_broadcast(&w->cond), 0);
    CHECK_EQ(cc_mutex_unlock(&w->mutex), 0);
}
static void cond_clean(void *o) {
    CHECK_EQ(queued(o), 0);
    mutex_clean(&((struct watch *)o)->mutex);
}

static const struct kind kinds[] = {
    {"mutex", call_mutex, mutex_close, mutex_give, mutex_give, mutex_clean, false},
    {"write", call_write, write_close, write_give, write_give, rw_clean, false},
    {"read", call_read, write_close, write_give, read_after, rw_clean, true},
    {"sem", call_sem, sem_close, sem_give, NULL, sem_clean, false},
    {"group", call_group, group_close, group_give, NULL, group_clean, true},
    {"event", call_event, event_close, event_give, NULL, event_clean, true},
    {"cond", call_cond, cond_close, cond_give, NULL, cond_clean, true},
};

#define FOR_EACH_KIND(k) for (const struct kind *k = kinds; k < kinds + array_len(kinds); k++)

static int waiting_at(const struct kind *k, void *o) {
    return k->call == call_mutex ? mutex_waiters(o) : queued(o);
}

static void await(const struct kind *k, void *o, int n) {
    while (waiting_at(k, o) != n) cc_yield();
}

struct caller {
    struct wish wish;
    const struct kind *kind;
};

static void *make_and_undo(void *arg) {
    struct caller *c = arg;
    (void)make_call(&c->wish);
    if (c->wish.returned == 0 && c->kind->after != NULL) c->kind->after(c->wish.object);
    return NULL;
}

static void start_call(struct caller *c, struct party *p, enum parties who, int i, const struct kind *k, void *o,
                       CCDeadline d) {
    c->kind = k;
    wish_init(&c->wish, k->call, o, d);
    *p = party_start(who, i, make_and_undo, c);
}

/* ---- given ---- */

static void given_with(enum parties who, size_t with_deadline) {
    FOR_EACH_KIND(k) {
        union object o;
        memset(&o, 0, sizeof o);
        struct caller callers[MANY];
        struct party parties[MANY];
        k->close(&o);
        for (int i = 0; i < MANY; i++)
            start_call(&callers[i], &parties[i], who, i, k, &o, with_deadline ? cc_after_ms(3600 * 1000) : CC_FOREVER);
        await(k, &o, MANY);
        for (int i = 0; i < (k->call == call_sem ? MANY : 1); i++) k->give(&o);
        parties_end(parties, MANY);
        for (int i = 0; i < MANY; i++) CHECK_EQ(callers[i].wish.returned, 0);
        k->clean(&o);
    }
}

TEST_WORKERS(given) {
    for_each_kind(given_with, false);
    for_each_kind(given_with, true);
}

/* ---- timed out, with others behind them who are not ---- */

static void some_time_out_with(enum parties who, size_t unused) {
    (void)unused;
    FOR_EACH_KIND(k) {
        union object o;
        memset(&o, 0, sizeof o);
        struct caller callers[MANY];
        struct party parties[MANY];
        k->close(&o);
        for (int i = 0; i < MANY; i++)
            start_call(&callers[i], &parties[i], who, i, k, &o, i % 2 ? CC_FOREVER : cc_after_ms(2));
        for (int i = 0; i < MANY; i += 2) {
            party_end(&parties[i]);
            CHECK_EQ(callers[i].wish.returned, ETIMEDOUT);
        }
        await(k, &o, MANY / 2);
        for (int i = 0; i < (k->call == call_sem ? MANY / 2 : 1); i++) k->give(&o);
        for (int i = 1; i < MANY; i += 2) {
            party_end(&parties[i]);
            CHECK_EQ(callers[i].wish.returned, 0);
        }
        k->clean(&o);
    }
}

TEST_WORKERS(some_time_out) {
    for_each_kind(some_time_out_with, 0);
}

/* ---- at the edge: given at the very moment of the deadline ---- */

static void edge_with(enum parties who, size_t unused) {
    (void)unused;
    uint64_t rng = test_seed() + who;
    FOR_EACH_KIND(k) {
        int late = 0, in_time = 0;
        for (long round = 0; round < test_rounds(60, 20000); round++) {
            union object o;
            memset(&o, 0, sizeof o);
            struct caller callers[3];
            struct party parties[3];
            k->close(&o);
            uint64_t until = cc_now_ns() + 20000 + test_random(&rng) % 100000;
            for (int i = 0; i < 3; i++)
                start_call(&callers[i], &parties[i], who, i, k, &o, (CCDeadline){until + test_random(&rng) % 2000});
            while (cc_now_ns() < until) {
            }
            for (int i = 0; i < (k->call == call_sem ? 3 : 1); i++) k->give(&o);
            parties_end(parties, 3);
            int served = 0;
            for (int i = 0; i < 3; i++) {
                CHECK(callers[i].wish.returned == 0 || callers[i].wish.returned == ETIMEDOUT);
                served += callers[i].wish.returned == 0;
            }
            in_time += served;
            late += 3 - served;
            if (k->call == call_sem) /* the permits that nobody got are left, and no more */
                CHECK_EQ(o.sem.word, 3 - served);
            k->clean(&o);
        }
        (void)late, (void)in_time; /* how often each happens depends on the machine */
    }
}

TEST_WORKERS(given_at_the_deadline, .timeout = 120) {
    for_each_kind(edge_with, 0);
}

/* ---- cancelled ---- */

TEST_WORKERS(cancelled) {
    static union object o[array_len(kinds)];
    static struct caller callers[array_len(kinds)][MANY];
    struct party parties[array_len(kinds)][MANY];
    for (size_t n = 0; n < array_len(kinds); n++) {
        kinds[n].close(&o[n]);
        for (int i = 0; i < MANY; i++)
            start_call(&callers[n][i], &parties[n][i], FIBERS, i, &kinds[n], &o[n],
                       i % 2 ? CC_FOREVER : cc_after_ms(3600 * 1000));
        await(&kinds[n], &o[n], MANY);
        for (int i = 0; i < MANY; i++) CHECK_EQ(cc_task_detach(&parties[n][i].task), 0);
    }
    end_by_cancelling();
    for (size_t n = 0; n < array_len(kinds); n++) {
        for (int i = 0; i < MANY; i++) CHECK_EQ(callers[n][i].wish.returned, ECANCELED);
        /* No waiter is left, nothing was taken: the object serves the next caller. */
        kinds[n].give(&o[n]);
        if (kinds[n].call == call_sem) CHECK_EQ(cc_sem_acquire_try(&o[n].sem), 0);
        kinds[n].clean(&o[n]);
    }
}

/* OS threads continue to wait: they cannot be cancelled. What is given goes past the cancelled waiters to them. */
TEST(threads_are_not_cancelled) {
    FOR_EACH_KIND(k) {
        CHECK_EQ(cc_runtime_init(NULL), 0);
        union object o;
        memset(&o, 0, sizeof o);
        struct caller callers[MANY];
        struct party parties[MANY];
        k->close(&o);
        for (int i = 0; i < MANY; i++) {
            start_call(&callers[i], &parties[i], MIXED, i, k, &o, CC_FOREVER);
            if (!parties[i].is_thread) CHECK_EQ(cc_task_detach(&parties[i].task), 0);
        }
        await(k, &o, MANY);
        end_by_cancelling();
        CHECK_EQ(waiting_at(k, &o), MANY / 2);
        for (int i = 0; i < (k->call == call_sem ? MANY / 2 : 1); i++) k->give(&o);
        for (int i = 1; i < MANY; i += 2) party_end(&parties[i]);
        for (int i = 0; i < MANY; i++) CHECK_EQ(callers[i].wish.returned, i % 2 ? 0 : ECANCELED);
        k->clean(&o);
    }
}

/* ---- waits that go on although their fiber is cancelled, and leave the cancellation as it was ---- */

static CCMutex mutex;
static CCRWLock rwlock;
static CCSem sem;
static CCEvent never;
static _Atomic int got;

#define TAKES_AND_GIVES(name, take, give)                                 \
    static void *name(void *unused) {                                     \
        CHECK_EQ(take, 0);                                                \
        cc__add(&got, 1);                                                 \
        CHECK_EQ(cc_event_wait(&never), ECANCELED); /* still cancelled */ \
        CHECK_EQ(give, 0);                                                \
        return unused;                                                    \
    }
TAKES_AND_GIVES(lock_mutex, cc_mutex_lock_uncancellable(&mutex), cc_mutex_unlock(&mutex))
TAKES_AND_GIVES(lock_to_read, cc_rwlock_read_lock_uncancellable(&rwlock), cc_rwlock_read_unlock(&rwlock))
TAKES_AND_GIVES(lock_to_write, cc_rwlock_write_lock_uncancellable(&rwlock), cc_rwlock_write_unlock(&rwlock))
TAKES_AND_GIVES(acquire, cc_sem_acquire_uncancellable(&sem), cc_sem_release(&sem, 1))

enum { EACH = 3 };

/* Some are cancelled before their wait, some while it lasts; none gets anything before it is given. */
TEST_WORKERS(waits_although_cancelled) {
    CHECK_EQ(cc_mutex_lock(&mutex), 0);
    CHECK_EQ(cc_rwlock_write_lock(&rwlock), 0);
    CCTaskFn fns[] = {lock_mutex, lock_to_read, lock_to_write, acquire};
    CCTask tasks[4 * EACH];
    for (int i = 0; i < 4 * EACH; i++) {
        tasks[i] = cc_fiber_spawn_task(fns[i % 4], NULL);
        if (i % 3 == 0) CHECK_EQ(cc_task_cancel(&tasks[i]), 0);
    }
    while (mutex_waiters(&mutex) != EACH) cc_yield();
    await_queued(&rwlock, 2 * EACH);
    await_queued(&sem, EACH);
    for (int i = 0; i < 4 * EACH; i++) CHECK_EQ(cc_task_cancel(&tasks[i]), 0);
    CHECK_EQ(mutex_waiters(&mutex), EACH);
    CHECK_EQ(queued(&rwlock), 2 * EACH);
    CHECK_EQ(queued(&sem), EACH);
    CHECK_EQ(cc__get(&got), 0);
    CHECK_EQ(cc_mutex_unlock(&mutex), 0);
    CHECK_EQ(cc_rwlock_write_unlock(&rwlock), 0);
    CHECK_EQ(cc_sem_release(&sem, 1), 0);
    for (int i = 0; i < 4 * EACH; i++) CHECK_EQ(cc_task_join(&tasks[i], NULL), 0);
    CHECK_EQ(cc__get(&got), 4 * EACH);
}
