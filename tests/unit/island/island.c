/* island.c - fibers that stay on one thread: starts, calls, waits of all kinds, nurseries, cancellation, panics, hooks,
 * shutdown, the simulator, misuse. */
#include "../contexts.h"
#include "../ending.h"

#include <ccc/cc_sim.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static CCIsland *new_island(const char *name) {
    CCIsland *island = NULL;
    CCIslandConfig config = {.name = name};
    CHECK_EQ(cc_island_create(&island, &config), 0);
    CHECK(island != NULL);
    return island;
}

/* Its thread; and its data: plain, without a lock. */
struct island_data {
    CCIsland *island;
    pthread_t thread;
    bool known;
    long count;
};

static void check_thread(struct island_data *data) {
    CHECK(cc_island_current() == data->island);
    if (!data->known) data->thread = pthread_self();
    data->known = true;
    CHECK(pthread_equal(data->thread, pthread_self()));
}

/* No other fiber of the island runs in between. */
static void use(struct island_data *data) {
    check_thread(data);
    long before = data->count;
    for (volatile int i = 0; i < 20; i++) {
    }
    data->count = before + 1;
}

CC_TASK(user, {
    struct island_data *data;
    int rounds;
}) {
    for (int i = 0; i < self->rounds; i++) {
        use(self->data);
        cc_yield();
        use(self->data);
    }
    return NULL;
}

TEST_WORKERS(yields_stay) {
    struct island_data data = {.island = new_island("yields")};
    CCTask tasks[50];
    for (int i = 0; i < 50; i++) tasks[i] = CC_GO_ON(data.island, user, .data = &data, .rounds = 20);
    CHECK_EQ(cc_join_all(tasks, 50, NULL, CC_FOREVER), 0);
    CHECK_EQ(cc_island_free(data.island), 0);
    CHECK_EQ(data.count, 50 * 20 * 2);
}

/* ---- calls ---- */

static void *add_one(void *arg) {
    use(arg);
    return arg;
}

static struct island_data shared;

CC_TASK(caller, { int rounds; }) {
    for (int i = 0; i < self->rounds; i++) {
        void *result = NULL;
        CHECK_EQ(cc_island_call(shared.island, add_one, &shared, &result), 0);
        CHECK(result == &shared);
    }
    return NULL;
}

TEST_WORKERS(calls) {
    shared = (struct island_data){.island = new_island("calls")};
    CCTask tasks[20];
    for (int i = 0; i < 20; i++) tasks[i] = CC_GO(caller, .rounds = 20);
    for (int i = 0; i < 20; i++) CHECK_EQ(cc_island_call(shared.island, add_one, &shared, NULL), 0); /* from a thread */
    CHECK_EQ(cc_join_all(tasks, 20, NULL, CC_FOREVER), 0);
    CHECK_EQ(cc_island_free(shared.island), 0);
    CHECK_EQ(shared.count, 20 * 20 + 20);
}

/* ---- every kind of wait, and every kind of waker ---- */

static CCChan *to_island, *from_island, *small;
static CCMutex mutex;
static CCSem sem;
static CCEvent event;
static int pipe_ends[2];

static void *nothing(void *arg) {
    return arg;
}

static void *blocks(void *arg) {
    usleep(100);
    return arg;
}

CC_TASK(waits_for_all, { struct island_data *data; }) {
    struct island_data *data = self->data;
    int v;
    for (int i = 0; i < 5; i++) {
        use(data);
        CHECK_EQ(cc_chan_recv(to_island, &v, sizeof v), 0);
        use(data);
        CHECK_EQ(cc_chan_send(from_island, &v, sizeof v), 0);
        use(data);
        CHECK_EQ(cc_mutex_lock(&mutex), 0);
        use(data);
        cc_yield();
        use(data);
        CHECK_EQ(cc_mutex_unlock(&mutex), 0);
        CHECK_EQ(cc_sem_acquire(&sem), 0);
        use(data);
        cc_sleep_ms(1);
        use(data);
        CCTask child = cc_fiber_spawn_task(nothing, data);
        CHECK_EQ(cc_task_join(&child, NULL), 0);
        use(data);
        CHECK_EQ(cc_island_spawn(CC_NO_ISLAND, &child, nothing, data, NULL), 0);
        CHECK_EQ(cc_task_join_until(&child, NULL, cc_after_s(600)), 0);
        use(data);
        CHECK_EQ(cc_blocking(blocks, NULL, NULL), 0);
        use(data);
        CC_WHEN {
            CC_ON_RECV(to_island, &v) {
                CHECK_EQ(cc_chan_send(from_island, &v, sizeof v), 0);
            }
            CC_ON_AFTER_MS(60000) {
                CHECK(false);
            }
        }
        use(data);
    }
    CHECK_EQ(cc_event_wait(&event), 0);
    use(data);
    char byte;
    size_t got;
    CHECK_EQ(cc_fd_read(pipe_ends[0], &byte, 1, &got), 0);
    use(data);
    return NULL;
}

