/* meeting.c - semaphore, wait group, once, event and barrier among several. */
#include "looking.h"

/* ---- semaphore ---- */

struct pool {
    CCSem sem;
    atomic_int inside, most;
    long each;
};

static void *use_pool(void *arg) {
    struct pool *p = arg;
    for (long i = 0; i < p->each; i++) {
        if (i % 5 == 2) {
            if (cc_sem_acquire_until(&p->sem, cc_after_ns(2000)) != 0) continue;
        } else if (i % 5 == 3) {
            if (cc_sem_acquire_try(&p->sem) != 0) continue;
        } else {
            CHECK_EQ(cc_sem_acquire(&p->sem), 0);
        }
        int inside = atomic_fetch_add(&p->inside, 1) + 1;
        CHECK(inside <= 3);
        if (i % 8 == 0) cc_yield();
        atomic_fetch_sub(&p->inside, 1);
        CHECK_EQ(cc_sem_release(&p->sem, 1), 0);
    }
    return NULL;
}

static void pool_with(enum parties who, size_t unused) {
    (void)unused;
    struct pool p = {.sem = CC_SEM_INIT(3), .each = test_scale(4000)};
    struct party parties[8];
    for (int i = 0; i < 8; i++) parties[i] = party_start(who, i, use_pool, &p);
    parties_end(parties, 8);
    CHECK_EQ(p.sem.word, 3);
    CHECK_EQ(queued(&p.sem), 0);
}

TEST_WORKERS(sem_never_more_than_permits) {
    for_each_kind(pool_with, 0);
}

static CCSem sem;
static atomic_int order;

static void *acquire_in_turn(void *turn) {
    CHECK_EQ(cc_sem_acquire(&sem), 0);
    CHECK_EQ(atomic_fetch_add(&order, 1), (intptr_t)turn);
    return NULL;
}

/* And who comes by does not overtake. */
TEST_WORKERS(sem_first_come_first_served) {
    CCTask tasks[8];
    for (int i = 0; i < 8; i++) {
        tasks[i] = cc_fiber_spawn_task(acquire_in_turn, (void *)(intptr_t)i);
        await_queued(&sem, i + 1);
    }
    for (int i = 0; i < 8; i++) {
        CHECK_EQ(cc_sem_release(&sem, 1), 0);
        CHECK_EQ(cc_sem_acquire_try(&sem), EAGAIN);
        CHECK_EQ(cc_task_join(&tasks[i], NULL), 0);
    }
    CHECK_EQ(cc_sem_acquire_try(&sem), EAGAIN);
}

static void *acquire_any(void *unused) {
    CHECK_EQ(cc_sem_acquire(&sem), 0);
    return unused;
}

static void many_with(enum parties who, size_t unused) {
    (void)unused;
    struct party parties[5];
    for (int i = 0; i < 5; i++) parties[i] = party_start(who, i, acquire_any, NULL);
    await_queued(&sem, 5);
    CHECK_EQ(cc_sem_release(&sem, 7), 0);
    parties_end(parties, 5);
    CHECK_EQ(sem.word & CC_SEM_MAX, 2);
    CHECK_EQ(cc_sem_release(&sem, CC_SEM_MAX - 1), EOVERFLOW);
    CHECK_EQ(cc_sem_release(&sem, 1), 0); /* with what was left beside the mark (SEM-3) */
    CHECK_EQ(cc_sem_acquire_try(&sem), 0);
    CHECK_EQ(cc_sem_acquire(&sem), 0);
    CHECK_EQ(cc_sem_acquire_until(&sem, cc_after_ns(0)), 0);
    CHECK_EQ(sem.word, 0);
    CHECK_EQ(cc_sem_acquire_try(&sem), EAGAIN);
}

TEST_WORKERS(sem_many_at_once) {
    for_each_kind(many_with, 0);
}

/* ---- wait group ---- */

struct part {
    CCWaitGroup *group;
    long written; /* not atomic: the group orders it */
};

static void *work_a_part(void *arg) {
    struct part *p = arg;
    p->written++;
    CHECK_EQ(cc_wait_group_done(p->group), 0);
    return NULL;
}

/* Round after round on one group; what the workers wrote is there when the wait returns. */
static void reuse_with(enum parties who, size_t unused) {
    (void)unused;
    CCWaitGroup group = {0};
    struct part parts[6] = {{0}};
    for (long round = 1; round <= test_rounds(300, 100000); round++) {
        struct party parties[6];
        CHECK_EQ(cc_wait_group_add(&group, 6), 0);
        for (int i = 0; i < 6; i++) {
            parts[i].group = &group;
            parties[i] = party_start(who, i, work_a_part, &parts[i]);
        }
        CHECK_EQ(cc_wait_group_wait(&group), 0);
        for (int i = 0; i < 6; i++) CHECK_EQ(parts[i].written, round);
        parties_end(parties, 6);
    }
}

