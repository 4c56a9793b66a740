/* rush.c - unlocks are counted now and then, and what is decided by that: how long one who finds a mutex locked stands
 * back. Whatever is decided, nobody is forgotten and nothing is swallowed. */
#include "looking.h"

#include "lock/rush.h"
#include "os/affinity.h"

static CCMutex mutex;

static void use(long times) {
    for (long i = 0; i < times; i++) {
        CHECK_EQ(cc_mutex_lock(&mutex), 0);
        CHECK_EQ(cc_mutex_unlock(&mutex), 0);
    }
}

static void cool(struct lobby *lobby) {
    use(2 * LOBBY_QUIET);
    if (!cc__get(&lobby->cold)) SKIP("no room cools: the system has no membarrier");
}

/* ---- counting ---- */

/* A cold room counts for as long as somebody asks for it, and is cold again after that (LOBBY-4). */
static void *count_in_the_cold(void *unused) {
    struct lobby *lobby = cc__lobby_of(&mutex);
    cool(lobby);
    for (int i = 0; i < 3; i++) {
        use(7);
        bool heats = cc__lobby_count_begin(lobby);
        CHECK(heats);
        CHECK_EQ(cc__get(&lobby->quiet), 0);
        use(100);
        CHECK_EQ(cc__get(&lobby->quiet), 100);
        CHECK(!cc__lobby_count_begin(lobby)); /* another, who has nothing to end */
        cc__lobby_count_end(lobby, false);
        CHECK_EQ(cc__get(&lobby->cold), 0);
        cc__lobby_count_end(lobby, heats);
        CHECK_EQ(cc__get(&lobby->cold), 1);
        CHECK_EQ(lobby->heating, 0);
    }
    return unused;
}

TEST_WORKERS(a_cold_room_counts) {
    CHECK_EQ(cc_run(count_in_the_cold, NULL, NULL), 0);
}

static void *lock_once(void *arg) {
    CHECK_EQ(cc_mutex_lock(&mutex), 0);
    CHECK_EQ(cc_mutex_unlock(&mutex), 0);
    return arg;
}

/* One who comes to wait while another counts has heated the room for itself: it stays hot when the count is over, and
 * the unlock finds who waits. */
static void *wait_meanwhile(void *unused) {
    struct lobby *lobby = cc__lobby_of(&mutex);
    for (int i = 0; i < 3; i++) {
        cool(lobby);
        bool heats = cc__lobby_count_begin(lobby);
        CHECK_EQ(cc_mutex_lock(&mutex), 0);
        CCTask task = cc_fiber_spawn_task(lock_once, NULL);
        await_lobby(&mutex, 1);
        cc__lobby_count_end(lobby, heats);
        CHECK_EQ(cc__get(&lobby->cold), 0);
        CHECK_EQ(lobby->heating, 0);
        CHECK_EQ(cc_mutex_unlock(&mutex), 0);
        CHECK_EQ(cc_task_join(&task, NULL), 0);
    }
    return unused;
}

TEST_WORKERS(who_waits_while_one_counts) {
    CHECK_EQ(cc_run(wait_meanwhile, NULL, NULL), 0);
}

/* ---- the verdict ---- */

/* Without unlocks there is no rush, whatever was believed; and the room is as cold as it was. */
static void *count_nothing(void *unused) {
    struct lobby *lobby = cc__lobby_of(&mutex);
    cool(lobby);
    for (uint32_t level = 0; level <= RUSH_LEVELS; level++) {
        cc__set(&lobby->rush, level);
        cc__set(&lobby->turn, 0);
        CHECK(!cc__rush_stand_back(lobby));
        CHECK_EQ(cc__get(&lobby->rush), 0);
        CHECK_EQ(cc__get(&lobby->cold), 1);
        CHECK(!cc__rush_stand_back(lobby)); /* not counted */
        CHECK_EQ(cc__get(&lobby->turn), 2);
    }
    return unused;
}

TEST(without_unlocks_no_rush) {
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = 1}), 0);
    CHECK_EQ(cc_run(count_nothing, NULL, NULL), 0);
}

static atomic_bool enough;

/* As unlocks in a hot room do. */
static void *count_up(void *arg) {
    struct lobby *lobby = arg;
    while (!atomic_load_explicit(&enough, memory_order_relaxed))
        cc__set(&lobby->quiet, (cc__get(&lobby->quiet) + 1) & INT32_MAX);
    return NULL;
}

/* With more than cores could make that pass the mutex to each other, everybody stands back in the end. */
TEST(many_unlocks_are_a_rush, .timeout = 60) {
    if (cc__affinity_single() || test_scale(100) < 5) SKIP("nobody else runs, or much too slowly");
    struct lobby *lobby = cc__lobby_of(&mutex);
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, count_up, lobby), 0);
    while (cc__get(&lobby->rush) < RUSH_LEVELS) cc__rush_stand_back(lobby);
    cc__set(&lobby->turn, 1);
    CHECK(cc__rush_stand_back(lobby)); /* by what is known, without a count */
    atomic_store(&enough, true);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    cc__set(&lobby->turn, RUSH_TURNS);
    CHECK(!cc__rush_stand_back(lobby)); /* and one of many counts again */
}

/* ---- who stands back ---- */

static void *try_in_a_rush(void *arg) {
    struct lobby *lobby = arg;
    cc__set(&lobby->rush, RUSH_LEVELS);
    cc__set(&lobby->turn, 5);
    CHECK_EQ(cc_mutex_lock_until(&mutex, cc_after_ns(1000)), ETIMEDOUT);
    CHECK_EQ(cc__get(&lobby->rush), RUSH_LEVELS);
    CHECK_EQ(cc__get(&lobby->turn), 5);
    CHECK_EQ(cc_mutex_lock_until(&mutex, cc_after_ms(1000)), ETIMEDOUT);
    CHECK_EQ(cc__get(&lobby->rush), 0);
    CHECK_EQ(cc__get(&lobby->turn), 0);
    return NULL;
}

/* The mutex is held by one who does not give it back: whoever stood back in vain says that the rush is over. One whose
 * deadline is near does not stand back (RUSH-3). */
TEST(little_time_and_much) {
    if (cc__affinity_single()) SKIP("nobody spins");
    pthread_t thread;
    CHECK_EQ(cc_mutex_lock(&mutex), 0);
    CHECK_EQ(pthread_create(&thread, NULL, try_in_a_rush, cc__lobby_of(&mutex)), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(in_lobby(&mutex), 0);
    CHECK_EQ(cc_mutex_unlock(&mutex), 0);
    use(1);
}
