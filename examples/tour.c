/* tour.c - what the library can do, with figures: `make run`.
 *
 * The main thread is an ordinary OS thread. It starts each scene as a task and, until the scene ends, shows its
 * progress ten times a second. */
#define _POSIX_C_SOURCE 200809L
#include <ccc/ccc.h>

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define MILLION UINT64_C(1000000)
#define GIB (UINT64_C(1) << 30)

static bool on_terminal;
static _Atomic uint64_t progress; /* of the current scene */

/* ---- output ---- */

__attribute__((noreturn)) static void give_up(const char *what, int error) {
    printf("\n%s: %s\n", what, strerror(error));
    exit(1);
}

static void must(int error, const char *what) {
    if (error != 0) give_up(what, error);
}

/* 1234567 as "1,234,567"; the last few results stay valid. */
static const char *grouped(uint64_t n) {
    static char texts[8][32];
    static int turn;
    char *text = texts[turn++ % 8], digits[24];
    int length = snprintf(digits, sizeof digits, "%llu", (unsigned long long)n), at = 0;
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0) text[at++] = ',';
        text[at++] = digits[i];
    }
    text[at] = '\0';
    return text;
}

static double seconds(uint64_t ns) {
    return (double)ns / 1e9;
}

static void clear_line(void) {
    if (on_terminal) printf("\r\033[K");
}

/* Runs a scene and returns its result. total 0: not known. */
static void *watch(CCTaskFn scene, void *arg, const char *counted, uint64_t total) {
    CCTask task;
    void *result = NULL;
    int rc;
    atomic_store(&progress, 0);
    must(cc_spawn(&task, scene, arg, NULL), "cc_spawn");
    while ((rc = cc_task_join_until(&task, &result, cc_after_ms(100))) == ETIMEDOUT) {
        if (!on_terminal) continue;
        printf("\r\033[K   %s%s%s %s", grouped(atomic_load(&progress)), total > 0 ? " of " : "",
               total > 0 ? grouped(total) : "", counted);
        fflush(stdout);
    }
    must(rc, "cc_task_join_until");
    clear_line();
    return result;
}

static void title(int number, const char *text) {
    printf("\n%d. %s\n", number, text);
    fflush(stdout);
}

/* ---- memory ---- */

/* The number after `key` in a file of lines such as "VmRSS:  1234 kB", in bytes; 0 if there is none. */
static uint64_t kilobytes_of(const char *path, const char *key) {
    FILE *f = fopen(path, "re");
    char line[256];
    uint64_t bytes = 0;
    while (f != NULL && fgets(line, sizeof line, f) != NULL)
        if (strncmp(line, key, strlen(key)) == 0) bytes = strtoull(line + strlen(key), NULL, 10) * 1024;
    if (f != NULL) fclose(f);
    return bytes;
}

/* The one number of a control group's file; `fallback` when there is no file, or no limit in it. */
static uint64_t number_of(const char *path, uint64_t fallback) {
    FILE *f = fopen(path, "re");
    unsigned long long number;
    if (f == NULL) return fallback;
    int n = fscanf(f, "%llu", &number);
    fclose(f);
    return n == 1 ? number : fallback;
}

static uint64_t resident(void) {
    return kilobytes_of("/proc/self/status", "VmRSS:");
}

/* The resident memory once it has stopped shrinking: idle workers return the pages of pooled stacks. */
static uint64_t settled(void) {
    uint64_t start = cc_now_ns(), last = UINT64_MAX, now = resident();
    while (now < last && cc_now_ns() - start < 10000 * MILLION) {
        last = now;
        cc_sleep_ms(200);
        now = resident();
        if (on_terminal) printf("\r\033[K   %.2f GB resident", (double)now / 1e9), fflush(stdout);
    }
    clear_line();
    return now;
}

static uint64_t page_tables(void) {
    return kilobytes_of("/proc/self/status", "VmPTE:");
}