CC_TASK(feeds, { int n; }) {
    for (int i = 0; i < self->n; i++) {
        CHECK_EQ(cc_chan_send(to_island, &i, sizeof i), 0);
        if (i % 2 == 0) CHECK_EQ(cc_sem_release(&sem, 1), 0);
        CHECK_EQ(cc_mutex_lock(&mutex), 0);
        cc_yield();
        CHECK_EQ(cc_mutex_unlock(&mutex), 0);
    }
    return NULL;
}

CC_TASK(drains, { int n; }) {
    for (int i = 0, v; i < self->n; i++) CHECK_EQ(cc_chan_recv(from_island, &v, sizeof v), 0);
    return NULL;
}

TEST_WORKERS(all_waits, .timeout = 120) {
    enum { USERS = 8, VALUES = USERS * 5 * 2 };
    struct island_data data = {.island = new_island("waits")};
    to_island = cc_chan_create(sizeof(int), 0);
    from_island = cc_chan_create(sizeof(int), 2);
    CHECK_EQ(pipe(pipe_ends), 0);
    CCTask tasks[USERS + 2];
    for (int i = 0; i < USERS; i++) tasks[i] = CC_GO_ON(data.island, waits_for_all, .data = &data);
    tasks[USERS] = CC_GO(feeds, .n = VALUES);
    tasks[USERS + 1] = CC_GO(drains, .n = VALUES);
    CHECK_EQ(cc_task_join(&tasks[USERS], NULL), 0);
    CHECK_EQ(cc_task_join(&tasks[USERS + 1], NULL), 0);
    CHECK_EQ(cc_event_set(&event), 0);
    for (int i = 0; i < USERS; i++) CHECK_EQ(cc_fd_write(pipe_ends[1], "x", 1, NULL), 0);
    CHECK_EQ(cc_join_all(tasks, USERS, NULL, CC_FOREVER), 0);
    CHECK_EQ(cc_island_free(data.island), 0);
    CHECK(data.count > 0);
    cc_fd_close(pipe_ends[0]);
    cc_fd_close(pipe_ends[1]);
    cc_chan_free(to_island);
    cc_chan_free(from_island);
}

/* ---- two islands, and channels between them that become biased and are not ---- */

CC_TASK(plays, {
    struct island_data *data;
    CCChan *in, *out;
    int rounds;
    bool begins;
}) {
    int v = 0;
    for (int i = 0; i < self->rounds; i++) {
        if (self->begins || i > 0) CHECK_EQ(cc_chan_send(self->out, &v, sizeof v), 0);
        use(self->data);
        CHECK_EQ(cc_chan_recv(self->in, &v, sizeof v), 0);
        use(self->data);
    }
    if (!self->begins) CHECK_EQ(cc_chan_send(self->out, &v, sizeof v), 0);
    return NULL;
}

TEST_WORKERS(ping_pong) {
    struct island_data a = {.island = new_island("a")}, b = {.island = new_island("b")};
    CCChan *there = cc_chan_create(sizeof(int), 0), *back = cc_chan_create(sizeof(int), 0);
    int rounds = (int)test_scale(500);
    CCTask tasks[2] = {
        CC_GO_ON(a.island, plays, .data = &a, .in = back, .out = there, .rounds = rounds, .begins = true),
        CC_GO_ON(b.island, plays, .data = &b, .in = there, .out = back, .rounds = rounds)};
    CHECK_EQ(cc_join_all(tasks, 2, NULL, CC_FOREVER), 0);
    CHECK_EQ(cc_island_free(a.island), 0);
    CHECK_EQ(cc_island_free(b.island), 0);
    cc_chan_free(there);
    cc_chan_free(back);
}

/* A channel that one island uses alone for a long time, and then others. */
CC_TASK(uses_alone, { struct island_data *data; }) {
    int v = 0;
    for (int i = 0; i < 300; i++) {
        CHECK_EQ(cc_chan_send(small, &v, sizeof v), 0);
        CHECK_EQ(cc_chan_recv(small, &v, sizeof v), 0);
    }
    use(self->data);
    CHECK_EQ(cc_event_set(&event), 0); /* others may */
    for (int i = 0; i < 20; i++) {
        CHECK_EQ(cc_chan_recv(small, &v, sizeof v), 0);
        use(self->data);
    }
    return NULL;
}

