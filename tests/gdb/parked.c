/* parked.c - a program for the debugger: named fibers in every kind of wait. run.sh stops it in stop_here(), when all
 * of them are parked, and runs the commands.
 *
 * With an argument it aborts there.
 */
#include "fiber/pool.h"
#include "fiber/state.h"

#include <ccc/ccc.h>

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static CCChan *orders, *plates, *silent;
static CCMutex knife;
static CCTask cook;
static CCNursery *kitchen;
static _Atomic int held, spinning, over;

/* Functions that a backtrace must show; not inlined, and not left by a jump. */
#define VISIBLE __attribute__((noinline))
#define STAY() __asm__ volatile("" ::: "memory")

static VISIBLE int wait_for_order(CCChan *from) {
    int order;
    int rc = cc_chan_recv(from, &order, sizeof order);
    STAY();
    return rc;
}

static void *cook_orders(void *arg) {
    wait_for_order(orders);
    STAY();
    return arg;
}

static VISIBLE void serve(int plate) {
    cc_chan_send(plates, &plate, sizeof plate);
    STAY();
}

static void *serve_plates(void *arg) {
    for (int i = 0; i < 3; i++) serve(i);
    return arg;
}

static void *hold_knife(void *arg) {
    if (cc_mutex_lock(&knife) != 0) return NULL;
    held = 1;
    wait_for_order(silent);
    cc_mutex_unlock(&knife);
    return arg;
}

static void *want_knife(void *arg) {
    while (!held) cc_yield();
    if (cc_mutex_lock(&knife) == 0) cc_mutex_unlock(&knife);
    return arg;
}

static void *wait_for_cook(void *arg) {
    cc_task_join(&cook, NULL);
    STAY();
    return arg;
}

static void *rest(void *arg) {
    cc_sleep_ms(3600 * 1000);
    STAY();
    return arg;
}

static void *choose(void *arg) {
    int value;
    size_t chosen;
    CCCase cases[] = {{.kind = CC_CASE_RECV, .ch = orders, .value = &value, .size = sizeof value},
                      {.kind = CC_CASE_RECV, .ch = silent, .value = &value, .size = sizeof value}};
    cc_select(cases, 2, cc_after_ms(3600 * 1000), &chosen);
    STAY();
    return arg;
}

static void *choose_nothing(void *arg) {
    int value;
    size_t chosen;
    CCCase cases[] = {CC_RECV((CCChan *)NULL, &value, NULL), CC_SEND((CCChan *)NULL, &value, NULL)};
    cc_select(cases, 2, CC_FOREVER, &chosen);
    STAY();
    return arg;
}

static void *run_kitchen(void *arg) {
    kitchen = cc_nursery_create_ex(&(CCNurseryConfig){.name = "kitchen", .deadline = cc_after_ms(3600 * 1000)});
    for (int i = 0; i < 2; i++) cc_nursery_spawn(kitchen, cook_orders, NULL);
    cc_nursery_wait(kitchen);
    return arg;
}

/* A task that its joiner runs, as a call; sometimes another worker is faster, which is not visible. */
static VISIBLE void *be_run(void *arg) {
    if (arg == NULL) return NULL;
    cc_fiber_set_name("callee");
    wait_for_order(silent);
    STAY();
    return arg;
}

static VISIBLE void *run_it(void *arg) {
    char here;
    for (int i = 0; i < 100; i++) (void)cc_block_on(cc_fiber_spawn_task(be_run, NULL));
    CCTask task = cc_fiber_spawn_task(be_run, &here);
    cc_task_join(&task, NULL);
    STAY();
    return arg;
}

static VISIBLE void spin_here(void) {
    spinning = 1;
    while (!over) sched_yield();
}

static void *spin(void *arg) {
    spin_here();
    STAY();
    return arg;
}

/* Fibers that have started and are parked. */
static unsigned parked(void) {
    unsigned n = 0;
    for (uint32_t slot = 0; slot < cc__pool_size(); slot++) {
        struct fiber *f = cc__pool_at(slot);
        n += cc__word_state(cc__get(&f->word)) == FIBER_PARKED && cc__get(&f->stack) != NULL;
    }
    return n;
}

VISIBLE void stop_here(const char *why) {
    if (why != NULL) raise(SIGABRT); /* which may return, for all that the compiler knows: the frame is whole */
    STAY();
}

static CCTask start(CCTaskFn fn, const char *name) {
    CCTask task;
    CCSpawnOptions options = {.name = name};
    if (cc_spawn(&task, fn, NULL, &options) != 0) abort();
    return task;
}

int main(int argc, char **argv) {
    CCRuntimeConfig config = {.workers = 2};
    if (cc_record_start(NULL) != 0 || cc_runtime_init(&config) != 0) return 1;
    orders = cc_chan_create_ex(&(CCChanConfig){.elem_size = sizeof(int), .name = "orders"});
    plates = cc_chan_create_ex(&(CCChanConfig){.elem_size = sizeof(int), .capacity = 2, .name = "plates"});
    silent = cc_chan_create_ex(&(CCChanConfig){.elem_size = sizeof(int), .name = "silent"});
    unsigned expected = 0;
    cook = start(cook_orders, "cook"), expected++;
    start(cook_orders, "second cook"), expected++;
    start(serve_plates, "servant"), expected++;
    start(hold_knife, "holder"), expected++;
    start(want_knife, "contender"), expected++;
    start(wait_for_cook, "joiner"), expected++;
    start(rest, "sleeper"), expected++;
    start(choose, "chooser"), expected++;
    start(choose_nothing, "undecided"), expected++;
    start(run_kitchen, "chef"), expected += 3;
    start(run_it, "caller"), expected += 2;
    start(spin, "spinner");
    while (parked() < expected || !spinning) sched_yield();
    cc_note("the kitchen is open");
    puts("all of them rest");
    fflush(stdout);
    stop_here(argc > 1 ? argv[1] : NULL);
    _Exit(0);
}
