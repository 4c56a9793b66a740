/* stuck_model.c - random programs of waits, and a model that knows which fibers get stuck: the deadlock report counts
 * exactly these, and a program in which nobody gets stuck has none.
 *
 * An actor is a fiber with a list of operations. Each object has operations that give and operations that take: a set
 * and a wait, a release and an acquire, a send and a receive. Whether an actor gets stuck depends on the lists alone,
 * not on the schedule: nothing that was given is lost, and where a take consumes what was given, one actor takes.
 */
#include "../programs/where.h"
#include "stress.h"

#include "base/inspect.h"

enum { ACTORS = 6, OPS = 8, OBJECTS = 2, PAIRS = 3 };

/* The operations. From SET on, each pair is one that gives and one that takes; at a meeting, a join and a barrier both
 * sides wait. */
enum kind {
    SLEEP,
    SET, /* an event */
    WAIT,
    RELEASE, /* a semaphore */
    ACQUIRE,
    SEND, /* a channel with room for all */
    RECV,
    MEET_SEND, /* a channel without a buffer */
    MEET_RECV,
    DONE_ONE, /* a wait group */
    WAIT_ALL,
    JOIN,
    BARRIER,
    WAKE, /* a wake key */
    WAIT_KEY,
    FILL, /* a oneshot */
    READ,
    CHANGE, /* a CCLatest */
    WATCH,
    UNLOCK, /* a mutex that is locked at first */
    LOCK,
    NOTIFY, /* a condition */
    AWAIT,
    KINDS
};

struct op {
    int kind, object;
    bool by_select;
    CCTask task; /* JOIN */
};

struct actor {
    int count, at, reached; /* at: in the model; reached: in the program */
    struct op op[OPS];
    CCTask task;
};

static struct actor actors[ACTORS];
static int actor_count, stuck;
static int owner[KINDS][OBJECTS]; /* the one actor that may do this; -1: none so far */
static int group_size[OBJECTS], parties[OBJECTS];

/* ---- the program's objects ---- */

static struct objects {
    CCEvent event;
    CCSem sem;
    CCChan *roomy, *meeting;
    CCWaitGroup group;
    CCBarrier barrier;
    CCWakeKey key;
    CCOneshot oneshot;
    CCLatest *latest;
    CCMutex lock, mutex;
    CCCond cond;
    bool notified;
} objects[OBJECTS];
static CCBarrier all_started;
static CCNursery *everybody;
static atomic_int reports, reported;

/* ---- random lists ---- */

/* Whether the actor may do this, so that the outcome does not depend on the schedule. */
static bool is_for(int a, struct op *op) {
    int *only = &owner[op->kind][op->object];
    bool first = *only < 0;
    switch (op->kind) {
    case WAIT_KEY: /* a key has one wait, and the lock one unlock, by the actor that locks it before it starts */
    case UNLOCK:
        if (!first) return false;
        *only = a;
        return true;
    case ACQUIRE:
    case RECV:
    case MEET_SEND:
    case MEET_RECV:
        if (first) *only = a;
        return *only == a;
    case JOIN:
        op->object = (a + 1 + op->object) % actor_count;
        return op->object != a;
    default:
        return true;
    }
}

/* A program has a few kinds of operations, so that each meets its counterpart. */
static void make_lists(uint64_t *rng) {
    int first[PAIRS];
    memset(actors, 0, sizeof actors);
    for (int i = 0; i < PAIRS; i++) first[i] = SET + 2 * (int)below(rng, (KINDS - SET) / 2);
    actor_count = 2 + (int)below(rng, ACTORS - 1);
    for (int o = 0; o < OBJECTS; o++) {
        group_size[o] = parties[o] = below(rng, 8) == 0; /* one that never comes */
        for (int kind = 0; kind < KINDS; kind++) owner[kind][o] = -1;
    }
    for (int a = 0; a < actor_count; a++) {
        bool met[OBJECTS] = {false};
        for (uint64_t left = below(rng, OPS + 1); left > 0; left--) {
            struct op op = {.object = (int)below(rng, OBJECTS), .by_select = below(rng, 2) == 0};
            op.kind = below(rng, 8) == 0 ? SLEEP : first[below(rng, PAIRS)] + (int)below(rng, 2);
            if (!is_for(a, &op) || (op.kind == BARRIER && met[op.object])) continue;
            if (op.kind == BARRIER) parties[op.object]++, met[op.object] = true;
            if (op.kind == DONE_ONE) group_size[op.object]++;
            actors[a].op[actors[a].count++] = op;
        }
    }
}