static uint64_t memory_available(void) {
    uint64_t available = kilobytes_of("/proc/meminfo", "MemAvailable:");
    uint64_t limit = number_of("/sys/fs/cgroup/memory.max", UINT64_MAX);
    uint64_t used = number_of("/sys/fs/cgroup/memory.current", 0);
    uint64_t left = limit > used ? limit - used : 0;
    return left < available ? left : available;
}

/* ---- 1: started and joined ---- */

struct batch {
    uint64_t n;
    CCTask *tasks;
    uint64_t rss_before, page_tables_before; /* when nothing had run yet */
    uint64_t ns, ns_parked, ns_woken;        /* what a scene measured */
    uint64_t rss, page_tables, parked, failed;
};

static void *give_back(void *arg) {
    return arg;
}

static void *spawn_and_join(void *arg) {
    struct batch *batch = arg;
    uint64_t sum = 0, start = cc_now_ns();
    for (uint64_t i = 0; i < batch->n; i++) {
        must(cc_spawn(&batch->tasks[i], give_back, (void *)(uintptr_t)i, NULL), "cc_spawn");
    }
    for (uint64_t i = 0; i < batch->n; i++) {
        void *result;
        must(cc_task_join(&batch->tasks[i], &result), "cc_task_join");
        sum += (uint64_t)(uintptr_t)result;
        if (i % 1024 == 0) atomic_store_explicit(&progress, i, memory_order_relaxed);
    }
    batch->ns = cc_now_ns() - start;
    if (sum != batch->n * (batch->n - 1) / 2) give_up("the sum of the results is wrong", EDOM);
    return NULL;
}

static void scene_started(struct batch *batch) {
    char heading[96];
    snprintf(heading, sizeof heading, "%s tasks, started and then joined", grouped(batch->n));
    title(1, heading);
    watch(spawn_and_join, batch, "joined", batch->n);
    uint64_t grown = resident() - batch->rss_before;
    printf("   %s tasks in %.2f s: %.0f ns for each start and join together.\n", grouped(batch->n), seconds(batch->ns),
           (double)batch->ns / (double)batch->n);
    printf("   Memory grew by %.0f bytes a task: a task needs a stack only while it runs, so these shared a few.\n",
           (double)grown / (double)batch->n);
}

/* ---- 2: parked ---- */

static atomic_bool gate_open;

static void *gate(void *arg) {
    while (!atomic_load(&gate_open)) cc_sleep_ms(1);
    return arg;
}

CC_TASK(parked_task, { CCTask gate; }) {
    atomic_fetch_add_explicit(&progress, 1, memory_order_relaxed);
    return (void *)(intptr_t)cc_task_join(&self->gate, NULL);
}

/* Waits until all have arrived or, if memory runs out, until none has arrived for two seconds. */
static void await_arrivals(uint64_t n) {
    uint64_t seen = 0, changed = cc_now_ns();
    while (atomic_load(&progress) < n && cc_now_ns() - changed < 2000 * MILLION) {
        cc_sleep_ms(1);
        uint64_t now_there = atomic_load(&progress);
        if (now_there != seen) changed = cc_now_ns();
        seen = now_there;
    }
}

static void *park_all(void *arg) {
    struct batch *batch = arg;
    CCTask at, handle;
    uint64_t start = cc_now_ns();
    must(cc_spawn(&at, gate, NULL, NULL), "cc_spawn");
    for (uint64_t i = 0; i < batch->n; i++) {
        must(cc_task_dup(&at, &handle), "cc_task_dup");
        batch->tasks[i] = CC_GO(parked_task, .gate = handle);
    }
    must(cc_task_detach(&at), "cc_task_detach");
    await_arrivals(batch->n);
    batch->ns_parked = cc_now_ns() - start;
    batch->parked = atomic_load(&progress);
    batch->rss = resident();
    batch->page_tables = page_tables();

    start = cc_now_ns();
    atomic_store(&gate_open, true);
    for (uint64_t i = 0; i < batch->n; i++) {
        void *error;
        if (cc_task_join(&batch->tasks[i], &error) != 0 || error != NULL) batch->failed++;
        if (i % 1024 == 0) atomic_store_explicit(&progress, batch->n - i, memory_order_relaxed);
    }
    batch->ns_woken = cc_now_ns() - start;
    return NULL;
}