static void *reuse_in_fiber(void *unused) {
    reuse_with(FIBERS, 0);
    reuse_with(MIXED, 0);
    return unused;
}

TEST_WORKERS(group_round_after_round, .timeout = 120) {
    for_each_kind(reuse_with, 0);
    CHECK_EQ(cc_run(reuse_in_fiber, NULL, NULL), 0);
}

/* On the stack of the one who waits, gone when the wait returns. */
static void *count_down(void *group) {
    CHECK_EQ(cc_wait_group_done(group), 0);
    return NULL;
}

static void gone_with(enum parties who, size_t unused) {
    (void)unused;
    for (long round = 0; round < test_rounds(500, 100000); round++) {
        CCWaitGroup *group = calloc(1, sizeof *group);
        struct party parties[3];
        CHECK(group != NULL);
        CHECK_EQ(cc_wait_group_add(group, 3), 0);
        for (int i = 0; i < 3; i++) parties[i] = party_start(who, i, count_down, group);
        CHECK_EQ(cc_wait_group_wait(group), 0);
        memset(group, 0xff, sizeof *group);
        free(group);
        parties_end(parties, 3);
    }
}

TEST_WORKERS(group_gone_after_the_wait) {
    for_each_kind(gone_with, 0);
}

/* ---- once ---- */

struct init {
    CCOnce once;
    CCEvent go_on;
    int value;
};

static void begin(void *arg) {
    struct init *i = arg;
    CHECK_EQ(cc_event_wait(&i->go_on), 0); /* until the others wait */
    i->value++;
}

static void *need_it(void *arg) {
    struct init *i = arg;
    CHECK_EQ(cc_once(&i->once, begin, i), 0);
    CHECK_EQ(i->value, 1);
    return NULL;
}

static void once_with(enum parties who, size_t unused) {
    (void)unused;
    struct init init = {.value = 0};
    struct party parties[8];
    for (int i = 0; i < 8; i++) parties[i] = party_start(who, i, need_it, &init);
    await_queued(&init.once, 7);
    CHECK_EQ(cc_event_set(&init.go_on), 0);
    parties_end(parties, 8);
    CHECK_EQ(init.value, 1);
}

TEST_WORKERS(once_for_all) {
    for_each_kind(once_with, 0);
}

/* A panic leaves the first: the others do not wait for ever, and one of them does it. */
struct retried {
    CCOnce once;
    CCEvent go_on;
    atomic_int begun, done;
};

static void panic_first(void *arg) {
    struct retried *r = arg;
    if (atomic_fetch_add(&r->begun, 1) == 0) {
        CHECK_EQ(cc_event_wait(&r->go_on), 0); /* until the others wait */
        cc_panic("not this time");
    }
    atomic_fetch_add(&r->done, 1);
}

static void need_once(void *arg) {
    struct retried *r = arg;
    CHECK_EQ(cc_once(&r->once, panic_first, r), 0);
    CHECK_EQ(r->done, 1);
}

static atomic_int panicked;

static void *need_and_try(void *arg) {
    CCPanic why;
    int rc = cc_try(need_once, arg, &why);
    if (rc != 0) {
        CHECK_EQ(rc, ENOTRECOVERABLE);
        CHECK_EQ(strcmp(why.message, "not this time"), 0);
        atomic_fetch_add(&panicked, 1);
    }
    return NULL;
}

static void once_again_with(enum parties who, size_t unused) {
    (void)unused;
    struct retried r = {.begun = 0};
    struct party parties[8];
    panicked = 0;
    for (int i = 0; i < 8; i++) parties[i] = party_start(who, i, need_and_try, &r);
    await_queued(&r.once, 7);
    CHECK_EQ(cc_event_set(&r.go_on), 0);
    parties_end(parties, 8);
    CHECK_EQ(panicked, 1);
    CHECK_EQ(r.begun, 2);
    CHECK_EQ(r.done, 1);
    need_once(&r);
    /* Nobody waits: the next call does it. */
    struct retried alone = {.begun = 0};
    CHECK_EQ(cc_event_set(&alone.go_on), 0);
    (void)need_and_try(&alone);
    CHECK_EQ(panicked, 2);
    need_once(&alone);
    CHECK_EQ(alone.begun, 2);
}

TEST_WORKERS(once_after_a_panic) {
    for_each_kind(once_again_with, 0);
}

/* ---- event ---- */

static void *set_event(void *event) {
    CHECK_EQ(cc_event_set(event), 0);
    return NULL;
}

