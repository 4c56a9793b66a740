/* park_wake.c - no wake is lost and no fiber runs twice, however wakers and parkers race. */
#include "storm_park.h"

TEST_WORKERS(park_storm_one_wake_a_turn) {
    park_storm(test_rounds(30000, 3000000), false, test_seed());
    finish();
}

TEST_WORKERS(park_storm_with_wakes_to_spare) {
    park_storm(test_rounds(30000, 3000000), true, test_seed());
    finish();
}

/* ---- a token in a ring: every single wake is needed ---- */

struct ring_node {
    _Alignas(64) struct bell bell;
    struct presence presence;
    struct ring_node *next;
    atomic_long *hops; /* left */
};

static void *ring_main(void *arg) {
    struct ring_node *node = arg;
    for (;;) {
        bell_wait(&node->bell);
        arrive(&node->presence);
        long left = atomic_fetch_sub(node->hops, 1);
        leave(&node->presence);
        bell_ring(&node->next->bell);
        if (left <= 0) return NULL; /* the stop passes through the ring once */
    }
}

static void token_ring(int nodes, long hops) {
    struct ring_node *ring = aligned_alloc(64, sizeof *ring * (size_t)nodes);
    CHECK(ring != NULL);
    memset(ring, 0, sizeof *ring * (size_t)nodes);
    atomic_long left = hops;
    CCTask *tasks = allocate((size_t)nodes, sizeof *tasks);
    for (int i = 0; i < nodes; i++) {
        ring[i].next = &ring[(i + 1) % nodes];
        ring[i].hops = &left;
    }
    for (int i = 0; i < nodes; i++) tasks[i] = spawn(ring_main, &ring[i]);
    bell_ring(&ring[0].bell);
    for (int i = 0; i < nodes; i++) join(tasks[i]);
    CHECK(atomic_load(&left) <= 0);
    free(tasks);
    free(ring);
}

TEST_WORKERS(token_in_a_ring_of_two) {
    token_ring(2, test_rounds(3000000, 300000000));
    finish();
}

TEST_WORKERS(token_in_a_ring_of_100) {
    token_ring(100, test_rounds(3000000, 300000000));
    finish();
}

/* ---- pairs: many conversations side by side, so that workers steal from each other in the middle of one ---- */

struct talk {
    _Alignas(64) struct bell bells[2];
    struct presence presence[2];
    long sent[2];
    long turns;
};

struct talker {
    struct talk *talk;
    int side;
};

static void *talker_main(void *arg) {
    struct talker *t = arg;
    struct talk *talk = t->talk;
    int me = t->side, you = 1 - me;
    for (long i = 0; i < talk->turns; i++) {
        if (me == 1) bell_wait(&talk->bells[1]);
        arrive(&talk->presence[me]);
        CHECK_EQ(talk->sent[you], me == 1 ? i + 1 : i); /* ordered by the wake */
        talk->sent[me] = i + 1;
        leave(&talk->presence[me]);
        bell_ring(&talk->bells[you]);
        if (me == 0) bell_wait(&talk->bells[0]);
    }
    return NULL;
}

TEST_WORKERS(many_pairs) {
    enum { PAIRS = 32 };
    struct talk *talks = aligned_alloc(64, sizeof *talks * PAIRS);
    CHECK(talks != NULL);
    memset(talks, 0, sizeof *talks * PAIRS);
    struct talker talkers[2 * PAIRS];
    CCTask tasks[2 * PAIRS];
    for (int i = 0; i < PAIRS; i++) talks[i].turns = test_rounds(60000, 6000000);
    for (int i = 0; i < 2 * PAIRS; i++) {
        talkers[i] = (struct talker){&talks[i / 2], i % 2};
        tasks[i] = spawn(talker_main, &talkers[i]);
    }
    for (int i = 0; i < 2 * PAIRS; i++) join(tasks[i]);
    finish();
    free(talks);
}