static void scene_parked(struct batch *batch) {
    char heading[96];
    snprintf(heading, sizeof heading, "%s fibers parked at once, each on a stack of its own", grouped(batch->n));
    title(2, heading);
    watch(park_all, batch, "parked", batch->n);
    double n = (double)batch->parked;
    printf("   %s fibers parked in %.2f s, woken and joined in %.2f s.\n", grouped(batch->parked),
           seconds(batch->ns_parked), seconds(batch->ns_woken));
    if (batch->failed > 0)
        printf("   %s found no memory for a stack; their joins said so, and the program went on.\n",
               grouped(batch->failed));
    printf("   While they were parked: %.2f GB resident, %.0f bytes a fiber, and %.0f bytes of page tables.\n",
           (double)batch->rss / 1e9, (double)(batch->rss - batch->rss_before) / n,
           (double)(batch->page_tables - batch->page_tables_before) / n);

    uint64_t start = cc_now_ns(), now = settled();
    printf("   %.1f s after their end: %.2f GB. What remains are the records, which are reused.\n",
           seconds(cc_now_ns() - start), (double)now / 1e9);
}

/* ---- 3: both cores ---- */

enum { CHUNK = 10000 };

static bool is_prime(uint64_t n) {
    if (n < 2 || (n % 2 == 0 && n != 2)) return false;
    for (uint64_t d = 3; d * d <= n; d += 2)
        if (n % d == 0) return false;
    return true;
}

CC_TASK(count_primes, { uint64_t from, to; }) {
    uint64_t count = 0;
    for (uint64_t n = self->from; n < self->to; n++) count += is_prime(n);
    atomic_fetch_add(&progress, 1);
    return (void *)(uintptr_t)count;
}

struct map {
    uint64_t limit, count, ns;
    bool parallel;
};

static void *map_chunks(void *arg) {
    struct map *map = arg;
    uint64_t chunks = map->limit / CHUNK, start = cc_now_ns();
    CCTask *tasks = calloc(chunks, sizeof *tasks);
    if (tasks == NULL) give_up("calloc", ENOMEM);
    map->count = 0;
    for (uint64_t i = 0; i < chunks; i++) {
        tasks[i] = CC_GO(count_primes, .from = i * CHUNK, .to = (i + 1) * CHUNK);
        if (!map->parallel)
            map->count += (uintptr_t)cc_block_on(tasks[i]); /* the next one starts when this one has ended */
    }
    for (uint64_t i = 0; map->parallel && i < chunks; i++) map->count += (uintptr_t)cc_block_on(tasks[i]);
    map->ns = cc_now_ns() - start;
    free(tasks);
    return NULL;
}

static void scene_cores(void) {
    title(3, "A map over chunks: one task at a time, then all at once");
    struct map map = {.limit = 4 * MILLION};
    uint64_t chunks = map.limit / CHUNK;
    watch(map_chunks, &map, "chunks", chunks);
    uint64_t one_ns = map.ns, one_count = map.count;
    map.parallel = true;
    watch(map_chunks, &map, "chunks", chunks);
    if (map.count != one_count || map.count != 283146) give_up("the number of primes is wrong", EDOM);
    printf("   %s primes below %s, counted in %s chunks.\n", grouped(map.count), grouped(map.limit), grouped(chunks));
    printf("   One task at a time: %.2f s. All at once: %.2f s, %.1f times as fast on %u workers.\n", seconds(one_ns),
           seconds(map.ns), (double)one_ns / (double)map.ns, cc_worker_count());
}

/* ---- 4: sleep ---- */

enum { SLEEPERS = 100000 };

static _Atomic uint64_t early, late_sum, late_max;

