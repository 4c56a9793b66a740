/* pthreads.c - the measurements of ../ for OS threads; the same work where threads can do it, the same checks, the same
 * line.
 *
 *   pthreads NAME [WORKERS] [SCALE]      workers is the number of CPUs that the process may use
 *
 * A thread is what a fiber is elsewhere: the kernel switches. A channel is a ring under a mutex with two conditions, as
 * every textbook has it; a rendezvous is the same with a slot that is handed over. Stacks have 64 KiB, so that
 * thousands fit.
 *
 * Left out: fib and skynet, which would want hundreds of thousands of threads at once; the sieve, which would take half
 * a minute; select, which threads do not have.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SECOND UINT64_C(1000000000)

__attribute__((noreturn, format(printf, 1, 2))) static void fail(const char *format, ...) {
    va_list args;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    _exit(1);
}

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

static void *allocate(uint64_t count, size_t size) {
    void *p = malloc(count * size);
    if (p == NULL) fail("no memory");
    memset(p, 0xff, count * size);
    return memset(p, 0, count * size);
}

static uint64_t status(const char *key) {
    FILE *f = fopen("/proc/self/status", "re");
    char line[256];
    unsigned long long kb = 0;
    size_t length = strlen(key);
    while (f != NULL && fgets(line, sizeof line, f) != NULL)
        if (strncmp(line, key, length) == 0 && line[length] == ':') kb = strtoull(line + length + 1, NULL, 10);
    if (f != NULL) fclose(f);
    return kb * 1024;
}

static pthread_attr_t small_stack;

static pthread_t start(void *(*fn)(void *), void *arg) {
    pthread_t thread;
    int error = pthread_create(&thread, &small_stack, fn, arg);
    if (error != 0) fail("pthread_create failed: %s", strerror(error));
    return thread;
}

static void *join(pthread_t thread) {
    void *result;
    int error = pthread_join(thread, &result);
    if (error != 0) fail("pthread_join failed: %s", strerror(error));
    return result;
}

struct outcome {
    uint64_t n, ns;
    char extras[96];
};

/* ---- threads ---- */

static void *yielder(void *arg) {
    uint64_t each = (uint64_t)(uintptr_t)arg, done = 0;
    for (; done < each; done++) sched_yield();
    return (void *)(uintptr_t)done;
}

static struct outcome yields(uint64_t count, uint64_t each) {
    pthread_t *threads = allocate(count, sizeof *threads);
    uint64_t sum = 0, begin = now_ns();
    for (uint64_t i = 0; i < count; i++) threads[i] = start(yielder, (void *)(uintptr_t)each);
    for (uint64_t i = 0; i < count; i++) sum += (uint64_t)(uintptr_t)join(threads[i]);
    uint64_t ns = now_ns() - begin;
    if (sum != count * each) fail("%" PRIu64 " yields were counted", sum);
    free(threads);
    return (struct outcome){.n = sum, .ns = ns};
}

static void *same(void *arg) {
    return arg;
}

/* `at_once` threads live at the same time. */
static struct outcome spawns(uint64_t n, uint64_t at_once) {
    pthread_t *threads = allocate(at_once, sizeof *threads);
    n = (n + at_once - 1) / at_once * at_once;
    uint64_t sum = 0, begin = now_ns();
    for (uint64_t i = 0; i < n; i += at_once) {
        for (uint64_t k = 0; k < at_once; k++) threads[k] = start(same, (void *)(uintptr_t)(i + k));
        for (uint64_t k = 0; k < at_once; k++) sum += (uint64_t)(uintptr_t)join(threads[k]);
    }
    uint64_t ns = now_ns() - begin;
    if (sum != n * (n - 1) / 2) fail("the sum of the results is %" PRIu64, sum);
    free(threads);
    return (struct outcome){.n = n, .ns = ns};
}

static struct { _Atomic uint64_t early, late_sum, late_max; } sleeps;

static void *sleeper(void *arg) {
    uint64_t until = now_ns() + (uint64_t)(uintptr_t)arg;
    struct timespec t = {(time_t)(until / SECOND), (long)(until % SECOND)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR) {
    }
    uint64_t now = now_ns();
    if (now < until) {
        sleeps.early++;
        return NULL;
    }
    uint64_t late = now - until, max = sleeps.late_max;
    sleeps.late_sum += late;
    while (late > max && !atomic_compare_exchange_weak(&sleeps.late_max, &max, late)) {
    }
    return NULL;
}

