/* wait_object.c - waits with deadlines on an object without the runtime's lock end exactly once: a token is handed over
 * or the wait times out, never both, never neither.
 *
 * The object is a semaphore that hands tokens over: a release looks for a waiter and wakes it by cc__waiter_wake; only
 * if that has ended the wait, the token is handed over. A wake that is lost or counted twice results in a token too few
 * or too many. */
#include "stress.h"

struct semaphore {
    pthread_mutex_t mutex; /* held across no switch */
    struct link waiting;
    int tokens;
};

static bool semaphore_try(struct semaphore *s) {
    pthread_mutex_lock(&s->mutex);
    bool got = s->tokens > 0;
    if (got) s->tokens--;
    pthread_mutex_unlock(&s->mutex);
    return got;
}

static int semaphore_publish(void *object, struct waiter *waiter, void *io) {
    struct semaphore *s = object;
    (void)io;
    pthread_mutex_lock(&s->mutex);
    bool got = s->tokens > 0; /* one came after the first check */
    if (got) {
        s->tokens--;
    } else {
        cc__list_push_back(&s->waiting, &waiter->link);
    }
    pthread_mutex_unlock(&s->mutex);
    if (got) CHECK(cc__waiter_wake(waiter, WAKE_OBJECT)); /* nobody else knows the wait yet */
    return 0;
}

static void semaphore_unpublish(void *object, struct waiter *waiter) {
    struct semaphore *s = object;
    pthread_mutex_lock(&s->mutex);
    if (cc__get(&waiter->link.next) != NULL) cc__list_remove(&waiter->link);
    pthread_mutex_unlock(&s->mutex);
}

static const struct waitable_ops semaphore_ops = {semaphore_publish, semaphore_unpublish};

static void semaphore_give(struct semaphore *s) {
    pthread_mutex_lock(&s->mutex);
    bool handed = false;
    while (!handed && !cc__list_empty(&s->waiting)) {
        struct waiter *waiter = container_of(cc__list_pop_front(&s->waiting), struct waiter, link);
        cc__set(&waiter->link.next, NULL);             /* in no list */
        handed = cc__waiter_wake(waiter, WAKE_OBJECT); /* false: it timed out first */
    }
    if (!handed) s->tokens++;
    pthread_mutex_unlock(&s->mutex);
}

struct contest {
    struct semaphore semaphore;
    int tokens;
    atomic_int inside; /* hold a token now */
    atomic_long got, timed_out;
};

struct contestant {
    struct contest *contest;
    uint64_t seed;
    long rounds;
};

static void *contestant_main(void *arg) {
    struct contestant *self = arg;
    struct contest *c = self->contest;
    uint64_t rng = self->seed;
    for (long i = 0; i < self->rounds; i++) {
        uint64_t patience = below(&rng, 3);
        uint64_t deadline = patience == 0 ? WAIT_FOREVER : cc_now_ns() + below(&rng, patience == 1 ? 2000 : 100000);
        int rc = 0;
        if (!semaphore_try(&c->semaphore))
            rc = cc__fiber_wait(&c->semaphore, NULL, &semaphore_ops, deadline, PARK_MUTEX);
        if (rc == ETIMEDOUT) {
            CHECK(deadline != WAIT_FOREVER && cc_now_ns() >= deadline);
            atomic_fetch_add(&c->timed_out, 1);
            cc_yield();
            continue;
        }
        CHECK_EQ(rc, 0);
        CHECK(atomic_fetch_add(&c->inside, 1) < c->tokens);
        atomic_fetch_add(&c->got, 1);
        if (below(&rng, 4) == 0) cc_yield();
        if (below(&rng, 16) == 0) compute_ns(below(&rng, 10000));
        CHECK(atomic_fetch_sub(&c->inside, 1) > 0);
        semaphore_give(&c->semaphore);
    }
    return NULL;
}

static void contest(int tokens, long rounds) {
    enum { FIBERS = 24, THREADS = 3 };
    struct contest *c = allocate(1, sizeof *c);
    CHECK_EQ(pthread_mutex_init(&c->semaphore.mutex, NULL), 0);
    cc__list_init(&c->semaphore.waiting);
    c->semaphore.tokens = c->tokens = tokens;
    uint64_t rng = test_seed();
    struct contestant all[FIBERS + THREADS];
    CCTask fibers[FIBERS];
    pthread_t threads[THREADS];
    for (int i = 0; i < FIBERS + THREADS; i++) all[i] = (struct contestant){c, test_random(&rng), rounds};
    for (int i = 0; i < FIBERS; i++) fibers[i] = spawn(contestant_main, &all[i]);
    for (int i = 0; i < THREADS; i++) threads[i] = start_thread(contestant_main, &all[FIBERS + i]);
    for (int i = 0; i < FIBERS; i++) join(fibers[i]);
    for (int i = 0; i < THREADS; i++) join_thread(threads[i]);
    finish();
    printf("%ld got a token, %ld gave up\n", atomic_load(&c->got), atomic_load(&c->timed_out));
    CHECK_EQ(atomic_load(&c->got) + atomic_load(&c->timed_out), rounds * (FIBERS + THREADS));
    CHECK_EQ(c->semaphore.tokens, tokens);
    CHECK(cc__list_empty(&c->semaphore.waiting));
    pthread_mutex_destroy(&c->semaphore.mutex);
    free(c);
}

TEST_WORKERS(one_token) {
    contest(1, test_rounds(8000, 800000));
}

TEST_WORKERS(three_tokens) {
    contest(3, test_rounds(15000, 1500000));
}