static void *sleeper(void *arg) {
    CCDeadline deadline = cc_after_ns((uint64_t)(uintptr_t)arg);
    cc_sleep_until(deadline);
    uint64_t now = cc_now_ns(), late = now - deadline.ns, max = atomic_load(&late_max);
    atomic_fetch_add(&progress, 1);
    if (now < deadline.ns) {
        atomic_fetch_add(&early, 1);
        return NULL;
    }
    atomic_fetch_add(&late_sum, late);
    while (late > max && !atomic_compare_exchange_weak(&late_max, &max, late)) {
    }
    return NULL;
}

static void *sleep_all(void *arg) {
    struct batch *batch = arg;
    uint64_t start = cc_now_ns();
    for (uint64_t i = 0; i < SLEEPERS; i++) {
        uint64_t ns = i * 7919 % SLEEPERS * (1000 * MILLION / SLEEPERS); /* each duration once, in a scrambled order */
        must(cc_spawn(&batch->tasks[i], sleeper, (void *)(uintptr_t)ns, NULL), "cc_spawn");
    }
    for (uint64_t i = 0; i < SLEEPERS; i++) must(cc_task_join(&batch->tasks[i], NULL), "cc_task_join");
    batch->ns = cc_now_ns() - start;
    return NULL;
}

static void scene_sleep(struct batch *batch) {
    title(4, "100,000 fibers sleep, each for a different time between 0 and 1 second");
    watch(sleep_all, batch, "awake", SLEEPERS);
    printf("   All had slept after %.2f s. Woken early: %s. Late by %.2f ms on average, by %.1f ms at most.\n",
           seconds(batch->ns), grouped(atomic_load(&early)), (double)atomic_load(&late_sum) / SLEEPERS / 1e6,
           (double)atomic_load(&late_max) / 1e6);
}

/* ---- 5: fork and join ---- */

struct forest {
    uintptr_t n, result;
    uint64_t ns;
};

static void *fib(void *arg) {
    uintptr_t n = (uintptr_t)arg;
    if (n < 2) return arg;
    CCTask left = cc_fiber_spawn_task(fib, (void *)(n - 1));
    uintptr_t right = (uintptr_t)fib((void *)(n - 2));
    return (void *)((uintptr_t)cc_block_on(left) + right);
}

static void *run_fib(void *arg) {
    struct forest *forest = arg;
    uint64_t start = cc_now_ns();
    forest->result = (uintptr_t)fib((void *)forest->n);
    forest->ns = cc_now_ns() - start;
    return NULL;
}

static void scene_fork_join(void) {
    title(5, "Fork and join: fib(32), where every call starts a task");
    struct forest forest = {.n = 32};
    watch(run_fib, &forest, "done", 1);
    if (forest.result != 2178309) give_up("fib(32) is wrong", EDOM);
    uint64_t spawns = 3524577; /* fib(33) - 1 */
    printf("   fib(32) = %s by %s tasks in %.2f s: %.0f ns a task.\n", grouped(forest.result), grouped(spawns),
           seconds(forest.ns), (double)forest.ns / (double)spawns);
}

/* ---- 6: channels ---- */

/* A stage receives from `in`, if it has one, and sends to `out`, if it has one; it closes `out` when `in` is closed. */
struct stage {
    CCChan *in, *out;
    uint64_t n, sum;
};

static CCChan *new_chan(size_t capacity) {
    CCChan *ch = cc_chan_create(sizeof(uint64_t), capacity);
    if (ch == NULL) give_up("cc_chan_create", ENOMEM);
    return ch;
}

static void *source(void *arg) {
    struct stage *s = arg;
    for (uint64_t v = 1; v <= s->n; v++) must(cc_chan_send(s->out, &v, sizeof v), "cc_chan_send");
    must(cc_chan_close(s->out), "cc_chan_close");
    return NULL;
}

static void *add_one(void *arg) {
    struct stage *s = arg;
    uint64_t v;
    while (cc_chan_recv(s->in, &v, sizeof v) == 0) {
        v++;
        must(cc_chan_send(s->out, &v, sizeof v), "cc_chan_send");
    }
    must(cc_chan_close(s->out), "cc_chan_close");
    return NULL;
}

