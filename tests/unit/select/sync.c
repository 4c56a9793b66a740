/* sync.c - arms for events and permits: ready at once, waited for, in order with plain waits; a select that ends by
 * another arm leaves nothing behind. */
#include "../lock/waiters.h"
#include "arms.h"

/* ---- alone ---- */

static void *alone_body(void *unused) {
    (void)unused;
    CCEvent event = {0};
    CCSem sem = CC_SEM_INIT(1);
    int which = -1, rounds = 0;
    size_t chosen = 9;
    CCCase cases[] = {CC_EVENT_CASE(&event), CC_ACQUIRE_CASE(&sem)};
    CHECK_EQ(cc_select(cases, 2, CC_FOREVER, &chosen), 0);
    CHECK_EQ(chosen, 1);
    CHECK_EQ(cases[1].error, 0);
    CHECK_EQ(cc_select_try(cases, 2, &chosen), EAGAIN);
    CHECK_EQ(cc_select(cases, 2, past, &chosen), ETIMEDOUT);
    CCDeadline soon = cc_after_ms(2);
    CHECK_EQ(cc_select(cases, 2, soon, &chosen), ETIMEDOUT);
    CHECK(cc_now_ns() >= soon.ns);
    CHECK(queued(&event) == 0 && queued(&sem) == 0);
    /* The mark of that wait has no effect on others. */
    CHECK_EQ(cc_sem_release(&sem, 2), 0);
    CHECK_EQ(cc_sem_acquire_try(&sem), 0);
    CC_MATCH(CC_ACQUIRE_CASE(&sem), CC_EVENT_CASE(&event)) {
    case 0:
        which = 0;
        break;
    default:
        break;
    }
    CHECK_EQ(which, 0);
    CHECK_EQ(cc_sem_acquire_try(&sem), EAGAIN);
    CHECK_EQ(cc_event_set(&event), 0);
    for (; rounds < 2; rounds++) { /* it stays set */
        which = -1;
        CC_WHEN {
            CC_ON_ACQUIRE(&sem) {
                which = 0;
            }
            CC_ON_EVENT(&event) {
                which = 1;
                CHECK_EQ(CC_WHEN_ERROR, 0);
            }
        }
        CHECK_EQ(which, 1);
    }
    CHECK_EQ(cc_event_reset(&event), 0);
    CC_WHEN {
        CC_ON_ACQUIRE(&sem) {
            which = 0;
        }
        CC_ON_EVENT(&event) {
            which = 1;
        }
        CC_ON_DEFAULT() {
            which = 2;
        }
    }
    CHECK_EQ(which, 2);
    return NULL;
}

static void *malformed_body(void *unused) {
    (void)unused;
    size_t chosen;
    CCCase no_event[] = {CC_EVENT_CASE(NULL)}, no_sem[] = {CC_ACQUIRE_CASE(NULL)};
    CHECK_EQ(cc_select(no_event, 1, CC_FOREVER, &chosen), EINVAL);
    CHECK_EQ(cc_select(no_sem, 1, CC_FOREVER, &chosen), EINVAL);
    CHECK_EQ(cc_select_try(no_sem, 1, &chosen), EINVAL);
    return NULL;
}

TEST_WORKERS(alone) {
    both_contexts(alone_body);
    both_contexts(malformed_body);
}

TEST(alone_without_a_runtime) {
    (void)alone_body(NULL);
    (void)malformed_body(NULL);
    CHECK_EQ(cc_worker_count(), 0);
}

static void *simulated_body(void *unused) {
    CCEvent event = {0};
    size_t chosen;
    CCCase cases[] = {CC_EVENT_CASE(&event), CC_AFTER_MS(60 * 1000)}; /* the simulated clock passes it at once */
    CHECK_EQ(cc_select(cases, 2, CC_FOREVER, &chosen), 0);
    CHECK_EQ(chosen, 1);
    return alone_body(unused);
}

TEST(alone_in_a_simulation) {
    CHECK_EQ(cc_sim_run(7, simulated_body, NULL, NULL), 0);
}

/* ---- waits ---- */

