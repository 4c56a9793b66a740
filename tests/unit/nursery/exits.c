/* exits.c - what a nursery owns until its end: hooks, channels, memory, values. */
#include "scene.h"

static int order[16], noted;

static void note(void *arg) {
    order[noted++] = (int)(intptr_t)arg;
}

static void in_reverse(void) {
    noted = 0;
    CCNursery *n = new_nursery(NULL);
    for (intptr_t i = 0; i < 5; i++) CHECK_EQ(cc_nursery_at_exit(n, note, (void *)i), 0);
    CHECK_EQ(cc_nursery_spawn(n, nothing, NULL), 0);
    CHECK_EQ(cc_nursery_wait(n), 0);
    CHECK_EQ(noted, 5);
    for (int i = 0; i < 5; i++) CHECK_EQ(order[i], 4 - i);
    CHECK_EQ(cc_nursery_wait(n), 0);
    CHECK_EQ(noted, 5); /* once */
    CHECK_EQ(cc_nursery_at_exit(n, note, (void *)9), 0);
    CHECK_EQ(cc_nursery_free(n), 0); /* without a wait */
    CHECK_EQ(noted, 6);
    CHECK_EQ(order[5], 9);
}

TEST_WORKERS(hooks_in_reverse_order) {
    in_reverse();
    in_fiber(in_reverse);
}

/* After the children, in whichever way they end. */
static atomic_int children_left;

static void *end_late(void *arg) {
    (void)arg;
    for (int i = 0; i < 20; i++) cc_yield();
    atomic_fetch_sub(&children_left, 1);
    return CC_ERROR(EIO);
}

static void check_nobody_left(void *arg) {
    (void)arg;
    CHECK_EQ(children_left, 0);
    noted++;
}

static void after_the_children(void) {
    noted = 0;
    children_left = 5;
    int rc;
    CC_NURSERY(n, .result = &rc) {
        CHECK_EQ(cc_nursery_at_exit(n, check_nobody_left, NULL), 0);
        for (int i = 0; i < 5; i++) CHECK_EQ(cc_nursery_spawn(n, end_late, NULL), 0);
    }
    CHECK_EQ(rc, EIO);
    CHECK_EQ(noted, 1);
    children_left = 1;
    CCNursery *n = new_nursery(NULL);
    CHECK_EQ(cc_nursery_at_exit(n, check_nobody_left, NULL), 0);
    CHECK_EQ(cc_nursery_spawn(n, end_late, NULL), 0);
    int wait = cc_nursery_wait_until(n, CC_FOREVER);
    CHECK_EQ(wait, EIO);
    CHECK_EQ(noted, 2);
    CHECK_EQ(cc_nursery_free(n), 0);
}

TEST_WORKERS(hooks_after_the_children) {
    after_the_children();
    in_fiber(after_the_children);
}

/* A hook may start children, and these may add hooks: all of them end before the nursery does. */
static CCNursery *the_nursery;
static atomic_int late_children, late_hooks;

static void count_hook(void *arg) {
    (void)arg;
    atomic_fetch_add(&late_hooks, 1);
}

static void *late_child(void *arg) {
    for (int i = 0; i < 10; i++) cc_yield();
    atomic_fetch_add(&late_children, 1);
    CHECK_EQ(cc_nursery_at_exit(the_nursery, count_hook, arg), 0);
    return NULL;
}

static void spawn_from_hook(void *arg) {
    CHECK_EQ(cc_nursery_spawn(the_nursery, late_child, arg), 0);
}

static void hooks_spawn(void) {
    late_children = late_hooks = 0;
    the_nursery = new_nursery(NULL);
    for (int i = 0; i < 3; i++) CHECK_EQ(cc_nursery_at_exit(the_nursery, spawn_from_hook, NULL), 0);
    CHECK_EQ(cc_nursery_wait(the_nursery), 0);
    CHECK_EQ(late_children, 3);
    CHECK_EQ(late_hooks, 3);
    CHECK_EQ(cc_nursery_at_exit(the_nursery, spawn_from_hook, NULL), 0);
    CHECK_EQ(cc_nursery_wait_until(the_nursery, CC_FOREVER), 0);
    CHECK_EQ(late_children, 4);
    CHECK_EQ(late_hooks, 4);
    CHECK_EQ(cc_nursery_at_exit(the_nursery, spawn_from_hook, NULL), 0);
    CHECK_EQ(cc_nursery_free(the_nursery), 0);
    CHECK_EQ(late_children, 5);
    CHECK_EQ(late_hooks, 5);
}

TEST_WORKERS(hooks_that_start_children) {
    hooks_spawn();
    in_fiber(hooks_spawn);
}

/* ---- several callers wait ---- */