static void *add_up(void *arg) {
    struct stage *s = arg;
    uint64_t v;
    for (s->n = 0; cc_chan_recv(s->in, &v, sizeof v) == 0; s->n++) {
        s->sum += v;
        if (s->n % 1024 == 0) atomic_store_explicit(&progress, s->n, memory_order_relaxed);
    }
    return NULL;
}

enum { STAGES = 5 }; /* a source, three in between, a sink */

struct line {
    uint64_t n, ns;
    size_t capacity;
};

static void *run_line(void *arg) {
    struct line *line = arg;
    CCChan *chans[STAGES - 1];
    struct stage stages[STAGES] = {0};
    CCTask tasks[STAGES];
    uint64_t start = cc_now_ns();
    for (int i = 0; i < STAGES - 1; i++) chans[i] = stages[i].out = stages[i + 1].in = new_chan(line->capacity);
    stages[0].n = line->n;
    for (int i = 0; i < STAGES; i++)
        tasks[i] = cc_fiber_spawn_task(i == 0 ? source : i < STAGES - 1 ? add_one : add_up, &stages[i]);
    for (int i = 0; i < STAGES; i++) must(cc_task_join(&tasks[i], NULL), "cc_task_join");
    line->ns = cc_now_ns() - start;
    for (int i = 0; i < STAGES - 1; i++) cc_chan_free(chans[i]);
    uint64_t each = STAGES - 2; /* what the stages in between add to each number */
    if (stages[STAGES - 1].n != line->n || stages[STAGES - 1].sum != line->n * (line->n + 1) / 2 + each * line->n)
        give_up("the sum at the end of the pipeline is wrong", EDOM);
    return NULL;
}

static void scene_pipeline(void) {
    title(6, "A pipeline: a source, three stages and a sink, joined by four channels");
    static const size_t capacities[] = {128, 0};
    for (int i = 0; i < 2; i++) {
        struct line line = {.n = 2 * MILLION, .capacity = capacities[i]};
        watch(run_line, &line, "numbers", line.n);
        printf("   %s numbers through channels %s: %.2f s, %.0f ns a number and channel.\n", grouped(line.n),
               line.capacity > 0 ? "with a buffer of 128" : "without a buffer", seconds(line.ns),
               (double)line.ns / (double)line.n / (STAGES - 1));
    }
}

/* ---- 7: select ---- */

enum { SOURCES = 8 };

/* Sends until the channel is closed. */
static void *endless(void *arg) {
    for (uint64_t v = 0; cc_chan_send(arg, &v, sizeof v) == 0; v++) {
    }
    return NULL;
}

struct fair {
    uint64_t received[SOURCES], all, ns;
};

/* Receives from any channel that is ready, until the time is up: the last arm is a deadline. */
static void *take_turns(void *arg) {
    struct fair *fair = arg;
    CCChan *chans[SOURCES];
    CCTask tasks[SOURCES];
    CCCase cases[SOURCES + 1];
    uint64_t values[SOURCES], start = cc_now_ns();
    size_t chosen = 0;
    for (int i = 0; i < SOURCES; i++) {
        chans[i] = new_chan(0);
        tasks[i] = cc_fiber_spawn_task(endless, chans[i]);
        cases[i] = (CCCase)CC_RECV(chans[i], &values[i], NULL);
    }
    cases[SOURCES] = (CCCase)CC_AFTER_MS(1000);
    while (must(cc_select(cases, SOURCES + 1, CC_FOREVER, &chosen), "cc_select"), chosen < SOURCES) {
        if (values[chosen] != fair->received[chosen]++) give_up("a value was lost", EDOM);
        if (++fair->all % 1024 == 0) atomic_store_explicit(&progress, fair->all, memory_order_relaxed);
    }
    fair->ns = cc_now_ns() - start;
    for (int i = 0; i < SOURCES; i++) must(cc_chan_close(chans[i]), "cc_chan_close");
    for (int i = 0; i < SOURCES; i++) must(cc_task_join(&tasks[i], NULL), "cc_task_join");
    for (int i = 0; i < SOURCES; i++) cc_chan_free(chans[i]);
    return NULL;
}

