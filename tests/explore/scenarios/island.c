/* island.c - the worker of an island: wakes that cross its border against its sleep; its end. */
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
SCENARIO(island_spawn, "ISLAND-2: two threads start fibers while it falls asleep", .workers = 1, .no_timer = true,
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
