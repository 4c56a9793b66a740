/* handles.c - a handle is consumed once, copies count, and a handle that was consumed or outlived its task is
 * detected. */
#include "harness.h"

#include "../contexts.h"
#include "../crew.h"
#include "../gate.h"
#include "task/task.h"

#include <ccc/ccc.h>
#include <errno.h>
#include <sched.h>

static void *give_back(void *arg) {
    return arg;
}

static void *wait_at(void *gate) {
    gate_wait(gate);
    return gate;
}

/* A gate that outlives every detached task. */
static struct gate *new_gate(void) {
    static struct gate gates[64];
    static int used;
    CHECK(used < 64);
    return &gates[used++];
}

/* Every call returns an error, and leaves the handle unchanged. */
static void check_gone(CCTask task) {
    CCTask before = task, copy = {99};
    void *result = &task;
    CHECK_EQ(cc_task_join(&task, &result), ESRCH);
    CHECK_EQ(cc_task_join_try(&task, &result), ESRCH);
    CHECK_EQ(cc_task_join_until(&task, &result, CC_FOREVER), ESRCH);
    CHECK_EQ(cc_task_join_until(&task, &result, CC_PASSED), ESRCH);
    CHECK_EQ(cc_task_detach(&task), ESRCH);
    CHECK_EQ(cc_task_dup(&task, &copy), ESRCH);
    CHECK_EQ(copy.id, 0);
    CHECK(cc_block_on(task) == NULL);
    CHECK(result == &task);
    CHECK(task.id == before.id);
}

/* ---- used up ---- */

static void use_up(void) {
    int x;
    CCTask task = cc_fiber_spawn_task(give_back, &x), old = task;
    CHECK_EQ(cc_task_join(&task, NULL), 0);
    CHECK_EQ(cc_task_join(&task, NULL), EINVAL); /* it is {0} now */
    CHECK_EQ(cc_task_detach(&task), EINVAL);
    check_gone(old);
    task = old = cc_fiber_spawn_task(give_back, &x);
    CHECK(cc_block_on(task) == &x);
    check_gone(old);
    /* Detached before, while or after it runs. */
    struct gate *gate = new_gate();
    task = old = cc_fiber_spawn_task(wait_at, gate);
    CHECK_EQ(cc_task_detach(&task), 0);
    CHECK_EQ(task.id, 0);
    check_gone(old);
    while (cc__get_seq(&gate->fiber) == NULL) cc_yield();
    check_gone(old);
    (void)gate_open(gate);
    check_gone(old);
}

TEST_WORKERS(used_up) {
    in_both_contexts(use_up);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0); /* detached tasks have ended by themselves */
}

/* A task in its joiner's queue could be run by the joiner; not when the handle was detached. */
static void *join_after_detach(void *arg) {
    for (long i = 0; i < test_rounds(1000, 50000); i++) {
        cc_yield(); /* a full turn */
        CCTask task = cc_fiber_spawn_task(give_back, NULL), old = task;
        CHECK_EQ(cc_task_detach(&task), 0);
        CHECK_EQ(cc_task_join(&old, NULL), ESRCH);
    }
    return arg;
}

TEST_WORKERS(consumed_before_it_ran) {
    CHECK_EQ(cc_run(join_after_detach, NULL, NULL), 0);
}

/* A handle does not match the fibers that reuse its slot, of which there are many. */
static void outlive(void) {
    int x;
    CCTask old = cc_fiber_spawn_task(give_back, &x), task = old;
    CHECK_EQ(cc_task_join(&task, NULL), 0);
    bool reused = false;
    for (int i = 0; i < 1000; i++) {
        struct gate gate = {0};
        task = cc_fiber_spawn_task(wait_at, &gate);
        reused = reused || (uint32_t)task.id == (uint32_t)old.id;
        CHECK(task.id != old.id);
        CHECK_EQ(cc_task_join_try(&old, NULL), ESRCH);
        CHECK_EQ(cc_task_detach(&old), ESRCH);
        (void)gate_open(&gate);
        CHECK_EQ(cc_task_join(&old, NULL), ESRCH); /* and the new fiber has not been run instead */
        CHECK_EQ(cc_task_join(&task, NULL), 0);
    }
    CHECK(reused || cc_worker_count() > 1 || !cc_in_fiber()); /* or the case shows nothing */
}

TEST_WORKERS(slots_are_reused) {
    in_both_contexts(outlive);
}