static struct {
    CCNursery *nursery;
    CCChan *channel;
    CCEvent go_on;
    atomic_int in_hook, returned;
} waits;

static void slow_hook(void *arg) {
    atomic_store(&waits.in_hook, 1);
    CHECK_EQ(cc_event_wait(&waits.go_on), 0);
    CHECK_EQ(noted, 0);
    CHECK(!cc_chan_is_closed(waits.channel));
    note(arg);
}

static void *wait_as_one_of_many(void *arg) {
    (void)arg;
    CHECK_EQ(cc_nursery_wait(waits.nursery), 0);
    atomic_fetch_add(&waits.returned, 1);
    CHECK_EQ(noted, 2);
    CHECK(cc_chan_is_closed(waits.channel));
    return NULL;
}

static void begin_waits(void (*last_hook)(void *)) {
    noted = 0;
    waits.in_hook = waits.returned = 0;
    cc_event_reset(&waits.go_on);
    waits.channel = cc_chan_create(0, 0);
    waits.nursery = new_nursery(NULL);
    CHECK_EQ(cc_nursery_autoclose(waits.nursery, waits.channel), 0);
    CHECK_EQ(cc_nursery_at_exit(waits.nursery, note, (void *)1), 0);
    CHECK_EQ(cc_nursery_at_exit(waits.nursery, last_hook, (void *)2), 0);
}

static void end_waits(void) {
    CHECK_EQ(cc_nursery_free(waits.nursery), 0);
    cc_chan_free(waits.channel);
}

/* One of them runs the exits, in their order; the others wait for that, too. */
static void several_wait(void) {
    enum { WAITERS = 3 };
    CCTask tasks[WAITERS];
    begin_waits(slow_hook);
    for (int i = 0; i < WAITERS; i++) tasks[i] = cc_fiber_spawn_task(wait_as_one_of_many, NULL);
    for (int i = 0; i < WAITERS; i++) UNTIL(is_parked(tasks[i].id) || waits.returned > 0);
    UNTIL(waits.in_hook);
    CHECK_EQ(waits.returned, 0);
    CHECK_EQ(cc_nursery_wait_until(waits.nursery, CC_PASSED), ETIMEDOUT);
    cc_event_set(&waits.go_on);
    CHECK_EQ(cc_join_all(tasks, WAITERS, NULL, CC_FOREVER), 0);
    CHECK_EQ(waits.returned, WAITERS);
    CHECK_EQ(order[0], 2);
    CHECK_EQ(order[1], 1);
    end_waits();
}

TEST_WORKERS(exits_before_every_wait_returns) {
    several_wait();
    in_fiber(several_wait);
}

static void panicking_hook(void *arg) {
    slow_hook(arg);
    cc_panic("a hook panics");
}

static void waits_and_panics(void *arg) {
    (void)wait_as_one_of_many(arg);
}

static void *try_to_wait(void *panicked) {
    if (cc_try(waits_and_panics, NULL, NULL) == ENOTRECOVERABLE) atomic_fetch_add((atomic_int *)panicked, 1);
    return NULL;
}

/* The fiber that ran the hook has ended by its panic; another one runs the rest. */
static void hook_panics_before_waiters(void) {
    atomic_int panicked = 0;
    CCTask tasks[2];
    begin_waits(panicking_hook);
    for (int i = 0; i < 2; i++) tasks[i] = cc_fiber_spawn_task(try_to_wait, &panicked);
    for (int i = 0; i < 2; i++) UNTIL(is_parked(tasks[i].id));
    cc_event_set(&waits.go_on);
    CHECK_EQ(cc_join_all(tasks, 2, NULL, CC_FOREVER), 0);
    CHECK_EQ(panicked, 1);
    CHECK_EQ(waits.returned, 1);
    end_waits();
}

TEST_WORKERS(hook_that_panics_while_others_wait) {
    hook_panics_before_waiters();
    in_fiber(hook_panics_before_waiters);
}

/* A hook that waits for the nursery does not wait for itself. */
static void wait_from_hook(void *arg) {
    spawn_from_hook(arg);
    CHECK_EQ(cc_nursery_wait(the_nursery), 0);
    CHECK_EQ(late_children, 1);
    CHECK_EQ(late_hooks, 1);
}

static void hook_waits(void) {
    late_children = late_hooks = 0;
    the_nursery = new_nursery(NULL);
    CHECK_EQ(cc_nursery_at_exit(the_nursery, wait_from_hook, NULL), 0);
    CHECK_EQ(cc_nursery_wait(the_nursery), 0);
    CHECK_EQ(late_hooks, 1);
    CHECK_EQ(cc_nursery_free(the_nursery), 0);
}

