/* stale_names.c - tickets and ids that outlived their fiber have no effect, however often the record has been
 * reused. */
#include "stress.h"

/* ---- handles ---- */

enum { KEPT = 4096 };

struct kept {
    _Atomic uint64_t ids[KEPT]; /* of tasks that were joined */
    atomic_bool stop;
};

static void *short_life(void *arg) {
    return arg;
}

/* Makes stale ids as fast as it can; while a task lives its id is its own alone. */
static void *make_stale(void *arg) {
    struct kept *kept = arg;
    uint64_t rng = cc_fiber_id() ^ test_seed();
    long rounds = test_rounds(150000, 15000000);
    for (long i = 0; i < rounds; i++) {
        void *mine = &rng, *result = NULL;
        CCTask task = spawn(short_life, mine), copy = task;
        if (i % 4 == 0) cc_yield();
        CHECK_EQ(cc_task_join(&task, &result), 0);
        CHECK(result == mine);
        atomic_store(&kept->ids[below(&rng, KEPT)], copy.id);
    }
    return NULL;
}

/* Uses them in every call that takes one. */
static void *use_stale(void *arg) {
    struct kept *kept = arg;
    uint64_t rng = (uintptr_t)&rng ^ test_seed();
    while (!atomic_load(&kept->stop)) {
        for (int i = 0; i < 100; i++) {
            CCTask task = {atomic_load(&kept->ids[below(&rng, KEPT)])}, copy;
            if (task.id == 0) continue;
            switch (below(&rng, 5)) {
            case 0:
                CHECK_EQ(cc_task_join(&task, NULL), ESRCH);
                break;
            case 1:
                CHECK_EQ(cc_task_join_try(&task, NULL), ESRCH);
                break;
            case 2:
                CHECK_EQ(cc_task_join_until(&task, NULL, cc_after_ms(1)), ESRCH);
                break;
            case 3:
                CHECK_EQ(cc_task_detach(&task), ESRCH);
                break;
            default:
                CHECK_EQ(cc_task_dup(&task, &copy), ESRCH);
            }
            CHECK(task.id != 0);
        }
        cc_yield();
    }
    return NULL;
}

TEST_WORKERS(stale_ids_in_every_call) {
    enum { MAKERS = 4, USERS = 3 };
    struct kept *kept = allocate(1, sizeof *kept);
    CCTask makers[MAKERS], users[USERS];
    for (int i = 0; i < MAKERS; i++) makers[i] = spawn(make_stale, kept);
    for (int i = 0; i < USERS; i++) users[i] = spawn(use_stale, kept);
    pthread_t thread = start_thread(use_stale, kept);
    for (int i = 0; i < MAKERS; i++) join(makers[i]);
    atomic_store(&kept->stop, true);
    for (int i = 0; i < USERS; i++) join(users[i]);
    join_thread(thread);
    finish();
    free(kept);
}

/* Ids of random bits, most of them of records that do not exist. */
TEST_WORKERS(invented_ids_in_every_call) {
    uint64_t rng = test_seed();
    for (int i = 0; i < 100; i++) join(spawn(short_life, NULL));
    long rounds = test_rounds(2000000, 200000000);
    for (long i = 0; i < rounds; i++) {
        uint64_t id = test_random(&rng);
        if (i % 2 == 0) id = (id & ~UINT64_C(0xffffffff)) | below(&rng, 300); /* slots that exist */
        if (id == 0) continue;
        CCTask task = {id}, copy;
        int rc = i % 3 == 0   ? cc_task_detach(&task)
                 : i % 3 == 1 ? cc_task_dup(&task, &copy)
                              : cc_task_join_try(&task, NULL);
        CHECK_EQ(rc, ESRCH);
    }
    finish();
}

/* ---- tickets ---- */

struct tracked {
    struct fiber *fiber;
    uint64_t ticket;
};

struct tickets {
    pthread_mutex_t lock; /* a record and a ticket belong together */
    struct tracked seen[KEPT];
    atomic_bool stop;
    atomic_long tried;
};

static void keep_ticket(struct tickets *t, struct fiber *f, uint64_t ticket, uint64_t *rng) {
    pthread_mutex_lock(&t->lock);
    t->seen[below(rng, KEPT)] = (struct tracked){f, ticket};
    pthread_mutex_unlock(&t->lock);
}

/* One wait by ticket, properly ended; afterwards the ticket matches nothing. */
struct brief {
    struct tickets *tickets;
    struct bell bell;
    uint64_t seed;
};

static void *wait_briefly(void *arg) {
    struct brief *b = arg;
    uint64_t rng = b->seed;
    CHECK_EQ(bell_wait(&b->bell), 0);
    keep_ticket(b->tickets, atomic_load(&b->bell.fiber), atomic_load(&b->bell.ticket), &rng);
    /* Other waits follow, which the old ticket must not end. */
    CCDeadline until = cc_after_ns(below(&rng, 50000));
    CHECK_EQ(cc_sleep_until(until), 0);
    CHECK(cc_now_ns() >= until.ns);
    void *result;
    CCTask task = spawn(short_life, b);
    CHECK_EQ(cc_task_join(&task, &result), 0);
    CHECK(result == b);
    return NULL;
}

static void *collect_tickets(void *arg) {
    struct tickets *t = arg;
    uint64_t rng = cc_fiber_id() ^ test_seed();
    long rounds = test_rounds(4000, 400000);
    for (long i = 0; i < rounds; i++) {
        struct brief b = {.tickets = t, .seed = test_random(&rng)};
        CCTask task = spawn(wait_briefly, &b);
        if (i % 2 == 0) cc_yield();
        bell_ring(&b.bell);
        join(task);
    }
    return NULL;
}

static void *wake_by_old_tickets(void *arg) {
    struct tickets *t = arg;
    uint64_t rng = (uintptr_t)&rng ^ test_seed();
    while (!atomic_load(&t->stop)) {
        for (int i = 0; i < 50; i++) {
            pthread_mutex_lock(&t->lock);
            struct tracked old = t->seen[below(&rng, KEPT)];
            pthread_mutex_unlock(&t->lock);
            if (old.fiber == NULL) continue;
            CHECK(!cc__fiber_wake(old.fiber, old.ticket, WAKE_OBJECT));
            atomic_fetch_add(&t->tried, 1);
        }
        cc_yield();
    }
    return NULL;
}

TEST_WORKERS(stale_tickets_wake_nobody) {
    enum { COLLECTORS = 6, WAKERS = 2 };
    struct tickets *t = allocate(1, sizeof *t);
    CHECK_EQ(pthread_mutex_init(&t->lock, NULL), 0);
    CCTask collectors[COLLECTORS], wakers[WAKERS];
    for (int i = 0; i < COLLECTORS; i++) collectors[i] = spawn(collect_tickets, t);
    for (int i = 0; i < WAKERS; i++) wakers[i] = spawn(wake_by_old_tickets, t);
    pthread_t thread = start_thread(wake_by_old_tickets, t);
    for (int i = 0; i < COLLECTORS; i++) join(collectors[i]);
    atomic_store(&t->stop, true);
    for (int i = 0; i < WAKERS; i++) join(wakers[i]);
    join_thread(thread);
    CHECK(atomic_load(&t->tried) > 0);
    finish();
    pthread_mutex_destroy(&t->lock);
    free(t);
}
