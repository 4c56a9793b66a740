/* cost.c - a model of many CPUs: what the library's real code costs where each access to memory has a price.
 *
 * It replaces the schedule explorer (tests/explore/core), with the same stubs: every atomic operation of the library
 * calls ex_load and so on, and the instrumentation of the compiler reports plain accesses. Each virtual thread is a CPU
 * with its own clock. The one with the earliest clock runs next: so all operations happen in the order of their times,
 * on one real thread.
 *
 * What it knows of hardware is lines of 64 bytes: which CPU has a line, and when it can be transferred again (COST-1 to
 * 3).
 *
 * COST-1  A line that this CPU has costs a hit; one that another CPU has, or that several have if it is to be written,
 *         costs a transfer.
 * COST-2  Transfers of one line for writing follow one another: a CPU that comes meanwhile waits.
 * COST-3  A line that no CPU has touched yet costs a hit: neither main memory nor page faults are modelled.
 * COST-4  A woken thread continues some microseconds later; the waker pays for its system call. A membarrier
 *         interrupts every CPU that runs.
 * COST-5  The time of a wake varies by a tenth, by the seed. A schedule depends on every nanosecond, so one run says
 *         little: run.py takes the mean of several.
 */
#include "cost.h"

#include "arch/context.h"
#include "os/cpus.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Tenths of a nanosecond. */
enum {
    TENTHS = 10,
    PLAIN = 1,       /* a plain access, with the instructions around it. Calibrated: README.md */
    HIT = 3,         /* an atomic load or store */
    RMW = 50,        /* a locked instruction */
    FENCE = 90,      /* a full fence */
    TRANSFER = 600,  /* a line of another CPU */
    RELAX = 120,     /* a pause */
    CLOCK = 220,     /* reading the clock */
    SWITCH = 15,     /* of contexts */
    ALLOCATE = 250,  /* malloc or free */
    SYSTEM = 5000,   /* a system call that does not wait */
    WAKE = 50000,    /* until the woken thread runs, on the average */
    INTERRUPT = 8000 /* for each CPU that a membarrier interrupts, and for the caller for each of them an eighth */
};

enum { THREADS_MAX = 160, STACK_SIZE = 256 * 1024, TLS_MAX = 512, SETS = THREADS_MAX / 64 + 1 };

enum thread_state { THREAD_FREE, THREAD_READY, THREAD_BLOCKED, THREAD_JOINING, THREAD_ENDED };

struct vthread {
    struct context context;
    enum thread_state state;
    uint64_t now; /* its clock, in tenths */
    uint64_t until;
    uint64_t busy; /* its time but for waits for others */
    const volatile void *futex;
    int joins;
    void *(*fn)(void *);
    void *arg, *self;
    int error;
    char tls[TLS_MAX];
};

static struct vthread threads[THREADS_MAX];
static int thread_count, current = -1;
static unsigned cpus;
static const struct scenario *row;
extern char __start_ex_tls[], __stop_ex_tls[];

unsigned cost_cpus(void) {
    return cpus;
}
unsigned cc__cpus_usable(void) {
    return cpus;
}
unsigned cc__cpus_limit(unsigned limit, const char *proc_file, const char *mount) {
    (void)proc_file, (void)mount;
    return limit;
}

void ex_fail(const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    fprintf(stderr, "cost: %s on %u CPUs: ", row->name, cpus);
    vfprintf(stderr, fmt, args);
    fputc('\n', stderr);
    va_end(args);
    exit(1);
}

/* ---- lines ---- */

struct line {
    uintptr_t at;            /* address / 64; 0: free */
    int16_t owner;           /* the CPU that wrote it last, alone; -1: several have it; -2: none */
    uint64_t sharers[SETS];  /* who has it */
    uint64_t free_at;        /* the last transfer for writing has ended */
    uint64_t cost, accesses; /* beyond hits, since cost_begin */
    const char *site;        /* of the access that was dearest */
    const void *pc;
    uint64_t dearest;
};

static struct line *lines;
static size_t line_slots, line_count;

static struct line *find_slot(struct line *table, size_t slots, uintptr_t at) {
    size_t i = at * UINT64_C(0x9e3779b97f4a7c15) >> 20 & (slots - 1);
    while (table[i].at != 0 && table[i].at != at) i = (i + 1) & (slots - 1);
    return &table[i];
}