TEST_WORKERS(hook_that_waits) {
    hook_waits();
    in_fiber(hook_waits);
}

/* The caller of the hook still uses the nursery: it is not freed, and the other hooks run. */
static void free_from_hook(void *arg) {
    CHECK_EQ(cc_nursery_free(the_nursery), EDEADLK);
    count_hook(arg);
}

static void hook_frees(void) {
    late_hooks = 0;
    the_nursery = new_nursery(NULL);
    for (int i = 0; i < 2; i++) CHECK_EQ(cc_nursery_at_exit(the_nursery, free_from_hook, NULL), 0);
    CHECK_EQ(cc_nursery_wait(the_nursery), 0);
    CHECK_EQ(late_hooks, 2);
    CHECK_EQ(cc_nursery_at_exit(the_nursery, free_from_hook, NULL), 0);
    CHECK_EQ(cc_nursery_free(the_nursery), 0);
    CHECK_EQ(late_hooks, 3);
}

TEST_WORKERS(hook_that_frees) {
    hook_frees();
    in_fiber(hook_frees);
}

/* ---- channels ---- */

static CCChan *channels[3];

/* Sees which of the later channels are closed when one is. */
static void *watch(void *arg) {
    size_t i = (size_t)(uintptr_t)arg;
    int value;
    CHECK_EQ(cc_chan_recv(channels[i], &value, sizeof value), EPIPE);
    for (size_t k = 0; k < i; k++) CHECK(cc_chan_is_closed(channels[k]));
    return NULL;
}

static void close_all(void) {
    CCTask watchers[3];
    CCNursery *n = new_nursery(NULL);
    noted = 0;
    for (size_t i = 0; i < 3; i++) {
        channels[i] = cc_chan_create(sizeof(int), i);
        CHECK_EQ(cc_nursery_autoclose(n, channels[i]), 0);
    }
    CHECK_EQ(cc_nursery_autoclose(n, channels[0]), 0); /* twice is the same as once */
    for (uintptr_t i = 0; i < 3; i++) watchers[i] = cc_fiber_spawn_task(watch, (void *)i);
    CHECK_EQ(cc_nursery_spawn(n, nothing, NULL), 0);
    CHECK_EQ(cc_nursery_wait_until(n, CC_FOREVER), 0);
    for (size_t i = 0; i < 3; i++) {
        CHECK(cc_chan_is_closed(channels[i]));
        CHECK_EQ(cc_task_join(&watchers[i], NULL), 0);
    }
    for (size_t i = 0; i < 3; i++) cc_chan_free(channels[i]);
    /* Another one after the first exit. */
    channels[0] = cc_chan_create(sizeof(int), 1);
    CHECK_EQ(cc_nursery_autoclose(n, channels[0]), 0);
    CHECK(!cc_chan_is_closed(channels[0]));
    CHECK_EQ(cc_nursery_free(n), 0);
    CHECK(cc_chan_is_closed(channels[0]));
    cc_chan_free(channels[0]);
}

TEST_WORKERS(channels_close) {
    close_all();
    in_fiber(close_all);
}

/* Producers in a nursery, a consumer outside: the loop ends because the last producer has. */
static void *produce(void *ch) {
    for (int i = 0; i < 100; i++) CHECK_EQ(cc_chan_send(ch, &i, sizeof i), 0);
    return NULL;
}

static void *end_producers(void *n) {
    return CC_ERROR(cc_nursery_wait(n));
}

static void consume(void) {
    CCChan *ch = cc_chan_create(sizeof(int), 3);
    CCNursery *n = new_nursery(NULL);
    CHECK_EQ(cc_nursery_autoclose(n, ch), 0);
    for (int i = 0; i < 4; i++) CHECK_EQ(cc_nursery_spawn(n, produce, ch), 0);
    CCTask waiter = cc_fiber_spawn_task(end_producers, n);
    int value, got = 0;
    while (cc_chan_recv(ch, &value, sizeof value) == 0) got++;
    CHECK_EQ(got, 400);
    void *result;
    CHECK_EQ(cc_task_join(&waiter, &result), 0);
    CHECK(result == NULL);
    CHECK_EQ(cc_nursery_free(n), 0);
    cc_chan_free(ch);
}

TEST_WORKERS(last_producer_closes) {
    consume();
    in_fiber(consume);
}

/* ---- memory ---- */

static CCNursery *shared_arena;