TEST_WORKERS(biased_channel) {
    struct island_data data = {.island = new_island("bias")};
    small = cc_chan_create(sizeof(int), 1);
    CCTask task = CC_GO_ON(data.island, uses_alone, .data = &data), other;
    CHECK_EQ(cc_event_wait(&event), 0);
    for (int i = 0; i < 20; i++) {
        CHECK_EQ(cc_chan_send(small, &i, sizeof i), 0);
        other = cc_fiber_spawn_task(nothing, NULL);
        CHECK_EQ(cc_task_join(&other, NULL), 0);
    }
    CHECK_EQ(cc_task_join(&task, NULL), 0);
    CHECK_EQ(cc_island_free(data.island), 0);
    cc_chan_free(small);
}

/* ---- nurseries, cancellation, deadlines, panics ---- */

CC_CHILD(sleeps_until_cancelled, { struct island_data *data; }) {
    use(self->data);
    int rc = cc_sleep_until(CC_FOREVER);
    use(self->data);
    CHECK_EQ(rc, ECANCELED);
    return rc;
}

CC_TASK(has_children, { struct island_data *data; }) {
    int rc;
    bool late = false;
    CC_NURSERY(n, .result = &rc) {
        for (int i = 0; i < 5; i++) CC_GO_IN(n, sleeps_until_cancelled, .data = self->data);
        cc_yield();
        use(self->data);
        cc_nursery_cancel(n);
    }
    CHECK_EQ(rc, ECANCELED);
    CC_WITH_DEADLINE(cc_after_ms(1), &late) {
        CHECK_EQ(cc_sleep_until(CC_FOREVER), ECANCELED);
        use(self->data);
    }
    CHECK(late);
    use(self->data);
    return NULL;
}

static void *child_there(void *arg) {
    use(arg);
    CHECK_EQ(cc_sleep_until(CC_FOREVER), ECANCELED);
    use(arg);
    return NULL;
}

TEST_WORKERS(nurseries) {
    struct island_data data = {.island = new_island("nursery")};
    CCTask task = CC_GO_ON(data.island, has_children, .data = &data);
    CHECK_EQ(cc_task_join(&task, NULL), 0);
    int rc; /* a nursery of the pool, with children on the island, cancelled from here */
    CC_NURSERY(n, .result = &rc) {
        CCSpawnOptions there = {.island = data.island};
        for (int i = 0; i < 5; i++) CHECK_EQ(cc_nursery_spawn_ex(n, NULL, child_there, &data, &there), 0);
        cc_sleep_ms(1);
        cc_nursery_cancel(n);
    }
    CHECK_EQ(rc, ECANCELED);
    CHECK_EQ(cc_island_free(data.island), 0);
}

/* A deadline that a fiber of an island sets before it blocks its thread ends the waits of the pool. */
static void *waits_in_pool(void *over) {
    CHECK(cc_island_current() == NULL);
    CHECK_EQ(cc_sleep_until(CC_FOREVER), ECANCELED);
    atomic_store((atomic_bool *)over, true);
    return NULL;
}

static void *blocks_until_late(void *arg) {
    atomic_bool over = false;
    int rc;
    CC_NURSERY(n, .result = &rc, .deadline = cc_after_ms(20)) {
        CCSpawnOptions there = {.island = CC_NO_ISLAND};
        CHECK_EQ(cc_nursery_spawn_ex(n, NULL, waits_in_pool, &over, &there), 0);
        while (!atomic_load(&over)) usleep(1000);
    }
    CHECK_EQ(rc, ETIMEDOUT);
    return arg;
}

/* The grace period, too: the child in the pool holds a shield. */
static void *shielded_in_pool(void *over) {
    CC_SHIELD {
        CHECK_EQ(cc_sleep_until(CC_FOREVER), ECANCELED);
    }
    atomic_store((atomic_bool *)over, true);
    return NULL;
}

static void *blocks_until_grace_ends(void *arg) {
    atomic_bool over = false;
    int rc;
    CC_NURSERY(n, .result = &rc, .grace_ms = 20) {
        CCSpawnOptions there = {.island = CC_NO_ISLAND};
        CHECK_EQ(cc_nursery_spawn_ex(n, NULL, shielded_in_pool, &over, &there), 0);
        CHECK_EQ(cc_nursery_cancel(n), 0);
        while (!atomic_load(&over)) usleep(1000);
    }
    CHECK_EQ(rc, ECANCELED);
    return arg;
}

TEST_WORKERS(a_deadline_of_a_blocked_island) {
    CCIsland *island = new_island("blocked");
    for (int i = 0; i < 3; i++) CHECK_EQ(cc_island_call(island, blocks_until_late, NULL, NULL), 0);
    CHECK_EQ(cc_island_call(island, blocks_until_grace_ends, NULL, NULL), 0);
    CHECK_EQ(cc_island_free(island), 0);
}