static void event_gone_with(enum parties who, size_t unused) {
    (void)unused;
    for (long round = 0; round < test_rounds(500, 100000); round++) {
        CCEvent *event = calloc(1, sizeof *event);
        CHECK(event != NULL);
        struct party p = party_start(who, 0, set_event, event);
        CHECK_EQ(cc_event_wait(event), 0);
        free(event); /* the set may not even have returned */
        party_end(&p);
    }
}

static void *events_in_fiber(void *unused) {
    event_gone_with(FIBERS, 0);
    event_gone_with(THREADS, 0);
    return unused;
}

TEST_WORKERS(event_gone_after_the_wait) {
    event_gone_with(FIBERS, 0);
    event_gone_with(THREADS, 0);
    CHECK_EQ(cc_run(events_in_fiber, NULL, NULL), 0);
}

/* Those who waited at the set go on, although it is reset before they run. */
TEST_WORKERS(event_set_and_reset) {
    CCEvent e = {0};
    struct wish wishes[6];
    struct party parties[6];
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 6; i++) {
            wish_init(&wishes[i], call_event, &e, CC_FOREVER);
            parties[i] = party_start(MIXED, i, make_call, &wishes[i]);
        }
        await_queued(&e, 6);
        CHECK_EQ(cc_event_set(&e), 0);
        CHECK_EQ(cc_event_reset(&e), 0);
        CHECK_EQ(cc_event_wait_try(&e), EAGAIN);
        parties_end(parties, 6);
        for (int i = 0; i < 6; i++) CHECK_EQ(wishes[i].returned, 0);
    }
}

/* ---- barrier ---- */

enum { RACERS = 5 };

struct race {
    CCBarrier barrier;
    atomic_long at[RACERS];
    long laps;
};

struct racer {
    struct race *race;
    int index;
};

static void *run_laps(void *arg) {
    struct racer *r = arg;
    for (long lap = 1; lap <= r->race->laps; lap++) {
        atomic_store(&r->race->at[r->index], lap);
        CHECK_EQ(cc_barrier_wait(&r->race->barrier), 0);
        for (int i = 0; i < RACERS; i++) { /* all have arrived in this lap, and at most in the next */
            long at = r->race->at[i];
            CHECK(at == lap || at == lap + 1);
        }
    }
    return NULL;
}

static void race_with(enum parties who, size_t unused) {
    (void)unused;
    struct race race = {.barrier = CC_BARRIER_INIT(RACERS), .laps = test_scale(1000)};
    struct racer racers[RACERS];
    struct party parties[RACERS];
    for (int i = 0; i < RACERS; i++) {
        racers[i] = (struct racer){&race, i};
        parties[i] = party_start(who, i, run_laps, &racers[i]);
    }
    parties_end(parties, RACERS);
    CHECK_EQ(race.barrier.arrived, 0);
}

TEST_WORKERS(barrier_lap_after_lap) {
    for_each_kind(race_with, 0);
}

/* Three may pass at a time, with deadlines: those who pass, pass in threes. */
static atomic_long passed;

static void *try_to_pass(void *barrier) {
    uint64_t rng = test_seed() + (uintptr_t)&rng;
    for (long i = 0; i < test_rounds(400, 100000); i++) {
        /* Mostly just too short, on any machine; now and then long enough for three to meet. */
        int rc = cc_barrier_wait_until(barrier, cc_after_ns(test_random(&rng) % (i % 8 == 0 ? 20000000 : 20000)));
        CHECK(rc == 0 || rc == ETIMEDOUT);
        if (rc == 0) atomic_fetch_add(&passed, 1);
    }
    return NULL;
}

static void threes_with(enum parties who, size_t unused) {
    (void)unused;
    CCBarrier b = CC_BARRIER_INIT(3);
    struct party parties[7];
    atomic_store(&passed, 0);
    for (int i = 0; i < 7; i++) parties[i] = party_start(who, i, try_to_pass, &b);
    parties_end(parties, 7);
    CHECK_EQ(passed % 3, 0);
    CHECK_EQ(b.arrived, 0);
    CHECK_EQ(queued(&b), 0);
}

TEST_WORKERS(barrier_all_or_nobody) {
    for_each_kind(threes_with, 0);
}

/* A canceller: who waits leaves, and does not count. */
static CCBarrier half_full = CC_BARRIER_INIT(4);

static void *wait_in_vain(void *unused) {
    CHECK_EQ(cc_barrier_wait(&half_full), ECANCELED);
    return unused;
}

TEST_WORKERS(barrier_cancelled) {
    for (int i = 0; i < 3; i++) {
        CCTask task = cc_fiber_spawn_task(wait_in_vain, NULL);
        CHECK_EQ(cc_task_detach(&task), 0);
    }
    await_queued(&half_full, 3);
    end_by_cancelling();
    CHECK_EQ(half_full.arrived, 0);
    CHECK_EQ(queued(&half_full), 0);
}