static void scene_select(void) {
    title(7, "Eight senders on eight channels; one select receives from any that is ready, for a second");
    struct fair fair = {0};
    watch(take_turns, &fair, "received", 0);
    uint64_t least = UINT64_MAX, most = 0;
    for (int i = 0; i < SOURCES; i++) {
        if (fair.received[i] < least) least = fair.received[i];
        if (fair.received[i] > most) most = fair.received[i];
    }
    printf("   %s values: %.0f ns for each select of nine arms. The fastest sender sent %s, the slowest %s.\n",
           grouped(fair.all), (double)fair.ns / (double)fair.all, grouped(most), grouped(least));
}

/* ---- 8: the first failure ends them all ---- */

enum { CHILDREN = 100000 };

struct family {
    CCChan *never;                    /* nobody sends */
    _Atomic uint64_t cancelled, last; /* how many waits ended, and when the last one did */
    uint64_t failed;
    CCError error;
};

CC_TASK(wait_for_ever, { struct family *family; }) {
    uint64_t value;
    atomic_fetch_add_explicit(&progress, 1, memory_order_relaxed);
    if (cc_chan_recv(self->family->never, &value, sizeof value) == ECANCELED) {
        atomic_store(&self->family->last, cc_now_ns());
        atomic_fetch_add(&self->family->cancelled, 1);
    }
    return NULL;
}

static void *fail_when_all_wait(void *arg) {
    struct family *family = arg;
    cc_fiber_set_name("number 100,001");
    await_arrivals(CHILDREN);
    family->failed = cc_now_ns();
    return cc_fail(EIO, "the disk is on fire");
}

static void *raise_family(void *arg) {
    struct family *family = arg;
    int rc;
    CC_NURSERY(n, .result = &rc) {
        for (int i = 0; i < CHILDREN; i++) must(CC_GO_IN(n, wait_for_ever, .family = family), "CC_GO_IN");
        must(cc_nursery_spawn(n, fail_when_all_wait, family), "cc_nursery_spawn");
        (void)cc_nursery_wait_until(n, CC_FOREVER);
        must(cc_nursery_failure(n, 0, &family->error), "cc_nursery_failure");
    }
    if (rc != EIO) give_up("the nursery", rc);
    return NULL;
}

static void scene_nursery(void) {
    title(8, "A nursery with 100,000 children that wait on a channel; one more fails");
    struct family family = {.never = new_chan(0)};
    watch(raise_family, &family, "wait", CHILDREN);
    printf("   '%s' failed: %s. %s waits ended with ECANCELED within %.0f ms, and nobody is left behind.\n",
           family.error.name, family.error.text, grouped(atomic_load(&family.cancelled)),
           seconds(atomic_load(&family.last) - family.failed) * 1e3);
    cc_chan_free(family.never);
}

/* ---- 9: connections ---- */

enum { CONNECTIONS = 10000, ROUNDS = 10, MESSAGE = 32 };

static CCBarrier all_connected, all_go;

/* The other process: each fiber opens a connection and sends a request and, when all are connected, ten more. */
CC_TASK(client, { uint16_t port; }) {
    char where[64], question[MESSAGE] = "?", answer[MESSAGE];
    CCConn *c;
    snprintf(where, sizeof where, "tcp://127.0.0.1:%u", self->port);
    must(cc_dial(&c, where, NULL), "cc_dial");
    for (int i = 0; i <= ROUNDS; i++) {
        must(cc_write(c, question, MESSAGE, NULL), "cc_write");
        must(cc_read_full(c, answer, MESSAGE, NULL), "cc_read_full");
        if (i == 0) {
            must(cc_barrier_wait(&all_connected), "cc_barrier_wait");
            must(cc_barrier_wait(&all_go), "cc_barrier_wait");
        }
    }
    cc_close(c);
    return NULL;
}

