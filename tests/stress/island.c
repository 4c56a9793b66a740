/* island.c - switches on islands, ten million of them in the long profile, while threads block and workers are added
 * and retire: after each wait a fiber of an island is on its island's thread, and the island's unsynchronised data is
 * unchanged.
 *
 * The fibers of two islands yield, lock a mutex, sleep, and communicate with fibers of the pool; occasionally one
 * blocks its thread. Fibers of the pool block theirs, so that workers are added, and call the islands, as a thread
 * does.
 */
#include "harness.h"

#include "sched/elastic.h"
#include "sched/island.h"
#include "sched/sysmon.h"

#include <ccc/ccc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#define US UINT64_C(1000)

enum { ISLANDS = 2, FIBERS = 24, ECHOES = 3, HOGS = 3, CALLERS = 3 };

struct island_data {
    CCIsland *island;
    CCChan *out, *in; /* to the pool, and back */
    uint64_t wanted;  /* turns */
    pthread_t thread;
    bool known;
    uint64_t waits, seen; /* plain: the island's */
};

static struct island_data islands[ISLANDS];
static CCMutex mutex; /* of all */
static atomic_bool over;

static CCTask spawn(CCTaskFn fn, void *arg) {
    CCTask task;
    CHECK_EQ(cc_spawn(&task, fn, arg, NULL), 0);
    return task;
}

static uint64_t turns(const struct island_data *data) {
    return cc__get(&cc__sched.workers[data->island->owner - 1].core.turns);
}

/* On the island, after each wait. */
static void check_island(struct island_data *data) {
    if (!data->known) data->thread = pthread_self();
    data->known = true;
    CHECK(pthread_equal(data->thread, pthread_self()));
    CHECK(cc_island_current() == data->island);
    uint64_t before = data->waits;
    CHECK_EQ(data->seen, before);
    data->waits = before + 1;
    for (volatile int i = 0; i < 5; i++) {
    }
    CHECK_EQ(data->waits, before + 1);
    data->seen = before + 1;
}

static void block_for(uint64_t ns) {
    (void)nanosleep(&(struct timespec){.tv_nsec = (long)ns}, NULL);
}

static void talk(struct island_data *data, uint64_t v) {
    CHECK_EQ(cc_chan_send(data->out, &v, sizeof v), 0);
    check_island(data);
    CHECK_EQ(cc_chan_recv(data->in, &v, sizeof v), 0);
    check_island(data);
}

static void *works(void *arg) {
    struct island_data *data = arg;
    uint64_t random = test_seed() + data->waits;
    while (turns(data) < data->wanted) {
        uint64_t draw = test_random(&random) % 4096;
        if (draw < 64) {
            talk(data, random);
        } else if (draw < 128) {
            CHECK_EQ(cc_mutex_lock(&mutex), 0);
            check_island(data);
            cc_yield();
            check_island(data);
            CHECK_EQ(cc_mutex_unlock(&mutex), 0);
        } else if (draw < 136) {
            CHECK_EQ(cc_sleep_until(cc_after_ns(30 * US)), 0);
        } else if (draw == 136) {
            block_for(200 * US);
        } else {
            cc_yield();
        }
        check_island(data);
    }
    return NULL;
}

/* ---- of the pool ---- */

static void *echoes(void *arg) {
    struct island_data *data = arg;
    for (uint64_t v; cc_chan_recv(data->out, &v, sizeof v) == 0;) {
        CHECK(cc_island_current() == NULL);
        CHECK_EQ(cc_chan_send(data->in, &v, sizeof v), 0);
    }
    return NULL;
}

static void *blocks(void *arg) {
    while (!atomic_load(&over)) {
        block_for(300 * US);
        CHECK(cc_island_current() == NULL);
        CHECK_EQ(cc_mutex_lock(&mutex), 0);
        CHECK_EQ(cc_mutex_unlock(&mutex), 0);
        CHECK_EQ(cc_sleep_until(cc_after_ns(100 * US)), 0);
    }
    return arg;
}

static void *visits(void *arg) {
    check_island(arg);
    cc_yield();
    check_island(arg);
    return arg;
}

static void *calls(void *arg) {
    for (unsigned i = 0; !atomic_load(&over); i++) {
        struct island_data *data = &islands[i % ISLANDS];
        void *result = NULL;
        CHECK_EQ(cc_island_call(data->island, visits, data, &result), 0);
        CHECK(result == data);
        CHECK_EQ(cc_sleep_until(cc_after_ns(100 * US)), 0);
    }
    return arg;
}

/* ---- all of it ---- */

static void open_island(struct island_data *data, uint64_t wanted) {
    CHECK_EQ(cc_island_create(&data->island, NULL), 0);
    CHECK((data->out = cc_chan_create(sizeof(uint64_t), 2)) != NULL);
    CHECK((data->in = cc_chan_create(sizeof(uint64_t), 0)) != NULL);
    data->wanted = wanted;
}

static uint64_t close_island(struct island_data *data) {
    uint64_t n = turns(data);
    CHECK(n >= data->wanted);
    CHECK_EQ(cc_island_free(data->island), 0);
    CHECK_EQ(data->waits, data->seen);
    cc_chan_free(data->out);
    cc_chan_free(data->in);
    return n;
}

static void switches(unsigned base, uint64_t wanted) {
    CCRuntimeConfig config = {.workers = base, .max_workers = 2 * base};
    CCTask fibers[ISLANDS][FIBERS], answers[ISLANDS][ECHOES], load[HOGS + CALLERS];
    pthread_t thread;
    uint64_t all = 0;
    cc__sysmon_set_pace(50 * US, 50 * US);
    cc__elastic_set_retire(100 * US);
    CHECK_EQ(cc_runtime_init(&config), 0);
    for (int i = 0; i < ISLANDS; i++) open_island(&islands[i], wanted / ISLANDS);
    for (int i = 0; i < ISLANDS; i++)
        for (int k = 0; k < FIBERS; k++)
            CHECK_EQ(cc_island_spawn(islands[i].island, &fibers[i][k], works, &islands[i], NULL), 0);
    for (int i = 0; i < ISLANDS; i++)
        for (int k = 0; k < ECHOES; k++) answers[i][k] = spawn(echoes, &islands[i]);
    for (int i = 0; i < HOGS; i++) load[i] = spawn(blocks, NULL);
    for (int i = 0; i < CALLERS; i++) load[HOGS + i] = spawn(calls, NULL);
    CHECK_EQ(pthread_create(&thread, NULL, calls, NULL), 0);

    for (int i = 0; i < ISLANDS; i++) {
        CHECK_EQ(cc_join_all(fibers[i], FIBERS, NULL, CC_FOREVER), 0);
        CHECK_EQ(cc_chan_close(islands[i].out), 0);
        CHECK_EQ(cc_join_all(answers[i], ECHOES, NULL, CC_FOREVER), 0);
    }
    atomic_store(&over, true);
    CHECK_EQ(cc_join_all(load, HOGS + CALLERS, NULL, CC_FOREVER), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    for (int i = 0; i < ISLANDS; i++) all += close_island(&islands[i]);
    test_count("switches on islands", all);
    test_count("workers added", cc__elastic_grown());
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
}

TEST(one_worker_and_two_islands, .timeout = 300) {
    switches(1, (uint64_t)test_rounds(400000, 5000000));
}

TEST(four_workers_and_two_islands, .timeout = 300) {
    switches(4, (uint64_t)test_rounds(400000, 5000000));
}
