/* lock_mix.c - everything of cc_sync.h at once, by fibers and OS threads, with deadlines that are just too
 * short; the counters that each object guards are right in the end.
 */
#include "../battery/battery.h"

#include "lock/parking_lot.h"

enum { MUTEXES = 4, PARTIES = 12 };

struct mix {
    CCMutex mutex[MUTEXES];
    long counted[MUTEXES]; /* plain: guarded, and a race detector sees if not */
    atomic_long expected[MUTEXES];
    CCRWLock rw;
    long left, right;
    CCSem sem; /* two permits */
    CCEvent never;
    atomic_int inside;
    CCMutex box_mutex;
    CCCond filled;
    long in_box;
    atomic_long put, taken;
    CCWaitGroup group;
    long rounds;
    uint64_t gap; /* ns: about how long deadlines are */
};

struct actor {
    struct mix *mix;
    uint64_t rng;
};

static CCDeadline soon(struct actor *s) {
    return cc_after_ns(test_random(&s->rng) % s->mix->gap);
}

static bool in_time(int rc) {
    if (rc != 0 && rc != ETIMEDOUT && rc != EAGAIN) test_fail(__FILE__, __LINE__, "a lock returned %d", rc);
    return rc == 0;
}

static void maybe_switch(uint64_t r) {
    if (r % 16 == 0) cc_yield();
}

static void use_mutex(struct actor *s, uint64_t r) {
    struct mix *x = s->mix;
    size_t n = (r >> 8) % MUTEXES;
    int way = (int)(r >> 16) % 4;
    if (!in_time(way == 0   ? cc_mutex_lock_try(&x->mutex[n])
                 : way == 1 ? cc_mutex_lock_until(&x->mutex[n], soon(s))
                            : cc_mutex_lock(&x->mutex[n])))
        return;
    long seen = x->counted[n];
    maybe_switch(r >> 24);
    x->counted[n] = seen + 1;
    CHECK_EQ(cc_mutex_unlock(&x->mutex[n]), 0);
    atomic_fetch_add_explicit(&x->expected[n], 1, memory_order_relaxed);
}

static void use_rwlock(struct actor *s, uint64_t r) {
    struct mix *x = s->mix;
    bool timed = (r >> 8) % 3 == 0;
    if ((r >> 16) % 4 == 0) {
        if (!in_time(timed ? cc_rwlock_write_lock_until(&x->rw, soon(s)) : cc_rwlock_write_lock(&x->rw))) return;
        x->left++;
        maybe_switch(r >> 24);
        x->right++;
        CHECK_EQ(cc_rwlock_write_unlock(&x->rw), 0);
    } else {
        if (!in_time(timed ? cc_rwlock_read_lock_until(&x->rw, soon(s)) : cc_rwlock_read_lock(&x->rw))) return;
        CHECK_EQ(x->left, x->right);
        maybe_switch(r >> 24);
        CHECK_EQ(x->left, x->right);
        CHECK_EQ(cc_rwlock_read_unlock(&x->rw), 0);
    }
}

/* As an arm of a select, beside one that is never ready: both are linked and unlinked. */
static int select_sem(struct mix *x, CCDeadline deadline) {
    size_t chosen;
    CCCase cases[] = {CC_EVENT_CASE(&x->never), CC_ACQUIRE_CASE(&x->sem)};
    int rc = cc_select(cases, 2, deadline, &chosen);
    CHECK(rc != 0 || chosen == 1);
    return rc;
}

static void use_sem(struct actor *s, uint64_t r) {
    struct mix *x = s->mix;
    CCDeadline deadline = (r >> 8) % 3 == 0 ? soon(s) : CC_FOREVER;
    if (!in_time((r >> 20) % 2 ? select_sem(x, deadline) : cc_sem_acquire_until(&x->sem, deadline))) return;
    CHECK(atomic_fetch_add(&x->inside, 1) < 2);
    maybe_switch(r >> 24);
    atomic_fetch_sub(&x->inside, 1);
    CHECK_EQ(cc_sem_release(&x->sem, 1), 0);
}