/* More tasks than a record has generations: the first handle is not the handle of a later one. */
static void *use_up_a_record(void *arg) {
    (void)arg;
    CCTask first = cc_fiber_spawn_task(give_back, NULL), task = first;
    CHECK_EQ(cc_task_join(&task, NULL), 0);
    struct fiber *f = cc__pool_find(first.id);
    bool left = false; /* the first record serves until it is retired, and others after it */
    for (uint64_t i = 0; i < 3 * (uint64_t)CC_FIBER_GENERATION_MAX; i++) {
        task = cc_fiber_spawn_task(give_back, NULL);
        left = left || cc__pool_find(task.id) != f;
        CHECK(task.id != first.id);
        CCTask old = first;
        CHECK_EQ(cc_task_detach(&old), ESRCH);
        CHECK_EQ(cc_task_join(&task, NULL), 0);
    }
    CHECK(left);
    check_gone(first);
    return NULL;
}

TEST_WORKERS(more_tasks_than_generations) {
    if (CC_FIBER_GENERATION_MAX > 0xffffu)
        SKIP("a record of this build has 2^31 generations; the preset `small` has 256");
    cc_block_on(cc_fiber_spawn_task(use_up_a_record, NULL));
}

/* ---- copies ---- */

static void copy_badly(void) {
    CCTask none = {0}, copy = {88}, task = cc_fiber_spawn_task(give_back, NULL);
    CHECK_EQ(cc_task_dup(NULL, NULL), EINVAL);
    CHECK_EQ(cc_task_dup(&task, NULL), EINVAL);
    CHECK_EQ(cc_task_dup(NULL, &copy), EINVAL);
    CHECK_EQ(copy.id, 0);
    copy.id = 88;
    CHECK_EQ(cc_task_dup(&none, &copy), EINVAL);
    CHECK_EQ(copy.id, 0);
    CHECK_EQ(cc_task_join(&task, NULL), 0);
}

TEST(bad_copies) {
    in_both_contexts(copy_badly);
}

/* One variable cannot hold two handles; the error does not take the one away. */
static void copy_onto_itself(void) {
    CCTask task = cc_fiber_spawn_task(give_back, NULL), before = task;
    CHECK_EQ(cc_task_dup(&task, &task), EINVAL);
    CHECK(task.id == before.id);
    CHECK_EQ(cc_task_join(&task, NULL), 0);
}

TEST(copy_of_itself) {
    in_both_contexts(copy_onto_itself);
}

/* Two handles, each joined or detached, before or after the end, in either order. */
static void combine(void) {
    for (unsigned way = 0; way < 16; way++) {
        bool second_first = way & 1, ended = way & 2, detach[2] = {way & 4, way & 8};
        struct gate *gate = new_gate();
        CCTask handles[2], old;
        old = handles[0] = cc_fiber_spawn_task(wait_at, gate);
        CHECK_EQ(cc_task_dup(&handles[0], &handles[1]), 0);
        CHECK(handles[0].id == handles[1].id);
        if (ended) (void)gate_open(gate);
        for (int k = 0; k < 2; k++) {
            CCTask *handle = &handles[second_first ? !k : k];
            if (detach[k]) {
                CHECK_EQ(cc_task_detach(handle), 0);
            } else {
                (void)gate_open(gate);
                void *result = NULL;
                CHECK_EQ(cc_task_join(handle, &result), 0);
                CHECK(result == gate);
            }
            CHECK_EQ(handle->id, 0);
        }
        check_gone(old);
        (void)gate_open(gate);
    }
}

TEST_WORKERS(two_handles) {
    in_both_contexts(combine);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
}

/* One is joined while the other waits; more are made meanwhile. */
static void *join_copy(void *arg) {
    void *result = NULL;
    CHECK_EQ(cc_task_join(arg, &result), 0);
    return result;
}

static void make_more(void) {
    enum { COPIES = 50 };
    struct gate gate = {0};
    CCTask task = cc_fiber_spawn_task(wait_at, &gate), copies[COPIES], joiners[COPIES];
    for (int i = 0; i < COPIES; i++) {
        CHECK_EQ(cc_task_dup(i == 0 ? &task : &copies[i - 1], &copies[i]), 0); /* copies of copies */
        if (i % 2) joiners[i] = cc_fiber_spawn_task(join_copy, &copies[i]);
        if (i == COPIES / 2) CHECK_EQ(cc_task_detach(&task), 0); /* the first one is nothing special */
    }
    (void)gate_open(&gate);
    for (int i = 0; i < COPIES; i++) {
        void *result = NULL;
        CHECK_EQ(cc_task_join(i % 2 ? &joiners[i] : &copies[i], &result), 0);
        CHECK(result == &gate);
    }
}

TEST_WORKERS(copies_of_copies) {
    in_both_contexts(make_more);
}