/* A select, and how it is ended: by the release, by the set, by the value. */
static void ended_by(enum parties who, int how) {
    CCEvent event = {0};
    CCSem sem = {0};
    CCChan *ch = new_chan(sizeof(uint64_t), 1);
    uint64_t value = 0, sent = 5;
    CCCase cases[] = {CC_ACQUIRE_CASE(&sem), CC_EVENT_CASE(&event), CC_RECV(ch, &value, NULL), CC_ACQUIRE_CASE(&sem)};
    struct choice c;
    choice_init(&c, cases, 4);
    struct party p = party_start(who, 0, choose, &c);
    await_queued(&event, 1);
    CHECK_EQ(queued(&sem), 2);
    CHECK_EQ(atomic_load(&c.returned), -1);
    if (how == 0)
        CHECK_EQ(cc_sem_release(&sem, 2), 0); /* one for the first arm; the second gets nothing any more */
    else if (how == 1)
        CHECK_EQ(cc_event_set(&event), 0);
    else
        CHECK_EQ(cc_chan_send(ch, &sent, sizeof sent), 0);
    parties_end(&p, 1);
    CHECK_EQ(atomic_load(&c.returned), 0);
    CHECK_EQ(c.chosen, how);
    CHECK_EQ(cases[how].error, 0);
    CHECK_EQ(value, how == 2 ? 5 : 0);
    CHECK(queued(&event) == 0 && queued(&sem) == 0);
    CHECK_EQ(cc_sem_acquire_try(&sem), how == 0 ? 0 : EAGAIN);
    CHECK_EQ(cc_sem_acquire_try(&sem), EAGAIN);
    cc_chan_free(ch);
}

static void waits_with(enum parties who, size_t unused) {
    (void)unused;
    for (int how = 0; how < 3; how++) ended_by(who, how);
}

TEST_WORKERS(waits) {
    for_each_kind(waits_with, 0);
}

/* Plain waits and selects are in one queue, in the order of arrival. */
struct turn {
    CCSem *sem;
    CCEvent *never;
    atomic_int *order;
    int index;
};

static void *acquire_in_turn(void *arg) {
    struct turn *t = arg;
    if (t->index % 2 == 0) {
        CHECK_EQ(cc_sem_acquire(t->sem), 0);
    } else {
        size_t chosen;
        CCCase cases[] = {CC_EVENT_CASE(t->never), CC_ACQUIRE_CASE(t->sem)};
        CHECK_EQ(cc_select(cases, 2, CC_FOREVER, &chosen), 0);
        CHECK_EQ(chosen, 1);
    }
    CHECK_EQ(atomic_fetch_add(t->order, 1), t->index);
    return NULL;
}

static void in_turn_with(enum parties who, size_t unused) {
    (void)unused;
    enum { TURNS = 6 };
    CCSem sem = {0};
    CCEvent never = {0};
    atomic_int order = 0;
    struct turn turns[TURNS];
    struct party parties[TURNS];
    for (int i = 0; i < TURNS; i++) {
        turns[i] = (struct turn){&sem, &never, &order, i};
        parties[i] = party_start(who, i, acquire_in_turn, &turns[i]);
        await_queued(&sem, i + 1);
    }
    CHECK_EQ(cc_sem_acquire_try(&sem), EAGAIN);
    for (int i = 0; i < TURNS; i++) {
        CHECK_EQ(cc_sem_release(&sem, 1), 0);
        CHECK_EQ(cc_sem_acquire_try(&sem), EAGAIN); /* it was handed over */
        while (atomic_load(&order) != i + 1) cc_yield();
    }
    parties_end(parties, TURNS);
    CHECK(queued(&sem) == 0 && queued(&never) == 0);
    CHECK(sem.word == 0 && never.word == 0); /* the last one has left no mark */
}

TEST_WORKERS(first_come_first_served) {
    for_each_kind(in_turn_with, 0);
}

/* A select before a plain wait ends by another arm: the permit goes to the plain wait. */
static void passes_on(enum parties who, bool cancels) {
    CCSem sem = {0};
    CCEvent event = {0};
    size_t unused = 0;
    CCCase cases[] = {CC_ACQUIRE_CASE(&sem), CC_EVENT_CASE(&event)};
    struct choice c;
    struct wish w;
    choice_init(&c, cases, 2);
    wish_init(&w, call_sem, &sem, CC_FOREVER);
    CCNursery *n = cc_nursery_create(NULL);
    struct party p[2];
    if (cancels)
        CHECK_EQ(cc_nursery_spawn(n, choose, &c), 0);
    else
        p[0] = party_start(who, 0, choose, &c);
    await_queued(&sem, 1);
    p[1] = party_start(who, 1, make_call, &w);
    await_queued(&sem, 2);
    if (cancels)
        CHECK_EQ(cc_nursery_cancel(n), 0);
    else
        CHECK_EQ(cc_event_set(&event), 0);
    CHECK_EQ(cc_sem_release(&sem, 1), 0); /* the select may still be in the queue */
    parties_end(&p[1], 1);
    if (!cancels) parties_end(&p[0], 1);
    CHECK_EQ(cc_nursery_wait(n), cancels ? ECANCELED : 0);
    CHECK_EQ(cc_nursery_free(n), 0);
    CHECK_EQ(atomic_load(&w.returned), 0);
    CHECK_EQ(atomic_load(&c.returned), cancels ? ECANCELED : 0);
    if (!cancels) CHECK_EQ(c.chosen, 1);
    CHECK_EQ(cc_select_try(cases, 1, &unused), EAGAIN);
    CHECK(queued(&sem) == 0 && queued(&event) == 0);
}