static struct outcome timers(uint64_t n) {
    pthread_t *threads = allocate(n, sizeof *threads);
    uint64_t begin = now_ns();
    for (uint64_t i = 0; i < n; i++) {
        uint64_t ns = n > 1 ? i * 7919 % n * SECOND / (n - 1) : SECOND;
        threads[i] = start(sleeper, (void *)(uintptr_t)ns);
    }
    for (uint64_t i = 0; i < n; i++) join(threads[i]);
    struct outcome o = {.n = n, .ns = now_ns() - begin};
    if (sleeps.early != 0) fail("%" PRIu64 " sleeps ended early", (uint64_t)sleeps.early);
    if (o.ns < SECOND) fail("all sleeps were over after %" PRIu64 " ns", o.ns);
    o.ns -= SECOND;
    snprintf(o.extras, sizeof o.extras, " late_mean_us=%.0f late_max_us=%.0f",
             (double)sleeps.late_sum / (double)n / 1e3, (double)sleeps.late_max / 1e3);
    free(threads);
    return o;
}

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t opened;
    bool open;
    uint64_t n, arrived, passed, rss, pte;
} gate = {.mutex = PTHREAD_MUTEX_INITIALIZER, .opened = PTHREAD_COND_INITIALIZER};

static void *parked_thread(void *arg) {
    pthread_mutex_lock(&gate.mutex);
    if (++gate.arrived == gate.n) {
        gate.rss = status("VmRSS");
        gate.pte = status("VmPTE");
        gate.open = true;
        pthread_cond_broadcast(&gate.opened);
    }
    while (!gate.open) pthread_cond_wait(&gate.opened, &gate.mutex);
    gate.passed++;
    pthread_mutex_unlock(&gate.mutex);
    return arg;
}

/* The kernel's own memory for a thread, some 20 kB, is not in the figure. */
static struct outcome parked(uint64_t n) {
    pthread_t *threads = allocate(n, sizeof *threads);
    gate.n = n;
    uint64_t rss = status("VmRSS"), pte = status("VmPTE"), begin = now_ns();
    for (uint64_t i = 0; i < n; i++) threads[i] = start(parked_thread, NULL);
    for (uint64_t i = 0; i < n; i++) join(threads[i]);
    struct outcome o = {.n = n, .ns = now_ns() - begin};
    if (gate.passed != n) fail("%" PRIu64 " threads passed the gate", gate.passed);
    snprintf(o.extras, sizeof o.extras, " rss_bytes=%.0f pte_bytes=%.0f", (double)(gate.rss - rss) / (double)n,
             (double)(gate.pte - pte) / (double)n);
    free(threads);
    return o;
}

static struct {
    pthread_mutex_t mutex;
    uint64_t each, balance;
} account = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void *depositor(void *arg) {
    for (uint64_t k = 0; k < account.each; k++) {
        pthread_mutex_lock(&account.mutex);
        account.balance++;
        pthread_mutex_unlock(&account.mutex);
    }
    return arg;
}

static struct outcome mutex(uint64_t n) {
    enum { USERS = 16 };
    pthread_t threads[USERS];
    account.each = (n + USERS - 1) / USERS;
    uint64_t begin = now_ns();
    for (int i = 0; i < USERS; i++) threads[i] = start(depositor, NULL);
    for (int i = 0; i < USERS; i++) join(threads[i]);
    uint64_t ns = now_ns() - begin;
    if (account.balance != USERS * account.each) fail("%" PRIu64 " increments were counted", account.balance);
    return (struct outcome){.n = account.balance, .ns = ns};
}

/* ---- channels ---- */

/* Capacity 0 is a rendezvous: one slot, and the sender waits until it was emptied. */
struct channel {
    pthread_mutex_t mutex;
    pthread_cond_t not_full, not_empty, taken;
    uint64_t slots, count, head, sent, received;
    bool rendezvous, closed;
    uint64_t values[];
};

static struct channel *channel_create(uint64_t capacity) {
    uint64_t slots = capacity > 0 ? capacity : 1;
    struct channel *ch = allocate(1, sizeof *ch + slots * sizeof ch->values[0]);
    pthread_mutex_init(&ch->mutex, NULL);
    pthread_cond_init(&ch->not_full, NULL);
    pthread_cond_init(&ch->not_empty, NULL);
    pthread_cond_init(&ch->taken, NULL);
    ch->slots = slots;
    ch->rendezvous = capacity == 0;
    return ch;
}