/* The other way round: the pool is blocked, and the island keeps its own deadlines. */
static atomic_bool pool_may_go_on;

static void *blocks_the_pool(void *arg) {
    while (!atomic_load(&pool_may_go_on)) usleep(1000);
    return arg;
}

static void *is_late(void *arg) {
    bool late = false;
    CC_WITH_DEADLINE(cc_after_ms(20), &late) {
        CHECK_EQ(cc_sleep_until(CC_FOREVER), ECANCELED);
    }
    CHECK(late);
    atomic_store(&pool_may_go_on, true);
    return arg;
}

TEST_WORKERS(a_deadline_beside_a_blocked_pool) {
    CCTask tasks[16];
    CCIsland *island = new_island("alone");
    for (unsigned i = 0; i < cc_worker_count(); i++) CHECK_EQ(cc_spawn(&tasks[i], blocks_the_pool, NULL, NULL), 0);
    CHECK_EQ(cc_island_call(island, is_late, NULL, NULL), 0);
    CHECK_EQ(cc_join_all(tasks, cc_worker_count(), NULL, CC_FOREVER), 0);
    CHECK_EQ(cc_island_free(island), 0);
}

/* A deadline that a fiber of an island sets on a nursery elsewhere does not belong to the island: the end of the island
 * does not wait for it, and it still passes after that. */
CC_TASK(sets_deadline, {
    CCNursery *n;
    CCDeadline deadline;
}) {
    CHECK_EQ(cc_nursery_set_deadline(self->n, self->deadline), 0);
    return NULL;
}

static void deadline_outlives_island(CCDeadline deadline, int expected) {
    int rc;
    CC_NURSERY(n, .result = &rc) {
        CCIsland *island = new_island("short");
        CCTask task = CC_GO_ON(island, sets_deadline, .n = n, .deadline = deadline);
        CC_SHIELD CHECK_EQ(cc_task_join(&task, NULL), 0); /* on a busy machine the deadline may have passed by now */
        CHECK_EQ(cc_island_free(island), 0);
        if (expected != 0) CHECK_EQ(cc_sleep_until(CC_FOREVER), ECANCELED);
    }
    CHECK_EQ(rc, expected);
}

static void a_deadline_outlives_its_island(void) {
    deadline_outlives_island(cc_after_ms(3600 * 1000), 0);
    deadline_outlives_island(cc_after_ms(50), ETIMEDOUT);
    deadline_outlives_island(cc_after_ms(300), ETIMEDOUT); /* not due soon: no worker has been woken for it */
}

TEST_WORKERS(a_deadline_outlives_its_island) {
    in_both_contexts(a_deadline_outlives_its_island);
}

static void *panics(void *arg) {
    (void)arg;
    cc_yield();
    cc_panic("on an island");
}

static void *waits_long(void *arg) {
    atomic_store((_Atomic int *)arg, 1);
    int rc = cc_sleep_until(CC_FOREVER);
    atomic_store((_Atomic int *)arg, 2);
    return (void *)(intptr_t)rc;
}

CC_TASK(calls_and_is_cancelled, { CCIsland *island; }) {
    _Atomic int step = 0; /* in this frame: the call waits for the fiber's end */
    void *result = NULL;
    int rc = cc_island_call(self->island, waits_long, (void *)&step, &result);
    CHECK_EQ(rc, 0);
    CHECK(result == (void *)(intptr_t)ECANCELED);
    CHECK_EQ(atomic_load(&step), 2);
    return NULL;
}

TEST(panic_in_a_call) {
    CCIsland *island = new_island("panics");
    CHECK_EQ(cc_island_call(island, panics, NULL, NULL), ENOTRECOVERABLE);
    CHECK_EQ(cc_island_call(island, nothing, NULL, NULL), 0); /* the island goes on */
    CHECK_EQ(cc_island_free(island), 0);
}

TEST_WORKERS(caller_is_cancelled) {
    CCIsland *island = new_island("calls");
    CCTask task = CC_GO(calls_and_is_cancelled, .island = island);
    cc_sleep_ms(1);
    CHECK_EQ(cc_task_cancel(&task), 0);
    CHECK_EQ(cc_task_join(&task, NULL), 0);
    CHECK_EQ(cc_island_free(island), 0);
}

/* ---- hooks, names, CPUs ---- */

static __thread int of_thread;
static _Atomic int started, ended;

static void on_start(void *context) {
    CHECK(context == &started);
    of_thread = 77;
    atomic_fetch_add(&started, 1);
}