static void grow_lines(void) {
    size_t slots = line_slots == 0 ? 1 << 16 : line_slots * 2;
    struct line *table = calloc(slots, sizeof *table);
    if (table == NULL) abort();
    for (size_t i = 0; i < line_slots; i++)
        if (lines[i].at != 0) *find_slot(table, slots, lines[i].at) = lines[i];
    free(lines);
    lines = table;
    line_slots = slots;
}

static struct line *find_line(uintptr_t at) {
    if (line_count * 2 >= line_slots) grow_lines();
    struct line *l = find_slot(lines, line_slots, at);
    if (l->at == 0) {
        l->at = at;
        l->owner = -2;
        line_count++;
    }
    return l;
}

/* The current CPU touches a line: what that costs. */
static void touch(const volatile void *addr, bool writes, uint64_t hit, const char *site, const void *pc) {
    if (current < 0) return; /* a constructor */
    struct vthread *t = &threads[current];
    struct line *l = find_line((uintptr_t)addr / 64);
    uint64_t bit = UINT64_C(1) << (current % 64), *set = &l->sharers[current / 64];
    bool has = l->owner == current || l->owner == -2 || (!writes && (*set & bit) != 0); /* COST-1, COST-3 */
    t->now += hit;
    t->busy += hit;
    if (!has) { /* COST-2 */
        uint64_t begin = t->now > l->free_at ? t->now : l->free_at, paid = begin + TRANSFER - t->now;
        l->cost += paid;
        l->accesses++;
        if (paid > l->dearest) {
            l->dearest = paid;
            l->site = site;
            l->pc = pc;
        }
        t->now = begin + TRANSFER;
        if (writes) l->free_at = t->now;
    }
    if (writes) {
        l->owner = (int16_t)current;
        memset(l->sharers, 0, sizeof l->sharers);
        *set |= bit;
    } else if (l->owner != current) {
        l->owner = -1;
        *set |= bit;
    }
}

/* ---- who goes on ---- */

static void arrive(int thread) {
    current = thread;
    errno = threads[thread].error;
    memcpy(__start_ex_tls, threads[thread].tls, (size_t)(__stop_ex_tls - __start_ex_tls));
}
static void go_to(int thread) {
    if (thread == current) return;
    struct context *from = &threads[current].context;
    threads[current].error = errno;
    memcpy(threads[current].tls, __start_ex_tls, (size_t)(__stop_ex_tls - __start_ex_tls));
    arrive(thread);
    (void)cc__context_switch(from, &threads[thread].context, NULL);
}

/* When a thread can continue; UINT64_MAX: not by itself. */
static uint64_t ready_at(struct vthread *t) {
    switch (t->state) {
    case THREAD_READY:
        return t->now;
    case THREAD_BLOCKED:
        return t->until;
    case THREAD_JOINING:
        return threads[t->joins].state == THREAD_ENDED ? t->now : UINT64_MAX;
    default:
        return UINT64_MAX;
    }
}

/* Until when the current thread may continue without a check: the next one's time. */
static uint64_t horizon;

/* The thread whose time comes first. */
static void go_on_with_first(void) {
    int first = -1;
    uint64_t at = UINT64_MAX, second = UINT64_MAX;
    for (int i = 0; i < thread_count; i++) {
        uint64_t ready = ready_at(&threads[i]);
        if (ready < at || (ready == at && at != UINT64_MAX && i == current)) {
            second = at;
            at = ready;
            first = i;
        } else if (ready < second) {
            second = ready;
        }
    }
    if (first < 0) ex_fail("nobody can go on");
    struct vthread *t = &threads[first];
    if (t->state == THREAD_BLOCKED) { /* its deadline */
        t->state = THREAD_READY;
        t->now = t->until + SYSTEM;
    } else if (t->state == THREAD_JOINING) {
        t->state = THREAD_READY;
        if (t->now < threads[t->joins].now) t->now = threads[t->joins].now;
    }
    horizon = second;
    go_to(first);
}

/* Before an operation that others see. */
static void point(void) {
    while (current >= 0 && threads[current].now > horizon) go_on_with_first();
}

static void spend(uint64_t tenths) {
    if (current < 0) return;
    threads[current].now += tenths;
    threads[current].busy += tenths;
}

/* ---- stubs: memory ---- */