/* ---- the model ---- */

static const struct op *current(int a) {
    return actors[a].at < actors[a].count ? &actors[a].op[actors[a].at] : NULL;
}

/* a: -1 for nobody. */
static bool is_at(int a, int kind, int object) {
    const struct op *op = a >= 0 ? current(a) : NULL;
    return op != NULL && op->kind == kind && op->object == object;
}

/* How many of these operations have been completed. */
static int completed(int kind, int object) {
    int n = 0;
    for (int a = 0; a < actor_count; a++)
        for (int i = 0; i < actors[a].at; i++) n += actors[a].op[i].kind == kind && actors[a].op[i].object == object;
    return n;
}

static int arrived(int object) {
    int n = completed(BARRIER, object);
    for (int a = 0; a < actor_count; a++) n += is_at(a, BARRIER, object);
    return n;
}

static bool can_go_on(int a) {
    const struct op *op = current(a);
    int o = op->object;
    switch (op->kind) {
    case ACQUIRE:
        return completed(RELEASE, o) > completed(ACQUIRE, o);
    case RECV:
        return completed(SEND, o) > completed(RECV, o);
    case MEET_SEND: /* the other side is there, or is past this meeting already */
        return completed(MEET_RECV, o) + is_at(owner[MEET_RECV][o], MEET_RECV, o) > completed(MEET_SEND, o);
    case MEET_RECV:
        return completed(MEET_SEND, o) + is_at(owner[MEET_SEND][o], MEET_SEND, o) > completed(MEET_RECV, o);
    case WAIT_ALL:
        return completed(DONE_ONE, o) == group_size[o];
    case JOIN:
        return current(o) == NULL;
    case BARRIER:
        return arrived(o) == parties[o];
    case LOCK:
        return owner[UNLOCK][o] < 0 || owner[UNLOCK][o] == a || completed(UNLOCK, o) > 0;
    case WAIT:
    case WAIT_KEY:
    case READ:
    case WATCH:
    case AWAIT:
        return completed(op->kind - 1, o) > 0;
    default:
        return true;
    }
}

static void run_model(void) {
    for (bool news = true; news;) {
        news = false;
        for (int a = 0; a < actor_count; a++)
            for (; current(a) != NULL && can_go_on(a); news = true) actors[a].at++;
    }
    stuck = 0;
    for (int a = 0; a < actor_count; a++) stuck += current(a) != NULL;
}

/* ---- the program ---- */

static int choose(CCCase c) {
    CCEvent never = {0};
    CCCase cases[] = {CC_EVENT_CASE(&never), c};
    size_t chosen;
    int rc = cc_select(cases, 2, CC_FOREVER, &chosen);
    return rc != 0 ? rc : cases[chosen].error;
}

static int await_condition(struct objects *at) {
    int rc = cc_mutex_lock_uncancellable(&at->mutex);
    while (rc == 0 && !at->notified) rc = cc_cond_wait(&at->cond, &at->mutex);
    cc_mutex_unlock(&at->mutex);
    return rc;
}

static int notify_condition(struct objects *at) {
    cc_mutex_lock_uncancellable(&at->mutex);
    at->notified = true;
    cc_mutex_unlock(&at->mutex);
    return cc_cond_broadcast(&at->cond);
}

static int lock_and_unlock(int a, int o) {
    if (owner[UNLOCK][o] == a) return 0;
    int rc = cc_mutex_lock(&objects[o].lock);
    if (rc == 0) cc_mutex_unlock(&objects[o].lock);
    return rc;
}

