/* island.c - the worker of an island: wakes from outside against its sleep; its end. */
#include "explore.h"

#include <ccc/ccc.h>
#include <errno.h>

static CCIsland *island;
static CCTask fiber;
static CCChan *ch;
static int got;

static void *receives(void *arg) {
    (void)arg;
    EX_CHECK(cc_island_current() == island);
    EX_EQ(cc_chan_recv(ch, &got, sizeof got), 0);
    EX_CHECK(cc_island_current() == island);
    return NULL;
}
static void *nothing(void *arg) {
    return arg;
}
static void open_island(void) {
    EX_EQ(cc_island_create(&island, NULL), 0);
    got = 0;
}
static void parked_setup(void) {
    open_island();
    ch = cc_chan_create(sizeof(int), 0);
    EX_EQ(cc_island_spawn(island, &fiber, receives, NULL, NULL), 0);
    ex_settle();
}
static void sends(void) {
    int v = 5;
    EX_EQ(cc_chan_send(ch, &v, sizeof v), 0);
}
static void joins(void) {
    CCTask own = fiber;
    EX_EQ(cc_task_join(&own, NULL), 0);
    EX_EQ(got, 5);
}
SCENARIO(island_wake, "ISLAND-2: an OS thread wakes a fiber of an island that sleeps", .workers = 1, .no_timer = true,
         .setup = parked_setup, .threads = {sends, joins});

static void starts(void) {
    CCTask task;
    EX_EQ(cc_island_spawn(island, &task, nothing, NULL, NULL), 0);
    EX_EQ(cc_task_join(&task, NULL), 0);
}
static void settled_setup(void) {
    open_island();
    ex_settle();
}
SCENARIO(island_spawn, "ISLAND-2: two threads start fibers while it goes to sleep", .workers = 1, .no_timer = true,
         .setup = settled_setup, .threads = {starts, starts});

/* ISLAND-3: the end, against the last fiber. */
static void start_detached(void) {
    EX_EQ(cc_island_spawn(island, NULL, nothing, NULL, NULL), 0);
}
static void frees(void) {
    start_detached();
    EX_EQ(cc_island_free(island), 0);
}
SCENARIO(island_free, "ISLAND-3: freed right after a start", .workers = 1, .no_timer = true, .setup = settled_setup,
         .threads = {frees});

/* ISLAND-4: a deadline of other fibers, which a fiber of the island has set, after the end of the island. It is too far
 * away to wake a worker when it is set. */
static CCNursery *under;
static CCEvent nobody_sets;
static void *waits_below(void *arg) {
    EX_EQ(cc_event_wait(&nobody_sets), ECANCELED);
    return arg;
}
static void *sets_deadline(void *arg) {
    EX_EQ(cc_nursery_set_deadline(under, cc_after_ms(1000)), 0);
    return arg;
}
static void below_setup(void) {
    open_island();
    under = cc_nursery_create_ex(&(CCNurseryConfig){.root = true});
    EX_EQ(cc_nursery_spawn(under, waits_below, NULL), 0);
    ex_settle();
}
static void frees_first(void) {
    EX_EQ(cc_island_call(island, sets_deadline, NULL, NULL), 0);
    EX_EQ(cc_island_free(island), 0);
    EX_EQ(cc_nursery_wait(under), ETIMEDOUT);
    EX_EQ(cc_nursery_free(under), 0);
}
SCENARIO(island_alarm, "ISLAND-4: an island ends before a deadline that it has set", .workers = 1, .setup = below_setup,
         .threads = {frees_first});