static void *run_clients(void *arg) {
    const char *const *words = arg;
    uint32_t n = (uint32_t)strtoul(words[1], NULL, 10);
    char go;
    size_t length;
    all_connected = all_go = (CCBarrier)CC_BARRIER_INIT(n + 1);
    CC_NURSERY(nursery) {
        for (uint32_t i = 0; i < n; i++)
            must(CC_GO_IN(nursery, client, .port = (uint16_t)strtoul(words[0], NULL, 10)), "CC_GO_IN");
        must(cc_barrier_wait(&all_connected), "cc_barrier_wait");
        must(cc_fd_read(STDIN_FILENO, &go, 1, &length), "cc_fd_read");
        must(cc_barrier_wait(&all_go), "cc_barrier_wait");
    }
    return NULL;
}

static int answer(CCConn *conn, void *arg) {
    char question[MESSAGE];
    (void)arg;
    int error;
    while ((error = cc_read_full(conn, question, MESSAGE, NULL)) == 0) {
        error = cc_write(conn, question, MESSAGE, NULL);
        if (error != 0) break;
        atomic_fetch_add_explicit(&progress, 1, memory_order_relaxed);
    }
    return error == ENODATA ? 0 : error;
}

struct service {
    uint64_t n, ns_connected, ns_answered, rss_before, rss;
};

static void *serve_all(void *arg) {
    struct service *s = arg;
    CCListener *listener;
    CCProcess *clients;
    CCProcessStatus status;
    CCAddr addr;
    char port[8], number[24];
    const char *argv[] = {"/proc/self/exe", "clients", port, number, NULL};
    must(cc_listen(&listener, "tcp://127.0.0.1:0", NULL), "cc_listen");
    must(cc_listener_addr(listener, &addr), "cc_listener_addr");
    snprintf(port, sizeof port, "%u", addr.port);
    snprintf(number, sizeof number, "%llu", (unsigned long long)s->n);
    uint64_t start = cc_now_ns();
    CC_NURSERY(nursery) {
        must(cc_serve(nursery, listener, answer, NULL, NULL), "cc_serve");
        must(cc_process_start(&clients, &(CCProcessOptions){.argv = argv, .in = {.kind = CC_PROCESS_PIPE}}),
             "cc_process_start");
        while (atomic_load(&progress) < s->n && cc_process_wait_try(clients, NULL) == EAGAIN) cc_sleep_ms(1);
        s->ns_connected = cc_now_ns() - start;
        s->rss = resident();
        start = cc_now_ns();
        must(cc_fd_write(cc_process_stdin(clients), "!", 1, NULL), "cc_fd_write");
        must(cc_process_wait(clients, &status), "cc_process_wait");
        s->ns_answered = cc_now_ns() - start;
        if (status.code != 0 || status.signal != 0) give_up("the clients", ECONNABORTED);
        cc_process_free(clients);
        must(cc_nursery_cancel(nursery), "cc_nursery_cancel");
    }
    cc_listener_close(listener);
    return NULL;
}

static void scene_connections(void) {
    struct rlimit limit = {0};
    struct service s = {.n = CONNECTIONS};
    char heading[96];
    (void)getrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur < CONNECTIONS + 100) s.n = limit.rlim_cur > 300 ? limit.rlim_cur - 100 : 200;
    snprintf(heading, sizeof heading, "%s connections, each with a fiber at both ends, in two processes", grouped(s.n));
    title(9, heading);
    s.rss_before = settled(); /* without the stacks of the last scene */
    watch(serve_all, &s, "answers", s.n * (ROUNDS + 1));
    printf("   All were connected after %.2f s, and took %.0f bytes each in the server, fiber and stack included.\n",
           seconds(s.ns_connected), ((double)s.rss - (double)s.rss_before) / (double)s.n);
    printf("   Then %s requests in %.2f s: %s answers a second, while the clients used the same CPUs.\n",
           grouped(s.n * ROUNDS), seconds(s.ns_answered),
           grouped((uint64_t)((double)(s.n * ROUNDS) / seconds(s.ns_answered))));
}

/* ---- 10: overflow ---- */