static uint64_t peek(const volatile void *addr, unsigned size) {
    uint64_t value = 0;
    memcpy(&value, (const void *)addr, size);
    return value;
}
static void poke(volatile void *addr, unsigned size, uint64_t value) {
    memcpy((void *)addr, &value, size);
}

uint64_t ex_load(const volatile void *addr, unsigned size, enum ex_order order, const char *at) {
    (void)order;
    point();
    touch(addr, false, HIT, at, NULL);
    return peek(addr, size);
}
void ex_store(volatile void *addr, unsigned size, uint64_t value, enum ex_order order, const char *at) {
    (void)order;
    point();
    touch(addr, true, HIT, at, NULL);
    poke(addr, size, value);
}
uint64_t ex_rmw(volatile void *addr, unsigned size, enum ex_rmw op, uint64_t operand, enum ex_order order,
                const char *at) {
    (void)order;
    point();
    touch(addr, true, RMW, at, NULL);
    uint64_t before = peek(addr, size), after = operand;
    if (op == EX_ADD) after = before + operand;
    if (op == EX_SUB) after = before - operand;
    if (op == EX_OR) after = before | operand;
    if (op == EX_AND) after = before & operand;
    poke(addr, size, after);
    return before;
}
bool ex_cas(volatile void *addr, unsigned size, uint64_t *expected, uint64_t value, enum ex_order order, bool weak,
            const char *at) {
    (void)order, (void)weak;
    point();
    touch(addr, true, RMW, at, NULL);
    uint64_t before = peek(addr, size);
    if (before != *expected) {
        *expected = before;
        return false;
    }
    poke(addr, size, value);
    return true;
}
void ex_fence(void) {
    spend(FENCE);
}
bool ex_membarrier_offered(void) {
    return true;
}
void ex_membarrier(void) { /* COST-4 */
    point();
    unsigned running = 0;
    for (int i = 0; i < thread_count; i++)
        if (i != current && threads[i].state == THREAD_READY) {
            threads[i].now += INTERRUPT;
            running++;
        }
    spend(SYSTEM + running * INTERRUPT / 8);
}

static void plain(const void *addr, size_t size, bool writes, const void *pc) {
    uintptr_t first = (uintptr_t)addr / 64, last = ((uintptr_t)addr + size - 1) / 64;
    for (uintptr_t l = first; l <= last; l++) touch((void *)(l * 64), writes, PLAIN, NULL, pc);
}

#define ACCESS(N)                                        \
    void __tsan_read##N(void *p);                        \
    void __tsan_read##N(void *p) {                       \
        plain(p, N, false, __builtin_return_address(0)); \
    }                                                    \
    void __tsan_write##N(void *p);                       \
    void __tsan_write##N(void *p) {                      \
        plain(p, N, true, __builtin_return_address(0));  \
    }                                                    \
    void __tsan_unaligned_read##N(void *p);              \
    void __tsan_unaligned_read##N(void *p) {             \
        plain(p, N, false, __builtin_return_address(0)); \
    }                                                    \
    void __tsan_unaligned_write##N(void *p);             \
    void __tsan_unaligned_write##N(void *p) {            \
        plain(p, N, true, __builtin_return_address(0));  \
    }
ACCESS(1)
ACCESS(2)
ACCESS(4)
ACCESS(8)
ACCESS(16)
void __tsan_read_range(void *p, size_t size);
void __tsan_read_range(void *p, size_t size) {
    if (size > 0) plain(p, size, false, __builtin_return_address(0));
}
void __tsan_write_range(void *p, size_t size);
void __tsan_write_range(void *p, size_t size) {
    if (size > 0) plain(p, size, true, __builtin_return_address(0));
}
void __tsan_init(void);
void __tsan_init(void) {}

void *__real_memcpy(void *to, const void *from, size_t size);
void *__real_memmove(void *to, const void *from, size_t size);
void *__real_memset(void *to, int c, size_t size);
void *__wrap_memcpy(void *to, const void *from, size_t size);
void *__wrap_memcpy(void *to, const void *from, size_t size) {
    return __real_memcpy(to, from, size);
}
void *__wrap_memmove(void *to, const void *from, size_t size);
void *__wrap_memmove(void *to, const void *from, size_t size) {
    return __real_memmove(to, from, size);
}
void *__wrap_memset(void *to, int c, size_t size);
void *__wrap_memset(void *to, int c, size_t size) {
    return __real_memset(to, c, size);
}