static bool send(struct channel *ch, uint64_t value) {
    pthread_mutex_lock(&ch->mutex);
    while (ch->count == ch->slots && !ch->closed) pthread_cond_wait(&ch->not_full, &ch->mutex);
    if (ch->closed) {
        pthread_mutex_unlock(&ch->mutex);
        return false;
    }
    ch->values[(ch->head + ch->count++) % ch->slots] = value;
    uint64_t ticket = ch->sent++;
    pthread_cond_signal(&ch->not_empty);
    if (ch->rendezvous)
        while (ch->received <= ticket && !ch->closed) pthread_cond_wait(&ch->taken, &ch->mutex);
    pthread_mutex_unlock(&ch->mutex);
    return true;
}

static bool receive(struct channel *ch, uint64_t *value) {
    pthread_mutex_lock(&ch->mutex);
    while (ch->count == 0 && !ch->closed) pthread_cond_wait(&ch->not_empty, &ch->mutex);
    bool got = ch->count > 0;
    if (got) {
        *value = ch->values[ch->head];
        ch->head = (ch->head + 1) % ch->slots;
        ch->count--;
        ch->received++;
        pthread_cond_signal(ch->rendezvous ? &ch->taken : &ch->not_full);
        if (ch->rendezvous) pthread_cond_signal(&ch->not_full);
    }
    pthread_mutex_unlock(&ch->mutex);
    return got;
}

static void channel_close(struct channel *ch) {
    pthread_mutex_lock(&ch->mutex);
    ch->closed = true;
    pthread_cond_broadcast(&ch->not_full);
    pthread_cond_broadcast(&ch->not_empty);
    pthread_cond_broadcast(&ch->taken);
    pthread_mutex_unlock(&ch->mutex);
}

struct table {
    struct channel *there, *back;
};

static void *answer(void *arg) {
    struct table *t = arg;
    for (uint64_t token; receive(t->there, &token);) send(t->back, token + 1);
    return NULL;
}

static struct outcome pingpong(uint64_t n) {
    struct table t = {channel_create(0), channel_create(0)};
    pthread_t other = start(answer, &t);
    uint64_t token = 0, begin = now_ns();
    for (uint64_t i = 0; i < n; i++) {
        send(t.there, token);
        receive(t.back, &token);
    }
    uint64_t ns = now_ns() - begin;
    channel_close(t.there);
    join(other);
    if (token != n) fail("the token says %" PRIu64, token);
    return (struct outcome){.n = n, .ns = ns};
}

struct actor {
    struct channel *ch;
    uint64_t first, count, received, sum, disorder;
};

static void *produce(void *arg) {
    struct actor *s = arg;
    for (uint64_t v = s->first; v < s->first + s->count; v++) send(s->ch, v);
    return NULL;
}

static void *consume(void *arg) {
    struct actor *s = arg;
    uint64_t received = 0, sum = 0, disorder = 0;
    for (uint64_t v, last = 0; receive(s->ch, &v); last = v) {
        received++;
        sum += v;
        disorder += v < last;
    }
    s->received = received;
    s->sum = sum;
    s->disorder = disorder;
    return NULL;
}

static struct outcome flow(uint64_t capacity, uint64_t n, uint64_t each) {
    enum { MAX = 8 };
    struct channel *ch = channel_create(capacity);
    struct actor in[MAX] = {{0}}, out[MAX];
    pthread_t producers[MAX], consumers[MAX];
    uint64_t share = n / each > 0 ? n / each : 1, received = 0, sum = 0, begin = now_ns();
    n = share * each;
    for (uint64_t i = 0; i < each; i++) {
        in[i].ch = ch;
        consumers[i] = start(consume, &in[i]);
    }
    for (uint64_t i = 0; i < each; i++) {
        out[i] = (struct actor){.ch = ch, .first = i * share, .count = share};
        producers[i] = start(produce, &out[i]);
    }
    for (uint64_t i = 0; i < each; i++) join(producers[i]);
    channel_close(ch);
    for (uint64_t i = 0; i < each; i++) join(consumers[i]);
    uint64_t ns = now_ns() - begin;
    for (uint64_t i = 0; i < each; i++) {
        received += in[i].received;
        sum += in[i].sum;
        if (each == 1 && in[i].disorder != 0) fail("values came out of order");
    }
    if (received != n || sum != n * (n - 1) / 2) fail("%" PRIu64 " values with sum %" PRIu64, received, sum);
    return (struct outcome){.n = n, .ns = ns};
}