static void on_end(void *context) {
    CHECK(context == &started);
    CHECK_EQ(of_thread, 78);
    atomic_fetch_add(&ended, 1);
}

static void *sees_thread_local(void *arg) {
    char name[32] = "";
    CHECK_EQ(of_thread, 77);
    cc_yield();
    CHECK_EQ(of_thread, 77);
    of_thread = 78;
    pthread_getname_np(pthread_self(), name, sizeof name);
    CHECK(strcmp(name, "hooked") == 0);
    return arg;
}

TEST_WORKERS(hooks) {
    CCIsland *island;
    CCIslandConfig config = {.name = "hooked", .on_start = on_start, .on_end = on_end, .context = &started};
    atomic_store(&started, 0);
    atomic_store(&ended, 0);
    CHECK_EQ(cc_island_create(&island, &config), 0);
    CHECK_EQ(cc_island_call(island, sees_thread_local, NULL, NULL), 0);
    CHECK_EQ(atomic_load(&started), 1);
    CHECK_EQ(cc_island_free(island), 0);
    CHECK_EQ(atomic_load(&ended), 1);
}

/* ---- slots are reused; all of them ---- */

TEST(many_islands) {
    CCIsland *islands[CC_ISLANDS_MAX], *more = (CCIsland *)islands;
    struct island_data data = {0};
    for (int round = 0; round < 2; round++) {
        for (unsigned i = 0; i < CC_ISLANDS_MAX; i++) CHECK_EQ(cc_island_create(&islands[i], NULL), 0);
        CHECK_EQ(cc_island_create(&more, NULL), EAGAIN);
        CHECK(more == NULL);
        for (unsigned i = 0; i < CC_ISLANDS_MAX; i++) {
            data = (struct island_data){.island = islands[i]};
            CHECK_EQ(cc_island_call(islands[i], add_one, &data, NULL), 0);
            CHECK_EQ(cc_island_free(islands[i]), 0);
        }
    }
}

/* ---- a thread-local destructor ---- */

static pthread_key_t local_key;

/* When its own island has ended, and is being freed. */
static void uses_another_island(void *done) {
    CCIsland *another = new_island("another");
    struct island_data data = {.island = another};
    CHECK_EQ(cc_island_call(another, add_one, &data, NULL), 0);
    CHECK_EQ(cc_island_free(another), 0);
    atomic_store((atomic_bool *)done, true);
}

static void *sets_local(void *done) {
    CHECK_EQ(pthread_setspecific(local_key, done), 0);
    return NULL;
}

static void destructors_create_islands(void) {
    atomic_bool done = false;
    CCIsland *island = new_island("local");
    CHECK_EQ(pthread_key_create(&local_key, uses_another_island), 0);
    CHECK_EQ(cc_island_call(island, sets_local, &done, NULL), 0);
    CHECK_EQ(cc_island_free(island), 0);
    CHECK(atomic_load(&done));
    CHECK_EQ(pthread_key_delete(local_key), 0);
}

TEST_WORKERS(destructors_create_islands) {
    in_both_contexts(destructors_create_islands);
}

/* ---- hooks and CPUs ---- */

static atomic_bool hook_began, hook_may_go_on;
static _Atomic int hook_rc;

static void *passes(void *arg) {
    return arg;
}

static void uses_the_runtime(void *context) {
    (void)context;
    atomic_store(&hook_began, true);
    while (!atomic_load(&hook_may_go_on)) usleep(1000);
    CCTask task;
    int rc = cc_spawn(&task, passes, NULL, NULL);
    atomic_store(&hook_rc, rc);
    if (rc == 0) (void)cc_task_detach(&task);
}

static void *lets_the_hook_go_on(void *arg) {
    usleep(20000); /* a chance for the shutdown to begin */
    atomic_store(&hook_may_go_on, true);
    return arg;
}

/* The hook still runs when the runtime is shut down, and uses it then: neither waits for the other. */
TEST_WORKERS(a_hook_during_a_shutdown) {
    CCIsland *island;
    pthread_t thread;
    CHECK_EQ(cc_runtime_init(NULL), 0);
    CHECK_EQ(cc_island_create(&island, &(CCIslandConfig){.on_start = uses_the_runtime}), 0);
    while (!atomic_load(&hook_began)) usleep(1000);
    CHECK_EQ(pthread_create(&thread, NULL, lets_the_hook_go_on, NULL), 0);
    int rc;
    while ((rc = cc_runtime_shutdown(UINT64_MAX)) != 0) CHECK_EQ(rc, ETIMEDOUT);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    rc = atomic_load(&hook_rc);
    CHECK(rc == 0 || rc == ECANCELED);
    CHECK_EQ(cc_island_free(island), 0);
}

