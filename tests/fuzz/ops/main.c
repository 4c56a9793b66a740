/* main.c - one input: sets the world up, runs its programs under a guardian, and checks that nothing leaks.
 *
 *   OPS_WORKERS=1   simulated time and the exact model (the default)
 *   OPS_WORKERS=N   N workers, real time, and the books only
 *   OPS_TRACE=1     every operation on stderr
 *   OPS_RUNS=N      without libFuzzer: each input N times
 *
 * With OPS_STANDALONE it takes the names of inputs as arguments: for compilers without libFuzzer, and for
 * tools that are incompatible with it.
 */
#include "ops.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct world world;
bool tracing;
static unsigned workers;

void trace(const struct actor *self, const char *format, ...) {
    if (!tracing) return;
    char line[200];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    fprintf(stderr, "%8llu us  actor %u %s\n", (unsigned long long)(cc_now_ns() / 1000 % 100000000), self->id, line);
}

void wrong(const char *format, ...) {
    char line[300];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    fprintf(stderr, "WRONG: %s\n", line);
    for (unsigned i = 0; i < world.actors_made && world.exact; i++) {
        const struct actor *a = &world.actors[i];
        if (a->ended) continue;
        fprintf(stderr, "actor %u, program %d, %s%s%s%s", i, (int)(a->program - world.plan->programs),
                a->fiber == NULL ? "not started" : "alive", a->shield ? ", shielded" : "",
                a->task_cancelled ? ", cancelled" : "",
                a->scope != NULL && a->scope->cancelled ? ", its scope too" : "");
        if (a->call != NULL)
            fprintf(stderr, "; waits (%s)%s%s", cc__park_name(a->call->park), a->call->served ? ", served" : "",
                    a->call->gone ? ", gone" : "");
        fprintf(stderr, "\n");
    }
    plan_print(world.plan);
    abort();
}

/* ---- the guardian ---- */

static void cancel_outsiders(void) {
    for (unsigned i = 0; i < ACTORS; i++) {
        CCTask task = {world.outside[i]};
        if (task.id == 0) continue;
        model_look(NULL);
        REQUIRE(cc_task_cancel(&task) == 0, "cc_task_cancel");
        if (world.exact && !world.actors[i].ended) world.actors[i].task_cancelled = true;
    }
}

/* True: there are none. */
static bool join_outsiders(void) {
    bool all = true;
    for (unsigned i = 0; i < ACTORS; i++) {
        CCTask task = {world.outside[i]};
        if (task.id == 0) continue;
        int rc = cc_task_join_until(&task, NULL, cc_after_ms(1));
        REQUIRE(rc == 0 || rc == ENOTRECOVERABLE || rc == ETIMEDOUT, "the guardian's join answered %d", rc);
        world.outside[i] = task.id; /* 0 if it has ended */
        all = false;                /* it may have started another one */
    }
    return all;
}

/* A cancelled actor may have to lock a mutex again that another one holds, which is not cancelled yet: so all are
 * cancelled, again and again, also those that were started meanwhile. */
static void end_all(void) {
    (void)cc_nursery_wait_until(world.root, cc_after_ms(25));
    while (cc_nursery_children(world.root) > 0) {
        cancel_outsiders();
        (void)cc_nursery_wait_until(world.root, cc_after_ms(1));
    }
    do cancel_outsiders();
    while (!join_outsiders());
    for (unsigned i = 0; i < TASKS; i++) {
        CCTask task = {world.tasks[i]};
        if (task.id != 0) REQUIRE(cc_task_detach(&task) == 0, "cc_task_detach");
    }
}

/* Runs everything, and returns when nothing is left. */
static void guard(void) {
    CCNurseryConfig config = {
        .root = true, .deadline = cc_after_ns(20000000), .grace_ms = 1, .name = "all"}; /* OPS-4 */
    struct model_scope *scope = NULL;
    world.root = cc_nursery_create_ex(&config);
    REQUIRE(world.root != NULL, "no nursery");
    if (world.exact) scope = model_scope_new(NULL, (struct scope *)(void *)world.root, true, false, config.deadline.ns);
    for (unsigned i = 0; i < world.plan->starters; i++) {
        struct actor *a = actor_new(i);
        if (a == NULL) break; /* those that run already have started so many */
        a->rooted = true;
        a->base_nursery = world.root;
        REQUIRE(cc_nursery_spawn(world.root, actor_main, a) == 0, "cc_nursery_spawn");
        model_spawned(a, scope);
    }
    end_all();
    int rc = cc_nursery_wait(world.root);
    model_look(NULL);
    struct call waited = {.nursery = scope};
    if (world.exact) {
        waited.outcome = model_outcome(scope);
        REQUIRE(model_explains(&waited, rc), "all ended with %d, expected %d", rc, waited.outcome);
    }
    if (world.exact) model_scope_end(scope);
    REQUIRE(cc_nursery_free(world.root) == 0, "cc_nursery_free");
}

static void *guard_fiber(void *unused) {
    guard();
    return unused;
}

/* ---- one input ---- */

static void channels_open(void) {
    for (unsigned i = 0; i < CHANNELS; i++) {
        CCChanConfig config = {.elem_size = world.plan->channels[i].size,
                               .capacity = world.plan->channels[i].capacity,
                               .mode = world.plan->channels[i].mode};
        world.ch[i] = cc_chan_create_ex(&config);
        REQUIRE(world.ch[i] != NULL, "no channel");
    }
}