/* As many as can be counted; the counter is set by hand, for four thousand million calls take too long. */
static void count_to_the_end(void) {
    struct gate gate = {0};
    CCTask task = cc_fiber_spawn_task(wait_at, &gate), copy;
    struct fiber *f = cc__task_lock(task);
    CHECK(f != NULL);
    CHECK_EQ(cc__get(&f->handles), 1);
    cc__set(&f->handles, UINT32_MAX - 2);
    cc__lock_release(&f->join_lock);
    CHECK_EQ(cc_task_dup(&task, &copy), 0);
    CCTask more = {7};
    CHECK_EQ(cc_task_dup(&task, &more), EOVERFLOW);
    CHECK_EQ(more.id, 0);
    CHECK_EQ(cc_task_dup(&copy, &more), EOVERFLOW);
    CHECK_EQ(cc_task_detach(&copy), 0);
    CHECK_EQ(cc_task_dup(&task, &copy), 0); /* there is room again */
    CHECK_EQ(cc__get(&f->handles), UINT32_MAX - 1);
    (void)gate_open(&gate);
    CHECK_EQ(cc_task_join_until(&copy, NULL, cc_after_ms(60 * 1000)), 0); /* the end holds one more for a moment */
    f = cc__task_lock(task);
    CHECK(f != NULL);
    cc__set(&f->handles, 1);
    cc__lock_release(&f->join_lock);
    CHECK_EQ(cc_task_join(&task, NULL), 0);
}

TEST(too_many_handles) {
    in_both_contexts(count_to_the_end);
}

/* ---- itself ---- */

struct narcissus {
    CCTask own, copy;
    _Atomic bool ready;
};

static void *join_itself(void *arg) {
    struct narcissus *n = arg;
    while (!cc__get_acquire(&n->ready)) cc_yield();
    void *result = n;
    CHECK(n->own.id == cc_fiber_id());
    CHECK_EQ(cc_task_join(&n->own, &result), EDEADLK);
    CHECK_EQ(cc_task_join_until(&n->own, &result, cc_after_ms(1)), EDEADLK);
    CHECK_EQ(cc_task_join_until(&n->copy, &result, CC_FOREVER), EDEADLK);
    CHECK(cc_block_on(n->own) == NULL);
    int rc = cc_task_join_try(&n->own, &result);
    CHECK(rc == EDEADLK || rc == EAGAIN);
    CHECK(result == n);
    CHECK_EQ(cc_task_detach(&n->copy), 0); /* a task may detach itself */
    return n;
}

static void join_narcissus(void) {
    struct narcissus n = {.ready = false};
    n.own = cc_fiber_spawn_task(join_itself, &n);
    CHECK_EQ(cc_task_dup(&n.own, &n.copy), 0);
    CCTask mine = n.own;
    cc__set_release(&n.ready, true);
    void *result = NULL;
    CHECK_EQ(cc_task_join(&mine, &result), 0); /* EDEADLK has not used it up */
    CHECK(result == &n);
}

TEST_WORKERS(joins_itself) {
    in_both_contexts(join_narcissus);
}

/* ---- one handle, many hands ---- */

static struct {
    CCTask task;
    _Atomic int joined, gone, detached;
} race;

/* All of them hold copies of the same handle without having counted them: a late caller gets ESRCH, nothing
 * worse. */
static void use_at_once(int index, void *arg) {
    (void)arg;
    CCTask task = race.task;
    int rc = index % 3 == 0   ? cc_task_detach(&task)
             : index % 3 == 1 ? cc_task_join(&task, NULL)
                              : cc_task_join_try(&task, NULL);
    if (rc == EAGAIN) rc = cc_task_join(&task, NULL);
    if (rc == ESRCH)
        cc__add(&race.gone, 1);
    else if (rc == 0 && index % 3 == 0)
        cc__add(&race.detached, 1);
    else if (rc == 0)
        cc__add(&race.joined, 1);
    else
        CHECK_EQ(rc, 0);
}

TEST_WORKERS(used_by_many_at_once) {
    enum { HANDS = 6 };
    for (long i = 0; i < test_rounds(200, 10000); i++) {
        cc__set(&race.joined, 0);
        cc__set(&race.gone, 0);
        cc__set(&race.detached, 0);
        race.task = cc_fiber_spawn_task(give_back, NULL);
        crew_run(HANDS, use_at_once, NULL);
        CHECK(cc__get(&race.detached) <= 1);
        CHECK(cc__get(&race.joined) + cc__get(&race.detached) >= 1);
        CHECK_EQ(cc__get(&race.joined) + cc__get(&race.detached) + cc__get(&race.gone), HANDS);
    }
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0); /* the counts of tasks are right as well */
}