static int perform_take(int a, struct op *op, struct objects *at) {
    int value = 0;
    uint64_t seen = 1;
    switch (op->kind) {
    case WAIT:
        return op->by_select ? choose((CCCase)CC_EVENT_CASE(&at->event)) : cc_event_wait(&at->event);
    case ACQUIRE:
        return op->by_select ? choose((CCCase)CC_ACQUIRE_CASE(&at->sem)) : cc_sem_acquire(&at->sem);
    case RECV:
        return op->by_select ? choose((CCCase)CC_RECV(at->roomy, &value, NULL))
                             : cc_chan_recv(at->roomy, &value, sizeof value);
    case MEET_RECV:
        return op->by_select ? choose((CCCase)CC_RECV(at->meeting, &value, NULL))
                             : cc_chan_recv(at->meeting, &value, sizeof value);
    case WAIT_ALL:
        return cc_wait_group_wait(&at->group);
    case JOIN:
        return op->by_select ? choose((CCCase)CC_JOIN(&op->task, NULL, NULL)) : cc_task_join(&op->task, NULL);
    case BARRIER:
        return cc_barrier_wait(&at->barrier);
    case WAIT_KEY:
        return op->by_select ? choose((CCCase)CC_KEY_CASE(at->key, NULL, NULL)) : cc_wake_key_wait(at->key, NULL);
    case READ:
        return cc_oneshot_recv(&at->oneshot, NULL, NULL, 0);
    case WATCH:
        return cc_latest_wait(at->latest, &seen, &value, sizeof value);
    case LOCK:
        return lock_and_unlock(a, op->object);
    default:
        return await_condition(at);
    }
}

static int perform(int a, struct op *op) {
    struct objects *at = &objects[op->kind == JOIN ? 0 : op->object];
    int value = 0;
    switch (op->kind) {
    case SLEEP:
        return cc_sleep_until(cc_after_ns(100000));
    case SET:
        return cc_event_set(&at->event);
    case RELEASE:
        return cc_sem_release(&at->sem, 1);
    case SEND:
        return cc_chan_send(at->roomy, &value, sizeof value);
    case MEET_SEND:
        return op->by_select ? choose((CCCase)CC_SEND(at->meeting, &value, NULL))
                             : cc_chan_send(at->meeting, &value, sizeof value);
    case DONE_ONE:
        return cc_wait_group_done(&at->group);
    case WAKE:
        MAY_FAIL(cc_wake(at->key, 1)); /* it may have been woken before */
        return 0;
    case FILL:
        MAY_FAIL(cc_oneshot_send(&at->oneshot, NULL, NULL, 0));
        return 0;
    case CHANGE:
        return cc_latest_set(at->latest, &value, sizeof value);
    case UNLOCK:
        return cc_mutex_unlock(&at->lock);
    case NOTIFY:
        return notify_condition(at);
    default:
        return perform_take(a, op, at);
    }
}

static void *act(void *arg) {
    struct actor *self = arg;
    int a = (int)(self - actors), rc = 0;
    for (int o = 0; o < OBJECTS; o++)
        if (owner[UNLOCK][o] == a) CHECK_EQ(cc_mutex_lock(&objects[o].lock), 0);
    CHECK_EQ(cc_barrier_wait(&all_started), 0);
    while (self->reached < self->count && (rc = perform(a, &self->op[self->reached])) == 0) self->reached++;
    CHECK(rc == 0 || rc == ECANCELED);
    return NULL;
}

/* ---- a run ---- */

static bool note_report(const char *report, void *arg) {
    (void)arg;
    int n = -1;
    CHECK_EQ(sscanf(report, "ccc: deadlock: %d", &n), 1);
    atomic_store(&reported, n);
    atomic_fetch_add(&reports, 1);
    CHECK_EQ(cc_nursery_cancel(everybody), 0);
    return false;
}