/* Each puts one in and takes one out, so nobody waits for ever. */
static void use_box(struct actor *s, uint64_t r) {
    struct mix *x = s->mix;
    CHECK_EQ(cc_mutex_lock(&x->box_mutex), 0);
    x->in_box++;
    atomic_fetch_add_explicit(&x->put, 1, memory_order_relaxed);
    CHECK_EQ(cc_mutex_unlock(&x->box_mutex), 0);
    CHECK_EQ(cc_cond_signal(&x->filled), 0);
    maybe_switch(r >> 24);
    CHECK_EQ(cc_mutex_lock(&x->box_mutex), 0);
    while (x->in_box == 0)
        (void)in_time((r >> 8) % 2 ? cc_cond_wait_until(&x->filled, &x->box_mutex, soon(s))
                                   : cc_cond_wait(&x->filled, &x->box_mutex));
    x->in_box--;
    atomic_fetch_add_explicit(&x->taken, 1, memory_order_relaxed);
    /* A signalled waiter may find nothing, because another caller has taken it: it waits for the next signal. */
    bool more = x->in_box > 0;
    CHECK_EQ(cc_mutex_unlock(&x->box_mutex), 0);
    if (more) CHECK_EQ(cc_cond_signal(&x->filled), 0);
}

static void use_group(struct actor *s, uint64_t r) {
    struct mix *x = s->mix;
    CHECK_EQ(cc_wait_group_add(&x->group, 1), 0);
    maybe_switch(r >> 24);
    CHECK_EQ(cc_wait_group_done(&x->group), 0);
    if ((r >> 8) % 8 == 0) (void)in_time(cc_wait_group_wait_until(&x->group, soon(s)));
}

static void *do_all(void *arg) {
    struct actor *s = arg;
    for (long i = 0; i < s->mix->rounds; i++) {
        uint64_t r = test_random(&s->rng);
        switch (r % 8) {
        case 0:
            use_rwlock(s, r);
            break;
        case 1:
            use_sem(s, r);
            break;
        case 2:
            use_box(s, r);
            break;
        case 3:
            use_group(s, r);
            break;
        default:
            use_mutex(s, r);
            break;
        }
    }
    return NULL;
}

static void mix_with(unsigned workers, enum parties kind, uint64_t gap) {
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = workers}), 0);
    struct mix x = {.sem = CC_SEM_INIT(2), .rounds = test_rounds(50000, 5000000), .gap = gap};
    uint64_t rng = test_seed();
    struct actor actors[PARTIES];
    struct party parties[PARTIES];
    for (int i = 0; i < PARTIES; i++) {
        actors[i] = (struct actor){&x, test_random(&rng)};
        parties[i] = party_start(kind, i, do_all, &actors[i]);
    }
    parties_end(parties, PARTIES);
    for (int i = 0; i < MUTEXES; i++) {
        CHECK_EQ(x.counted[i], x.expected[i]);
        CHECK(x.counted[i] > 0);
        CHECK_EQ(x.mutex[i].word, 0);
    }
    CHECK_EQ(x.left, x.right);
    CHECK_EQ(x.rw.word, 0);
    CHECK_EQ(x.sem.word & CC_SEM_MAX, 2); /* a select whose time was up has perhaps left its mark */
    CHECK_EQ(x.in_box, 0);
    CHECK_EQ(x.put, x.taken);
    CHECK_EQ(x.group.word, 0);
    CHECK(x.rw.first == NULL && x.sem.first == NULL && x.never.first == NULL && x.filled.first == NULL &&
          x.group.first == NULL);
    for (int i = 0; i < 1 << BUCKETS_LOG2; i++) {
        CHECK(cc__parking_lot[i].heads == NULL);
        CHECK_EQ(cc__parking_lot[i].disabling, 0);
    }
    CHECK_EQ(cc_runtime_shutdown(10000), 0);
}

TEST(fibers_workers_1, .timeout = 120) {
    mix_with(1, FIBERS, 20000);
}

TEST(fibers_workers_2, .timeout = 120) {
    mix_with(2, FIBERS, 20000);
}

TEST(fibers_workers_8, .timeout = 120) {
    mix_with(8, FIBERS, 20000);
}

TEST(mixed, .timeout = 120) {
    mix_with(2, MIXED, 50000);
}

TEST(threads, .timeout = 120) {
    mix_with(2, THREADS, 50000);
}
