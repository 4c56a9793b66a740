/* join_apart.c - B joins A, and A waits for something that B does when its join is cancelled: this works whether A
 * started before the join or is run by it, whatever A does meanwhile and however B is cancelled. */
#include "scene.h"

#include "arch/cpu.h"

enum how { BY_HANDLE, BY_SCOPE, BY_DEADLINE };

struct pair {
    enum how how;
    bool early;    /* A starts before B joins it */
    bool computes; /* A spins */
    CCNursery *n;
    CCTask a, b;
    CCEvent begun, reacted;
    atomic_int joins, reaction;
};

static void *run_a(void *arg) {
    struct pair *p = arg;
    CHECK_EQ(cc_event_set(&p->begun), 0);
    if (p->computes)
        while (!atomic_load(&p->reaction)) cc__cpu_relax();
    else
        CC_SHIELD CHECK_EQ(cc_event_wait(&p->reacted), 0);
    return arg;
}

/* A joiner needs a free stack for the task that it runs. */
static void warm_up(void) {
    for (int i = 0; i < 8; i++) (void)cc_block_on(cc_fiber_spawn_task(nothing, NULL));
}

static int join_a(struct pair *p) {
    int rc = 0;
    atomic_store(&p->joins, 1);
    if (p->how == BY_DEADLINE)
        CC_WITH_DEADLINE(cc_after_ms(5)) rc = cc_task_join(&p->a, NULL);
    else
        rc = cc_task_join(&p->a, NULL);
    return rc;
}

static void *run_b(void *arg) {
    struct pair *p = arg;
    void *result = NULL;
    warm_up();
    CHECK_EQ(cc_nursery_spawn_ex(p->n, &p->a, run_a, p, NULL), 0);
    if (p->early) CHECK_EQ(cc_event_wait(&p->begun), 0);
    CHECK_EQ(join_a(p), ECANCELED);
    atomic_store(&p->reaction, 1);
    CHECK_EQ(cc_event_set(&p->reacted), 0);
    CC_SHIELD CHECK_EQ(cc_task_join(&p->a, &result), 0); /* the handle is still valid */
    CHECK(result == p);
    return NULL;
}

static void run_pair(struct pair p) {
    p.n = new_nursery(NULL);
    CHECK_EQ(cc_nursery_spawn_ex(p.n, &p.b, run_b, &p, NULL), 0);
    CCFiberId b = p.b.id;
    if (p.how != BY_DEADLINE) {
        UNTIL(cc_event_wait_try(&p.begun) == 0 && atomic_load(&p.joins) && is_parked(b));
        CHECK_EQ(p.how == BY_HANDLE ? cc_task_cancel(&p.b) : cc_nursery_cancel(p.n), 0);
    }
    CHECK_EQ(cc_nursery_wait(p.n), p.how == BY_SCOPE ? ECANCELED : 0);
    CHECK_EQ(cc_task_join(&p.b, NULL), 0);
    CHECK_EQ(cc_nursery_free(p.n), 0);
}

static void all_ways(bool computes) {
    for (int i = 0; i < 12; i++)
        run_pair((struct pair){.how = (enum how)(i % 3), .early = i / 3 % 2 != 0, .computes = computes});
}

static void when_a_waits(void) {
    all_ways(false);
}

TEST_WORKERS(joiner_is_cancelled_while_its_task_waits) {
    when_a_waits();
    in_fiber(when_a_waits);
}

/* B continues beside A, on another worker, which is added if necessary. */
TEST_WORKERS(joiner_is_cancelled_while_its_task_computes) {
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.max_workers = 32}), 0);
    all_ways(true);
}

/* ---- A cancels the one that runs it ---- */

static void *cancel_joiner(void *arg) {
    struct pair *p = arg;
    CHECK_EQ(cc_task_cancel(&p->b), 0);
    CC_SHIELD CHECK_EQ(cc_event_wait(&p->reacted), 0);
    return arg;
}

static void *joins_its_canceller(void *arg) {
    struct pair *p = arg;
    void *result = NULL;
    CHECK_EQ(cc_event_wait(&p->begun), 0); /* p->b is there */
    warm_up();
    CCTask a = cc_fiber_spawn_task(cancel_joiner, p);
    CHECK_EQ(cc_task_join(&a, NULL), ECANCELED);
    CHECK_EQ(cc_event_set(&p->reacted), 0);
    CC_SHIELD CHECK_EQ(cc_task_join(&a, &result), 0);
    CHECK(result == p);
    return NULL;
}

static void cancelled_by_its_task(void) {
    for (int i = 0; i < 20; i++) {
        struct pair p = {.how = BY_HANDLE};
        CCTask mine;
        p.b = cc_fiber_spawn_task(joins_its_canceller, &p);
        CHECK_EQ(cc_task_dup(&p.b, &mine), 0);
        CHECK_EQ(cc_event_set(&p.begun), 0);
        CHECK_EQ(cc_task_join(&mine, NULL), 0);
        CHECK_EQ(cc_task_detach(&p.b), 0);
    }
}

TEST_WORKERS(task_cancels_its_joiner) {
    in_fiber(cancelled_by_its_task);
}

/* ---- a chain ---- */

enum { LINKS = 50 };
static CCNursery *chain;
static CCEvent at_the_end, let_go;
static atomic_int links_ended;

/* Each joins the next; the last one waits. All are cancelled, and all but the last, which is shielded, end. */
static void *run_link(void *arg) {
    intptr_t n = (intptr_t)arg;
    if (n == LINKS) {
        CHECK_EQ(cc_event_set(&at_the_end), 0);
        CC_SHIELD CHECK_EQ(cc_event_wait(&let_go), 0);
        return NULL;
    }
    CCTask next;
    CHECK_EQ(cc_nursery_spawn_ex(chain, &next, run_link, (void *)(n + 1), NULL), 0);
    int rc = cc_task_join(&next, NULL); /* 0: it came late, and the next had been cancelled before */
    CHECK(rc == ECANCELED || (rc == 0 && n < LINKS - 1));
    if (rc != 0) CHECK_EQ(cc_task_detach(&next), 0);
    atomic_fetch_add(&links_ended, 1);
    return NULL;
}

static void cancel_a_chain(void) {
    for (int i = 0; i < 5; i++) {
        links_ended = 0;
        CHECK_EQ(cc_event_reset(&at_the_end), 0);
        CHECK_EQ(cc_event_reset(&let_go), 0);
        CCNursery *n = chain = new_nursery(NULL);
        CHECK_EQ(cc_nursery_spawn(n, run_link, NULL), 0);
        CHECK_EQ(cc_event_wait(&at_the_end), 0);
        CHECK_EQ(cc_nursery_cancel(n), 0);
        UNTIL(cc_nursery_children(n) == 1);
        CHECK_EQ(links_ended, LINKS);
        CHECK_EQ(cc_event_set(&let_go), 0);
        CHECK_EQ(cc_nursery_wait(n), ECANCELED);
        CHECK_EQ(cc_nursery_free(n), 0);
    }
}

TEST_WORKERS(chain_is_cancelled_from_the_middle) {
    cancel_a_chain();
    in_fiber(cancel_a_chain);
}