static void make_objects(void) {
    int value = 0;
    memset(objects, 0, sizeof objects);
    for (int o = 0; o < OBJECTS; o++) {
        struct objects *at = &objects[o];
        at->roomy = cc_chan_create(sizeof(int), ACTORS * OPS);
        at->meeting = cc_chan_create(sizeof(int), 0);
        at->latest = cc_latest_create(&value, sizeof value);
        at->barrier = (CCBarrier)CC_BARRIER_INIT((uint32_t)(parties[o] > 0 ? parties[o] : 1));
        CHECK(at->roomy != NULL && at->meeting != NULL && at->latest != NULL);
        CHECK_EQ(cc_wake_key_open(&at->key), 0);
        CHECK_EQ(cc_wait_group_add(&at->group, group_size[o]), 0);
    }
    all_started = (CCBarrier)CC_BARRIER_INIT((uint32_t)actor_count + 1);
}

static void free_objects(void) {
    for (int o = 0; o < OBJECTS; o++) {
        cc_chan_free(objects[o].roomy);
        cc_chan_free(objects[o].meeting);
        cc_latest_free(objects[o].latest);
        MAY_FAIL(cc_wake_key_close(objects[o].key)); /* it has expired if it was waited for */
    }
}

static void *run_actors(void *arg) {
    int rc;
    make_objects();
    CC_NURSERY(n, .result = &rc) {
        everybody = n;
        for (int a = 0; a < actor_count; a++)
            CHECK_EQ(cc_nursery_spawn_ex(n, &actors[a].task, act, &actors[a], NULL), 0);
        for (int a = 0; a < actor_count; a++)
            for (int i = 0; i < actors[a].count; i++)
                if (actors[a].op[i].kind == JOIN)
                    CHECK_EQ(cc_task_dup(&actors[actors[a].op[i].object].task, &actors[a].op[i].task), 0);
        CHECK_EQ(cc_barrier_wait(&all_started), 0);
    }
    for (int a = 0; a < actor_count; a++) {
        CHECK_EQ(cc_task_detach(&actors[a].task), 0);
        for (int i = 0; i < actors[a].count; i++)
            if (actors[a].op[i].task.id != 0) CHECK_EQ(cc_task_detach(&actors[a].op[i].task), 0);
    }
    free_objects();
    return arg;
}

/* The number of actors that got stuck. */
static int run_one(uint64_t seed, bool simulated) {
    uint64_t rng = seed;
    make_lists(&rng);
    run_model();
    atomic_store(&reports, 0);
    if (simulated)
        CHECK_EQ(cc_sim_run(seed, run_actors, NULL, NULL), 0);
    else
        CHECK_EQ(cc_run(run_actors, NULL, NULL), 0);
    for (int a = 0; a < actor_count; a++)
        if (actors[a].reached != actors[a].at)
            test_fail(__FILE__, __LINE__, "seed %llu: actor %d reached operation %d instead of %d",
                      (unsigned long long)seed, a, actors[a].reached, actors[a].at);
    CHECK_EQ(atomic_load(&reports), stuck > 0);
    if (stuck > 0) CHECK_EQ(atomic_load(&reported), stuck + 1); /* and the fiber that waits for all */
    return stuck;
}

static void run_many(long rounds, bool simulated) {
    uint64_t rng = test_seed(), dead = 0;
    if (cc__inspect_missing() != NULL) SKIP("deadlocks are not searched for");
    cc_on_deadlock(note_report, NULL);
    for (long i = 0; i < rounds; i++) dead += run_one(test_random(&rng) | 1, simulated) > 0;
    test_count("programs", (uint64_t)rounds);
    test_count("deadlocks", dead);
    CHECK(rounds < 100 || (dead > 0 && dead < (uint64_t)rounds));
}

TEST(simulated, .timeout = 300) {
    run_many(test_rounds(1000, 30000), true);
}

TEST_WORKERS(on_workers, .timeout = 300) {
    if (under_qemu() || UNDER_TSAN) SKIP("there are threads of the tool's own in the process");
    run_many(test_rounds(4, 200), false);
    finish();
}