/* A switch of contexts. */
void ex_touch(const volatile void *addr, size_t size) {
    (void)size;
    touch(addr, true, SWITCH, "a stack that is left", NULL);
}

void *ex_alloc(size_t size) {
    spend(ALLOCATE);
    void *p = aligned_alloc(64, (size + 127) & ~(size_t)63);
    if (p == NULL) abort();
    memset(p, 0, size);
    return p;
}
void ex_free(void *p) {
    spend(ALLOCATE);
    free(p);
}
void *ex_reserve(size_t size) {
    spend(SYSTEM);
    void *p = mmap(NULL, size * 2, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) ex_fail("no address space");
    uintptr_t align = (size & (size - 1)) == 0 ? size : 4096;
    return (void *)(((uintptr_t)p + align - 1) & ~(align - 1)); /* the rest is given up */
}
void ex_release(void *p, size_t size) {
    spend(SYSTEM);
    (void)p, (void)size;
}

/* ---- stubs: threads and time ---- */

void ex_relax(void) {
    spend(RELAX);
    point();
}
void ex_nap(uint64_t ns) {
    threads[current].now += ns * TENTHS;
    point();
}
uint64_t ex_clock(void) {
    spend(CLOCK);
    return threads[current].now / TENTHS;
}

void ex_futex_wait(const volatile void *word, uint32_t expected, uint64_t until) {
    point();
    spend(SYSTEM);
    struct vthread *t = &threads[current];
    uint64_t end = until > UINT64_MAX / TENTHS ? UINT64_MAX : until * TENTHS;
    if ((uint32_t)peek(word, 4) != expected || end <= t->now) return;
    t->state = THREAD_BLOCKED;
    t->futex = word;
    t->until = end;
    go_on_with_first();
}
/* COST-5. */
static uint64_t seed = 1;
static uint64_t wake_time(void) {
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return WAKE - WAKE / 10 + (seed >> 33) % (WAKE / 5);
}

void ex_futex_wake(const volatile void *word, int n) {
    point();
    spend(SYSTEM);
    uint64_t now = threads[current].now;
    for (int i = 0; i < thread_count && n > 0; i++)
        if (threads[i].state == THREAD_BLOCKED && threads[i].futex == word) {
            threads[i].state = THREAD_READY;
            threads[i].now = now + wake_time();
            if (threads[i].now < horizon) horizon = threads[i].now;
            n--;
        }
}

static void run(void *value) {
    (void)value;
    threads[current].fn(threads[current].arg);
    threads[current].state = THREAD_ENDED;
    horizon = 0;
    go_on_with_first();
    abort();
}

int ex_thread_start(void *(*fn)(void *), void *arg) {
    if (thread_count == THREADS_MAX) ex_fail("more than %d threads", THREADS_MAX);
    int i = thread_count++;
    struct vthread *t = &threads[i];
    char *stack = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stack == MAP_FAILED) abort();
    t->state = THREAD_READY;
    t->until = UINT64_MAX;
    t->fn = fn;
    t->arg = arg;
    t->now = current >= 0 ? threads[current].now + wake_time() : 10000000;
    if (t->now < horizon) horizon = t->now;
    cc__context_start(&t->context, stack + STACK_SIZE, run);
    return i;
}
void ex_thread_join(int thread) {
    threads[current].joins = thread;
    threads[current].state = THREAD_JOINING;
    go_on_with_first();
}
int ex_thread_self(void) {
    return current;
}
void ex_thread_stack(const void **bottom, const void **top) {
    *bottom = *top = NULL;
}
void ex_settle(void) {}
void *ex_self_get(void) {
    return current >= 0 ? threads[current].self : NULL;
}
void ex_self_set(void *self) {
    threads[current].self = self;
}
unsigned long ex_pthread_self(void) {
    return (unsigned long)(current + 1) * 4096;
}
int ex_mutex_lock(void *mutex) {
    uint64_t expected = 0;
    while (!ex_cas(mutex, sizeof(int), &expected, 1, EX_ACQ_REL, false, "a mutex of the system")) {
        expected = 0;
        ex_relax();
    }
    return 0;
}
int ex_mutex_unlock(void *mutex) {
    ex_store(mutex, sizeof(int), 0, EX_RELEASE, "a mutex of the system");
    return 0;
}

