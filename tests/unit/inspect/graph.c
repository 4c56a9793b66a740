/* graph.c - which fibers could end a wait: one pass over all stacks finds the same ones as a search for each wait. */
#include "harness.h"

#include "inspect/waits.h"
#include "sched/upcalls.h"

#include <ccc/ccc.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

enum { FIBERS = 60, SHOWN = 8 };

struct pair {
    CCChan *own, *other;
    char far[512]; /* the search also looks at what is behind a pointer */
};

static CCChan *channels[4];
static struct pair pairs[FIBERS];

/* It waits for one channel; the other one is in memory that its stack points to. */
static void *wait_for_one(void *arg) {
    struct pair *volatile pair = arg;
    int v;
    MAY_FAIL(cc_chan_recv(pair->own, &v, sizeof v));
    return pair;
}

static void *wait_for_two(void *arg) {
    struct pair *volatile pair = arg;
    int v, w;
    size_t chosen;
    CCCase cases[] = {{.kind = CC_CASE_RECV, .ch = pair->own, .value = &v, .size = sizeof v},
                      {.kind = CC_CASE_RECV, .ch = pair->other, .value = &w, .size = sizeof w}};
    MAY_FAIL(cc_select(cases, 2, CC_FOREVER, &chosen));
    return pair;
}

static bool all_wait(void) {
    struct view v;
    unsigned n = 0;
    for (uint32_t slot = 0; slot < cc__pool_size(); slot++)
        n += cc__view_take(slot, false, &v) && v.state == FIBER_PARKED && !v.moves;
    return n == FIBERS;
}

struct found {
    unsigned count;
    struct fiber *servers[SHOWN];
};

static void find_all(struct found *found) {
    struct view v;
    memset(found, 0, FIBERS * sizeof *found);
    for (uint32_t slot = 0, i = 0; slot < cc__pool_size(); slot++) {
        if (!cc__view_take(slot, false, &v)) continue;
        CHECK(i < FIBERS);
        found[i].count = cc__graph_servers(cc__view_what(&v), v.fiber, found[i].servers, SHOWN);
        i++;
    }
}

static struct found one_by_one[FIBERS], by_one_pass[FIBERS];

/* On a thread of its own: stacks of the fibers hold pointers to frames of the thread that started them, and the frames
 * of the search, which hold channels, would be there. */
static void *search(void *arg) {
    CHECK_EQ(cc__upcall_enter(false), 0);
    find_all(one_by_one);
    cc__graph_begin();
    find_all(by_one_pass);
    cc__graph_end();
    cc__upcall_leave();
    return arg;
}

TEST(one_pass_finds_the_same) {
    pthread_t thread;
    CCTask tasks[FIBERS];
    unsigned most = 0, least = FIBERS;
    for (int i = 0; i < 4; i++) channels[i] = cc_chan_create(sizeof(int), 0);
    for (int i = 0; i < FIBERS; i++) { /* the last two have a channel of their own */
        bool last = i >= FIBERS - 2;
        pairs[i].own = channels[last ? 2 : i % 2];
        pairs[i].other = channels[last ? 3 : 1 - i % 2];
        CHECK_EQ(cc_spawn(&tasks[i], i % 5 == 0 ? wait_for_two : wait_for_one, &pairs[i], NULL), 0);
    }
    while (!all_wait()) sched_yield();
    CHECK_EQ(pthread_create(&thread, NULL, search, NULL), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    for (int i = 0; i < FIBERS; i++) {
        if (one_by_one[i].count > most) most = one_by_one[i].count;
        if (one_by_one[i].count < least) least = one_by_one[i].count;
        CHECK_EQ(by_one_pass[i].count, one_by_one[i].count);
        CHECK(memcmp(by_one_pass[i].servers, one_by_one[i].servers, sizeof one_by_one[i].servers) == 0);
    }
    CHECK(most > SHOWN);
    printf("from %u to %u fibers\n", least, most); /* old words in stacks count, too */
    for (int i = 0; i < 4; i++) CHECK_EQ(cc_chan_close(channels[i]), 0);
    for (int i = 0; i < FIBERS; i++) CHECK_EQ(cc_task_join(&tasks[i], NULL), 0);
    for (int i = 0; i < 4; i++) cc_chan_free(channels[i]);
}