struct place {
    struct channel *in, *out;
    uint64_t passed, end; /* when the token ended here */
};

/* The token counts the hops that are left; the thread that receives 0 closes its output, and so do all others after it.
 */
static void *pass_on(void *arg) {
    struct place *p = arg;
    for (uint64_t left; receive(p->in, &left);) {
        p->passed++;
        if (left == 0) {
            p->end = now_ns();
            break;
        }
        send(p->out, left - 1);
    }
    channel_close(p->out);
    return NULL;
}

static struct outcome ring(uint64_t n) {
    enum { SEATS = 503 };
    static struct place places[SEATS];
    pthread_t threads[SEATS];
    for (int i = 0; i < SEATS; i++) places[i].in = channel_create(0);
    for (int i = 0; i < SEATS; i++) places[i].out = places[(i + 1) % SEATS].in;
    for (int i = 0; i < SEATS; i++) threads[i] = start(pass_on, &places[i]);
    uint64_t sum = 0, begin = now_ns();
    send(places[0].in, n);
    for (int i = 0; i < SEATS; i++) join(threads[i]);
    for (int i = 0; i < SEATS; i++) sum += places[i].passed;
    if (places[n % SEATS].end == 0 || sum != n + 1) fail("%" PRIu64 " hops", sum);
    return (struct outcome){.n = n, .ns = places[n % SEATS].end - begin};
}

static uint64_t scaled(double n, double scale) {
    return n * scale < 1 ? 1 : (uint64_t)(n * scale);
}

static struct outcome run(const char *name, double scale) {
#define IS(text) (strcmp(name, text) == 0)
    if (IS("yield")) return yields(2, scaled(2500000, scale));
    if (IS("yield1k")) return yields(1000, scaled(5000, scale));
    if (IS("spawn_join")) return spawns(scaled(1000000, scale), 1);
    if (IS("spawn_turn")) return spawns(scaled(1000000, scale), 100);
    if (IS("spawn_batch")) return spawns(scaled(1000000, scale), scaled(1000000, scale));
    if (IS("timers")) return timers(scaled(100000, scale));
    if (IS("parked")) return parked(scaled(100000, scale));
    if (IS("mutex")) return mutex(scaled(2000000, scale));
    if (IS("pingpong")) return pingpong(scaled(1000000, scale));
    if (IS("spsc")) return flow(128, scaled(5000000, scale), 1);
    if (IS("spsc_cap1")) return flow(1, scaled(2000000, scale), 1);
    if (IS("mpmc")) return flow(128, scaled(4000000, scale), 4);
    if (IS("ring")) return ring(scaled(2000000, scale));
#undef IS
    fail("there is no benchmark '%s'", name);
}

/* Keeps the first `count` of the CPUs that the process may use. */
static unsigned limit_cpus(unsigned count) {
    cpu_set_t all, few;
    CPU_ZERO(&few);
    if (sched_getaffinity(0, sizeof all, &all) != 0) fail("the CPUs are unknown");
    if (count == 0) return (unsigned)CPU_COUNT(&all);
    for (int cpu = 0; cpu < CPU_SETSIZE && (unsigned)CPU_COUNT(&few) < count; cpu++)
        if (CPU_ISSET(cpu, &all)) CPU_SET(cpu, &few);
    if (sched_setaffinity(0, sizeof few, &few) != 0) fail("the CPUs cannot be limited");
    return count;
}

int main(int argc, char **argv) {
    if (argc < 2 || argc > 4) fail("usage: %s NAME [WORKERS] [SCALE]", argv[0]);
    unsigned workers = limit_cpus(argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 0);
    double scale = argc > 3 ? strtod(argv[3], NULL) : 1;
    if (!(scale > 0)) fail("'%s' is not a scale", argv[3]);
    pthread_attr_init(&small_stack);
    pthread_attr_setstacksize(&small_stack, 64 * 1024);
    struct outcome o = run(argv[1], scale);
    printf("pthreads %s %u %" PRIu64 " %.1f%s\n", argv[1], workers, o.n, (double)o.ns / (double)o.n, o.extras);
    return 0;
}