static void *counts_cpus(void *count) {
    cpu_set_t set;
    CHECK_EQ(sched_getaffinity(0, sizeof set, &set), 0);
    *(int *)count = CPU_COUNT(&set);
    return NULL;
}

static void *blocks_and_creates(void *count) {
    CCIsland *other;
    int here, of_blocking, of_island;
    (void)counts_cpus(&here);
    CHECK_EQ(here, 1);
    CHECK_EQ(cc_blocking(counts_cpus, &of_blocking, NULL), 0);
    CHECK_EQ(of_blocking, *(int *)count);
    CHECK_EQ(cc_island_create(&other, NULL), 0);
    CHECK_EQ(cc_island_call(other, counts_cpus, &of_island, NULL), 0);
    CHECK_EQ(of_island, *(int *)count);
    CHECK_EQ(cc_island_free(other), 0);
    return NULL;
}

/* What a pinned island starts is not bound to its CPU. */
TEST(others_are_not_pinned) {
    CCIsland *island;
    cpu_set_t set;
    int cpu = 0, count;
    (void)counts_cpus(&count);
    CHECK_EQ(sched_getaffinity(0, sizeof set, &set), 0);
    while (!CPU_ISSET((size_t)cpu, &set)) cpu++;
    CHECK_EQ(cc_island_create(&island, &(CCIslandConfig){.pinned = true, .cpu = (unsigned)cpu}), 0);
    CHECK_EQ(cc_island_call(island, blocks_and_creates, &count, NULL), 0);
    CHECK_EQ(cc_island_free(island), 0);
}

/* ---- misuse ---- */

static void *frees_its_own(void *island) {
    CHECK(cc_island_current() == island);
    CHECK_EQ(cc_island_free(island), EDEADLK);
    CHECK_EQ(cc_runtime_shutdown(1), EDEADLK);
    return NULL;
}

static void misuse(void) {
    CCIsland *island = NULL;
    CCTask task = {1};
    CCIslandConfig config = {.pinned = true, .cpu = 100000};
    CHECK(cc_island_current() == NULL);
    CHECK_EQ(cc_island_create(NULL, NULL), EINVAL);
    CHECK_EQ(cc_island_create(&island, &config), EINVAL);
    config = (CCIslandConfig){.reserved = {1}};
    CHECK_EQ(cc_island_create(&island, &config), EINVAL);
    CHECK_EQ(cc_island_spawn(NULL, &task, nothing, NULL, NULL), EINVAL);
    CHECK_EQ(task.id, 0);
    CHECK_EQ(cc_island_call(NULL, nothing, NULL, NULL), EINVAL);
    CHECK_EQ(cc_island_free(NULL), 0);
    CHECK_EQ(cc_island_free(CC_NO_ISLAND), EINVAL);
    CHECK_EQ(cc_island_create(&island, NULL), 0);
    CCSpawnOptions other = {.island = CC_NO_ISLAND};
    CHECK_EQ(cc_island_spawn(island, &task, nothing, NULL, &other), EINVAL);
    CHECK_EQ(cc_island_spawn(island, &task, NULL, NULL, NULL), EINVAL);
    CHECK_EQ(cc_island_call(island, frees_its_own, island, NULL), 0);
    CHECK_EQ(cc_island_free(island), 0);
}

TEST_WORKERS(misuse) {
    in_both_contexts(misuse);
}

/* Its own island, as the hooks know it. */
struct hooked {
    atomic_int hooks;
    CCIsland *_Atomic island;
};

static void frees_in_hook(void *context) {
    struct hooked *h = context;
    while (atomic_load(&h->island) == NULL) sched_yield(); /* on_start may be earlier than the return of the create */
    CHECK_EQ(cc_island_free(atomic_load(&h->island)), EDEADLK);
    CHECK_EQ(cc_runtime_shutdown(0), EDEADLK);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), EDEADLK);
    atomic_fetch_add(&h->hooks, 1);
}

TEST_WORKERS(misuse_in_hooks) {
    struct hooked h = {0};
    CCIslandConfig config = {.on_start = frees_in_hook, .on_end = frees_in_hook, .context = &h};
    CCIsland *island;
    for (int i = 0; i < 2; i++) {
        atomic_store(&h.island, NULL);
        CHECK_EQ(cc_island_create(&island, &config), 0);
        atomic_store(&h.island, island);
        CHECK_EQ(cc_island_call(island, nothing, NULL, NULL), 0);
        if (i == 1) CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0); /* then on_end is called by that */
        CHECK_EQ(cc_island_free(island), 0);
        CHECK_EQ(atomic_load(&h.hooks), 2 * (i + 1));
    }
}