static void passes_on_with(enum parties who, size_t unused) {
    (void)unused;
    passes_on(who, false);
    passes_on(who, true);
}

TEST_WORKERS(permit_passes_on) {
    for_each_kind(passes_on_with, 0);
}

/* ---- an island ---- */

static void *choose_there(void *arg) {
    CCTask task;
    CCIsland *island;
    CHECK_EQ(cc_island_create(&island, NULL), 0);
    CHECK_EQ(cc_island_spawn(island, &task, choose, arg, NULL), 0);
    CHECK_EQ(cc_task_join(&task, NULL), 0);
    CHECK_EQ(cc_island_free(island), 0);
    return NULL;
}

TEST_WORKERS(from_an_island) {
    CCSem sem = {0};
    CCEvent never = {0};
    CCCase cases[] = {CC_EVENT_CASE(&never), CC_ACQUIRE_CASE(&sem)};
    struct choice c;
    choice_init(&c, cases, 2);
    struct party p = party_start(FIBERS, 0, choose_there, &c);
    await_queued(&sem, 1);
    CHECK_EQ(cc_sem_release(&sem, 1), 0);
    parties_end(&p, 1);
    CHECK_EQ(atomic_load(&c.returned), 0);
    CHECK_EQ(c.chosen, 1);
}

/* ---- many ---- */

/* Whatever ends the selects: permits are neither lost nor created, and the holders exclude each other. */
struct contest {
    CCSem sem[2];
    CCEvent stop;
    atomic_int inside[2];
    long each;
    atomic_int left;
};

static void use_permit(struct contest *x, int which, bool pause) {
    CHECK(atomic_fetch_add(&x->inside[which], 1) < 2);
    if (pause) cc_yield();
    atomic_fetch_sub(&x->inside[which], 1);
    CHECK_EQ(cc_sem_release(&x->sem[which], 1), 0);
}

static void *contend(void *arg) {
    struct contest *x = arg;
    for (long i = 0; i < x->each; i++) {
        size_t chosen;
        CCCase cases[] = {CC_ACQUIRE_CASE(&x->sem[i % 2]), CC_ACQUIRE_CASE(&x->sem[1 - i % 2]),
                          CC_EVENT_CASE(&x->stop)};
        CCDeadline deadline = i % 3 == 0 ? cc_after_ns((uint64_t)(i % 7) * 1000) : CC_FOREVER;
        int rc = cc_select(cases, 3, deadline, &chosen);
        if (rc == ETIMEDOUT) continue;
        CHECK_EQ(rc, 0);
        if (chosen < 2) use_permit(x, (int)(chosen == 0 ? i % 2 : 1 - i % 2), i % 4 == 0);
    }
    if (atomic_fetch_sub(&x->left, 1) == 1) CHECK_EQ(cc_event_set(&x->stop), 0);
    return NULL;
}

static void *wait_for_stop(void *arg) {
    struct contest *x = arg;
    CCSem never = {0};
    int stopped = 0;
    CC_WHEN {
        CC_ON_ACQUIRE(&never) {
            stopped = -1;
        }
        CC_ON_EVENT(&x->stop) {
            stopped = 1;
        }
    }
    CHECK_EQ(stopped, 1);
    return NULL;
}

static void contend_with(enum parties who, size_t unused) {
    (void)unused;
    enum { MANY = 8 };
    struct contest x = {.sem = {CC_SEM_INIT(2), CC_SEM_INIT(2)}, .each = test_scale(1500)};
    struct party parties[MANY];
    atomic_init(&x.left, MANY - 2);
    for (int i = 0; i < MANY; i++) parties[i] = party_start(who, i, i < 2 ? wait_for_stop : contend, &x);
    parties_end(parties, MANY);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(x.sem[i].word & CC_SEM_MAX, 2);
        CHECK_EQ(queued(&x.sem[i]), 0);
    }
    CHECK_EQ(queued(&x.stop), 0);
}

TEST_WORKERS(contention) {
    for_each_kind(contend_with, 0);
}