/* Remaining values are received here. */
static void channels_close(void) {
    for (unsigned i = 0; i < CHANNELS; i++) {
        unsigned char bytes[VALUE_MAX];
        CCChan *ch = world.ch[i];
        if (ch == NULL) continue;
        REQUIRE(cc_chan_close(ch) == 0, "cc_chan_close");
        while (cc_chan_recv_try(ch, bytes, world.plan->channels[i].size) == 0) {
            uint32_t value = books_received(NULL, i, bytes);
            if (!world.exact || world.plan->channels[i].size == 0) continue;
            struct model_channel *m = &world.channels[i];
            REQUIRE(m->count > 0 && m->ring[0] == value, "channel %u holds %#x", i, value);
            memmove(m->ring, m->ring + 1, --m->count * sizeof *m->ring);
        }
        if (world.exact && world.plan->channels[i].size > 0)
            REQUIRE(world.channels[i].count == 0, "channel %u has lost something", i);
        books_dropped(i, cc_chan_dropped(ch));
        cc_chan_free(ch);
    }
}

/* All actors have ended. */
static void check_stats(void) {
    CCStats stats;
    uint64_t drivers = cc_in_fiber() ? 1 : 0, patience = cc_now_ns() + UINT64_C(5000000000);
    do { /* a child leaves its nursery a moment before it ends; with one worker that is not visible */
        REQUIRE(cc_stats(&stats, sizeof stats) == 0, "cc_stats");
    } while (workers > 1 && stats.spawned != stats.finished && cc_now_ns() < patience);
    REQUIRE(stats.spawned == stats.finished + drivers, "%llu fibers were started, %llu have ended",
            (unsigned long long)(stats.spawned - drivers), (unsigned long long)stats.finished);
    uint64_t by = 0;
    for (unsigned i = 0; i < CC_STATS_REASONS; i++) by += stats.parks_by[i];
    REQUIRE(by == stats.parks, "%llu waits, by reason %llu", (unsigned long long)stats.parks, (unsigned long long)by);
}

int one_input(const uint8_t *data, size_t size);
int one_input(const uint8_t *data, size_t size) {
    static struct plan plan;
    if (!plan_decode(&plan, data, size)) return 0;
    memset(&world, 0, sizeof world);
    world.plan = &plan;
    world.exact = workers == 1;
    world.budget = BUDGET;
    if (tracing) plan_print(&plan);
    books_open();
    channels_open();
    if (workers == 1)
        guard();
    else
        REQUIRE(cc_run(guard_fiber, NULL, NULL) == 0, "the guardian did not end well");
    channels_close();
    world.exact = false;
    books_close();
    check_stats();
    return 0;
}

/* ---- many ---- */

#ifdef OPS_STANDALONE
static int run_file(const char *name, int runs) {
    static uint8_t data[1 << 16];
    FILE *file = fopen(name, "rb");
    if (file == NULL) {
        perror(name);
        return 1;
    }
    size_t size = fread(data, 1, sizeof data, file);
    fclose(file);
    while (runs-- > 0) (void)one_input(data, size);
    return 0;
}

static int drive(int argc, char **argv) {
    const char *wish = getenv("OPS_RUNS");
    int failed = 0;
    for (int i = 1; i < argc; i++) {
        alarm(120); /* a hang is a failure, too */
        failed |= run_file(argv[i], wish != NULL ? atoi(wish) : 1);
    }
    printf("%d inputs\n", argc - 1);
    return failed;
}
#else
int LLVMFuzzerRunDriver(int *argc, char ***argv, int (*one)(const uint8_t *data, size_t size));

static int drive(int argc, char **argv) {
    return LLVMFuzzerRunDriver(&argc, &argv, one_input);
}
#endif

struct arguments {
    int argc, status;
    char **argv;
};

static void *driver(void *arguments) {
    struct arguments *a = arguments;
    a->status = drive(a->argc, a->argv);
    return NULL;
}

/* With one worker the fuzzer itself is a fiber: an input then costs no switch between threads. With several it must not
 * be one: it may not change threads. */
int main(int argc, char **argv) {
    struct arguments a = {.argc = argc, .argv = argv, .status = 1};
    const char *wish = getenv("OPS_WORKERS");
    CCSpawnOptions options = {.name = "driver", .stack_size = (size_t)64 << 20};
    CCTask task;
    workers = wish != NULL && atoi(wish) > 0 ? (unsigned)atoi(wish) : 1;
    tracing = getenv("OPS_TRACE") != NULL;
    CCRuntimeConfig config = {.workers = workers, .max_workers = workers};
    (void)setenv("CC_MIN_WORKERS", "512", 0); /* all of them have threads, however few CPUs there are */
    (void)setenv("CC_PREEMPT", "0", 0);       /* the model knows where fibers stop */
    if (cc_runtime_init(&config) != 0) return 1;
    if (workers == 1) {
        sim_start();
        if (cc_spawn(&task, driver, &a, &options) != 0 || cc_task_join(&task, NULL) != 0) return 1;
    } else {
        a.status = drive(argc, argv);
    }
    return cc_runtime_shutdown(10000) == 0 ? a.status : 1;
}