__attribute__((noinline)) static uint64_t dig(uint64_t depth) {
    volatile char shovel[256];
    shovel[0] = (char)depth;
    return depth == 0 ? 0 : dig(depth - 1) + (uint64_t)shovel[0];
}

static void *dig_deep(void *arg) {
    (void)arg;
    return (void *)(uintptr_t)dig(MILLION);
}

/* In a separate process, because the overflow kills it. */
__attribute__((noreturn)) static void overflow(int out) {
    CCTask task;
    CCSpawnOptions options = {.name = "digger", .stack_size = (size_t)64 * 1024};
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    dup2(out, STDERR_FILENO);
    must(cc_spawn(&task, dig_deep, NULL, &options), "cc_spawn");
    cc_task_join(&task, NULL);
    _exit(0);
}

static void scene_overflow(void) {
    title(10, "A fiber named 'digger' calls itself a million times on a stack of 64 KiB");
    int pipe_ends[2], status = 0;
    if (pipe(pipe_ends) != 0) give_up("pipe", errno);
    fflush(stdout);
    pid_t child = fork(); /* allowed: the runtime has been shut down before */
    if (child < 0) give_up("fork", errno);
    if (child == 0) overflow(pipe_ends[1]);
    close(pipe_ends[1]);
    char text[1024];
    size_t length = 0;
    for (ssize_t n; (n = read(pipe_ends[0], text + length, sizeof text - 1 - length)) > 0;) length += (size_t)n;
    text[length] = '\0';
    close(pipe_ends[0]);
    waitpid(child, &status, 0);
    printf("   The report on stderr:\n   %s", text);
    if (WIFSIGNALED(status))
        printf("   Then signal %d (%s) ended the process.\n", WTERMSIG(status), strsignal(WTERMSIG(status)));
}

int main(int argc, char **argv) {
    struct rlimit descriptors;
    if (getrlimit(RLIMIT_NOFILE, &descriptors) == 0) {
        descriptors.rlim_cur = descriptors.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &descriptors);
    }
    if (argc == 4 && strcmp(argv[1], "clients") == 0) return cc_run(run_clients, &argv[2], NULL);
    uint64_t start = cc_now_ns(), available = memory_available();
    on_terminal = isatty(STDOUT_FILENO);
    struct batch batch = {.n = MILLION};
    batch.tasks = calloc(MILLION, sizeof *batch.tasks);
    if (batch.tasks == NULL) give_up("calloc", ENOMEM);
    must(cc_runtime_init(NULL), "cc_runtime_init");
    printf("libccc %d.%d.%d: a tour, on %u workers, with %.1f GB of memory available.\n", CC_VERSION_MAJOR,
           CC_VERSION_MINOR, CC_VERSION_PATCH, cc_worker_count(), (double)available / 1e9);

    if (available < 8 * GIB) {
        batch.n = available / 10000 / 10000 * 10000; /* twice what they need */
        if (batch.n < 10000) batch.n = 10000;
        if (batch.n > MILLION) batch.n = MILLION;
        printf("A million parked fibers take 5 GB; with this memory there will be %s.\n", grouped(batch.n));
    }
    batch.rss_before = resident();
    batch.page_tables_before = page_tables();
    scene_started(&batch);
    scene_parked(&batch);
    scene_cores();
    scene_sleep(&batch);
    scene_fork_join();
    scene_pipeline();
    scene_select();
    scene_nursery();
    scene_connections();
    free(batch.tasks);
    must(cc_runtime_shutdown(5000), "cc_runtime_shutdown");
    scene_overflow();

    printf("\nThat took %.0f s. Where to go next:\n", seconds(cc_now_ns() - start));
    printf(
        "   examples/              small programs, one idea each; start with hello.c, parallel_map.c and pipeline.c\n"
        "   include/ccc/           the whole interface, and docs/man/ for each call: man -l docs/man/cc_task.3\n"
        "   ARCHITECTURE.md        a day in the life of a fiber\n"
        "   make test, make bench  the tests; the measurements, beside Go\n");
    return 0;
}