/* ---- what comes out ---- */

enum { SAMPLES_MAX = 100000 };
static uint64_t samples[SAMPLES_MAX];
static size_t sample_count;
static uint64_t began;

void cost_work(uint64_t ns) {
    spend(ns * TENTHS);
}
void cost_sample(uint64_t ns) {
    if (sample_count < SAMPLES_MAX) samples[sample_count++] = ns;
}
void cost_begin(void) {
    point();
    began = threads[current].now;
    sample_count = 0;
    for (int i = 0; i < thread_count; i++) threads[i].busy = 0;
    for (size_t i = 0; i < line_slots; i++) lines[i].cost = lines[i].accesses = lines[i].dearest = 0;
}

static int by_cost(const void *a, const void *b) {
    uint64_t x = ((const struct line *)a)->cost, y = ((const struct line *)b)->cost;
    return x < y ? 1 : x > y ? -1 : 0;
}
static int by_size(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x > y ? 1 : x < y ? -1 : 0;
}

/* One line of JSON; the dearest lines, each with the access to it that cost most. */
void cost_end(uint64_t ops) {
    point();
    uint64_t took = threads[current].now - began, busy = 0, transfers = 0;
    for (int i = 0; i < thread_count; i++) busy += threads[i].busy;
    for (size_t i = 0; i < line_slots; i++) transfers += lines[i].cost;
    printf("{\"row\": \"%s\", \"cpus\": %u, \"ops\": %llu, \"ns\": %.1f, \"busy_ns\": %.1f, \"transfer_ns\": %.1f",
           row->name, cpus, (unsigned long long)ops, (double)took / TENTHS, (double)busy / TENTHS,
           (double)transfers / TENTHS);
    if (sample_count > 0) {
        qsort(samples, sample_count, sizeof *samples, by_size);
        printf(", \"p50_ns\": %llu, \"p99_ns\": %llu, \"max_ns\": %llu", (unsigned long long)samples[sample_count / 2],
               (unsigned long long)samples[sample_count * 99 / 100], (unsigned long long)samples[sample_count - 1]);
    }
    qsort(lines, line_slots, sizeof *lines, by_cost);
    printf(", \"lines\": [");
    for (size_t i = 0; i < 5 && lines[i].cost > 0; i++) {
        printf("%s{\"share\": %.4f, \"transfers\": %llu, ", i > 0 ? ", " : "",
               (double)lines[i].cost / (double)(busy + transfers), (unsigned long long)lines[i].accesses);
        if (lines[i].site != NULL)
            printf("\"site\": \"%s\"}", lines[i].site);
        else
            printf("\"pc\": \"%p\"}", lines[i].pc);
    }
    printf("]}\n");
    fflush(stdout);
    _Exit(0); /* the runtime needs no end */
}

/* ---- the program ---- */

struct ex_offer ex_offer(void);

static void *body(void *arg) {
    (void)arg;
    row->threads[0]();
    ex_fail("the row has not called cost_end");
}

int main(int argc, char **argv) {
    struct ex_offer offer = ex_offer();
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        for (size_t i = 0; i < offer.count; i++)
            printf("%s\t%s\n", offer.scenarios[i]->name, offer.scenarios[i]->about);
        return 0;
    }
    cpus = argc >= 3 ? (unsigned)atoi(argv[2]) : 0;
    for (size_t i = 0; argc >= 3 && i < offer.count; i++)
        if (strcmp(offer.scenarios[i]->name, argv[1]) == 0) row = offer.scenarios[i];
    if (argc >= 4) seed = strtoull(argv[3], NULL, 10);
    if (row == NULL || cpus < 1 || cpus > 128) {
        fprintf(stderr, "usage: cost ROW CPUS (1 to 128) [SEED], or cost --list\n");
        return 2;
    }
    if (offer.tls_size > TLS_MAX) ex_fail("%zu bytes are thread-local", offer.tls_size);
    for (int i = 0; i < THREADS_MAX; i++) memcpy(threads[i].tls, __start_ex_tls, offer.tls_size); /* as it was loaded */
    int first = ex_thread_start(body, NULL);
    struct context outside;
    arrive(first);
    (void)cc__context_switch(&outside, &threads[first].context, NULL);
    return 1;
}