/* The runtime is shut down, and started again: the island is gone, its handle is still to be freed. */
TEST(after_shutdown) {
    CCIsland *island = new_island("old");
    CCTask task;
    CHECK_EQ(cc_island_call(island, nothing, NULL, NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(60000), 0);
    CCIsland *another;
    CCIslandConfig no_such_cpu = {.pinned = true, .cpu = 100000};
    CHECK_EQ(cc_island_spawn(island, &task, nothing, NULL, NULL), ESRCH);
    CHECK_EQ(cc_island_call(island, nothing, NULL, NULL), ESRCH);
    CHECK_EQ(cc_island_create(&another, &no_such_cpu), EINVAL);
    CCSpawnOptions there = {.island = island};
    CHECK_EQ(cc_spawn(&task, nothing, NULL, &there), ESRCH);
    CHECK_EQ(cc_runtime_init(NULL), 0); /* none of them has started it */
    another = new_island("new");
    CHECK_EQ(cc_island_call(island, nothing, NULL, NULL), ESRCH);
    CHECK_EQ(cc_island_call(another, nothing, NULL, NULL), 0);
    CHECK_EQ(cc_island_free(island), 0);
    CHECK_EQ(cc_island_free(another), 0);
}

/* The ordinary workers are started by a call for them, as by cc_spawn. */
TEST(no_island_starts_the_runtime) {
    CCTask task;
    CHECK_EQ(cc_island_call(CC_NO_ISLAND, nothing, NULL, NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(60000), 0);
    CHECK_EQ(cc_island_spawn(CC_NO_ISLAND, &task, nothing, NULL, NULL), 0);
    CHECK_EQ(cc_task_join(&task, NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(60000), 0);
    task = cc_island_go(CC_NO_ISLAND, nothing, NULL, 0);
    CHECK_EQ(cc_task_join(&task, NULL), 0);
}

static void *waits_for_ever(void *arg) {
    use(arg);
    CHECK_EQ(cc_sleep_until(CC_FOREVER), ECANCELED);
    use(arg);
    return NULL;
}

TEST_WORKERS(shutdown_cancels) {
    struct island_data data = {.island = new_island("stops")};
    for (int i = 0; i < 10; i++) CHECK_EQ(cc_island_spawn(data.island, NULL, waits_for_ever, &data, NULL), 0);
    cc_sleep_ms(1);
    end_by_cancelling();
    CHECK_EQ(cc_island_free(data.island), 0);
}

/* ---- messages ---- */

static const char *dump_text(void) {
    static char text[65536];
    FILE *file = fmemopen(text, sizeof text, "w");
    CHECK(file != NULL);
    CHECK_EQ(cc_dump(file), 0);
    fclose(file);
    return text;
}

TEST(dump_names_it) {
    struct island_data data = {.island = new_island("lagoon")};
    CCTask task;
    CHECK_EQ(cc_island_spawn(data.island, &task, waits_for_ever, &data, NULL), 0);
    while (strstr(dump_text(), "island 'lagoon' (worker") == NULL) cc_sleep_ms(1);
    CHECK_EQ(cc_task_cancel(&task), 0);
    CHECK_EQ(cc_task_join(&task, NULL), 0);
    CHECK_EQ(cc_island_free(data.island), 0);
}

/* ---- in the simulation ---- */

static void *simulated(void *arg) {
    struct island_data data = {.island = new_island("simulated")};
    CCTask tasks[6];
    (void)arg;
    for (int i = 0; i < 5; i++) tasks[i] = CC_GO_ON(data.island, user, .data = &data, .rounds = 3);
    tasks[5] = CC_GO_ON(data.island, has_children, .data = &data);
    for (int i = 0; i < 5; i++) CHECK_EQ(cc_island_call(data.island, add_one, &data, NULL), 0);
    CHECK_EQ(cc_join_all(tasks, 6, NULL, CC_FOREVER), 0);
    CHECK_EQ(cc_island_free(data.island), 0);
    CHECK(data.count > 5 * 3 * 2);
    return NULL;
}

TEST(simulation) {
    for (uint64_t seed = 1; seed <= 20; seed++) CHECK_EQ(cc_sim_run(seed, simulated, NULL, NULL), 0);
}

static void *simulated_deadlines(void *arg) {
    CCIsland *island = new_island("late");
    CHECK_EQ(cc_island_call(island, is_late, NULL, NULL), 0);
    CHECK_EQ(cc_island_free(island), 0);
    a_deadline_outlives_its_island();
    return arg;
}

TEST(deadlines_in_a_simulation) {
    for (uint64_t seed = 1; seed <= 20; seed++) CHECK_EQ(cc_sim_run(seed, simulated_deadlines, NULL, NULL), 0);
}

/* Hooks use the library: they create an island, send, start a fiber and sleep. */
static CCIsland *inner;

static void creates_another(void *context) {
    CHECK_EQ(cc_island_create(&inner, context), 0);
    cc_yield();
}

static void uses_the_library(void *context) {
    CCChan *ch = context;
    CCTask task;
    int v = 1;
    uint64_t before = cc_now_ns();
    CHECK_EQ(cc_chan_send_try(ch, &v, sizeof v), 0);
    int rc = cc_spawn(&task, passes, NULL, NULL);
    CHECK(rc == 0 || rc == ECANCELED); /* of a shutdown */
    if (rc == 0) CHECK_EQ(cc_task_detach(&task), 0);
    CHECK_EQ(cc_sleep_ms(3), 0);
    CHECK(cc_now_ns() - before >= 3000000);
    cc_yield();
}

static void *simulated_hooks(void *ch) {
    CCIsland *island;
    CCIslandConfig config = {.on_start = uses_the_library, .on_end = uses_the_library, .context = ch};
    CCIslandConfig outer = {.on_start = creates_another, .context = &config};
    CHECK_EQ(cc_island_create(&island, &outer), 0);
    CHECK_EQ(cc_island_call(inner, passes, NULL, NULL), 0);
    CHECK_EQ(cc_island_free(inner), 0);
    CHECK_EQ(cc_island_free(island), 0);
    return NULL;
}

TEST(hooks_in_a_simulation) {
    CCChan *ch = cc_chan_create(sizeof(int), 100);
    for (uint64_t seed = 1; seed <= 20; seed++) CHECK_EQ(cc_sim_run(seed, simulated_hooks, ch, NULL), 0);
    CHECK_EQ(cc_chan_len(ch), 40);
    cc_chan_free(ch);
}

/* A fiber that a host starts on an island belongs to the host, and a crash cancels it there. */
static _Atomic unsigned on_host, crashed;

static void *lives_on_host(void *arg) {
    struct island_data *data = arg;
    use(data);
    CHECK(cc_sim_host_self() != 0);
    atomic_fetch_add(&on_host, 1);
    CHECK_EQ(cc_sleep_until(CC_FOREVER), ECANCELED);
    use(data);
    atomic_fetch_add(&crashed, 1);
    return NULL;
}

/* Dumps read the names of islands whose places are given to others: a race, if they were plain memory. */
static atomic_bool dumped;

static void *begin_and_end(void *arg) {
    return arg;
}

static void *make_islands(void *arg) {
    while (!atomic_load(&dumped)) {
        CCIsland *island = new_island("an island's name");
        CHECK_EQ(cc_island_call(island, begin_and_end, arg, NULL), 0);
        CHECK_EQ(cc_island_free(island), 0);
    }
    return NULL;
}

TEST(dumps_beside_new_islands) {
    pthread_t maker;
    CHECK_EQ(cc_runtime_init(NULL), 0);
    CHECK_EQ(pthread_create(&maker, NULL, make_islands, NULL), 0);
    FILE *nowhere = fopen("/dev/null", "w");
    CHECK(nowhere != NULL);
    for (long n = test_scale(100); n > 0; n--) CHECK_EQ(cc_dump(nowhere), 0);
    atomic_store(&dumped, true);
    CHECK_EQ(pthread_join(maker, NULL), 0);
    fclose(nowhere);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
}

static void *host_main(void *arg) {
    struct island_data *data = arg;
    for (int i = 0; i < 4; i++) CHECK_EQ(cc_island_spawn(data->island, NULL, lives_on_host, data, NULL), 0);
    CHECK_EQ(cc_sleep_until(CC_FOREVER), ECANCELED);
    return NULL;
}

static void *simulated_hosts(void *arg) {
    struct island_data data = {.island = new_island("hosted")};
    CCSimHost host;
    (void)arg;
    atomic_store(&on_host, 0);
    atomic_store(&crashed, 0);
    CHECK_EQ(cc_sim_host(&host, "a"), 0);
    CHECK_EQ(cc_sim_start(host, host_main, &data), 0);
    CHECK_EQ(cc_island_call(data.island, add_one, &data, NULL), 0); /* of no host, beside them */
    while (atomic_load(&on_host) != 4) CHECK_EQ(cc_sleep_ms(1), 0);
    CHECK_EQ(cc_sim_crash(host), 0);
    CHECK_EQ(cc_island_free(data.island), 0);
    CHECK_EQ(atomic_load(&crashed), 4);
    return NULL;
}

TEST(simulated_hosts) {
    for (uint64_t seed = 1; seed <= 20; seed++) CHECK_EQ(cc_sim_run(seed, simulated_hosts, NULL, NULL), 0);
}