static void *allocate_a_lot(void *arg) {
    unsigned char mark = (unsigned char)(uintptr_t)arg;
    unsigned char *mine[200];
    for (size_t i = 0; i < 200; i++) {
        size_t size = i * 7 % 500;
        mine[i] = cc_nursery_alloc(shared_arena, size);
        CHECK(mine[i] != NULL);
        CHECK_EQ((uintptr_t)mine[i] % _Alignof(max_align_t), 0);
        for (size_t k = 0; k < size; k++) CHECK_EQ(mine[i][k], 0);
        memset(mine[i], mark, size);
        if (i % 50 == 0) cc_yield();
    }
    for (size_t i = 0; i < 200; i++)
        for (size_t k = 0; k < i * 7 % 500; k++) CHECK_EQ(mine[i][k], mark);
    return NULL;
}

static void arena(void) {
    shared_arena = new_nursery(NULL);
    for (uintptr_t i = 1; i <= 8; i++) CHECK_EQ(cc_nursery_spawn(shared_arena, allocate_a_lot, (void *)i), 0);
    CHECK_EQ(cc_nursery_wait(shared_arena), 0);
    char *empty = cc_nursery_alloc(shared_arena, 0), *other = cc_nursery_alloc(shared_arena, 0);
    CHECK(empty != NULL && other != NULL && empty != other);
    char *large = cc_nursery_alloc(shared_arena, 1000 * 1000), *small = cc_nursery_alloc(shared_arena, 8);
    CHECK(large != NULL && small != NULL);
    for (size_t i = 0; i < 1000 * 1000; i += 500) CHECK_EQ(large[i], 0);
    memset(large, 1, 1000 * 1000);
    memset(small, 2, 8);
    CHECK(cc_nursery_alloc(shared_arena, SIZE_MAX) == NULL);
    CHECK_EQ(cc_nursery_free(shared_arena), 0);
}

TEST_WORKERS(arena_of_a_nursery) {
    arena();
    in_fiber(arena);
}

/* ---- values ---- */

static const char key_a, key_b;
static int one, two, three;

static void *look(void *arg) {
    (void)arg;
    CHECK(cc_value(&key_a) == &one);
    CHECK(cc_value(&key_b) == NULL);
    CHECK(cc_value(NULL) == NULL);
    CC_NURSERY(inner) {
        CHECK(cc_value(&key_a) == &one); /* inherited */
        CHECK_EQ(cc_nursery_set_value(inner, &key_a, &two), 0);
        CHECK_EQ(cc_nursery_set_value(inner, &key_b, &three), 0);
        CHECK(cc_value(&key_a) == &two); /* the innermost wins */
        CC_WITH_DEADLINE(CC_FOREVER) CHECK(cc_value(&key_a) == &two);
        CHECK_EQ(cc_nursery_set_value(inner, &key_a, NULL), 0);
        CHECK(cc_value(&key_a) == NULL); /* set to nothing, which hides the outer one */
        CHECK_EQ(cc_nursery_set_value(inner, &key_a, &three), 0);
        CHECK(cc_value(&key_a) == &three); /* the latest */
    }
    CHECK(cc_value(&key_a) == &one);
    CHECK(cc_value(&key_b) == NULL);
    return NULL;
}

static void *look_without(void *arg) {
    (void)arg;
    CHECK(cc_value(&key_a) == NULL);
    return NULL;
}

static void values(void) {
    CCNursery *n = new_nursery(NULL), *below = new_nursery(n);
    CHECK_EQ(cc_nursery_set_value(n, &key_a, &one), 0);
    CHECK_EQ(cc_nursery_spawn(n, look, NULL), 0);
    CHECK_EQ(cc_nursery_spawn(below, look, NULL), 0);
    CHECK_EQ(cc_run(look_without, NULL, NULL), 0);
    CHECK(cc_value(&key_a) == NULL);
    CHECK_EQ(cc_nursery_wait(below), 0);
    CHECK_EQ(cc_nursery_free(below), 0);
    CHECK_EQ(cc_nursery_wait(n), 0);
    CHECK_EQ(cc_nursery_free(n), 0);
}

TEST_WORKERS(values_are_inherited) {
    values();
    in_fiber(values);
}

/* Read while they are set. */
static void *read_on(void *stop) {
    while (!atomic_load((atomic_int *)stop)) {
        int *value = cc_value(&key_a);
        CHECK(value == NULL || value == &one || value == &two);
        cc_yield();
    }
    return NULL;
}

TEST_WORKERS(values_set_while_read) {
    atomic_int stop = 0;
    CCNursery *n = new_nursery(NULL);
    for (int i = 0; i < 4; i++) CHECK_EQ(cc_nursery_spawn(n, read_on, &stop), 0);
    for (int i = 0; i < 500; i++) CHECK_EQ(cc_nursery_set_value(n, &key_a, i % 2 ? &one : &two), 0);
    stop = 1;
    CHECK_EQ(cc_nursery_wait(n), 0);
    CHECK_EQ(cc_nursery_free(n), 0);
}
