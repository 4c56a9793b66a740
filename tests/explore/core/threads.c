/* threads.c - virtual threads: each stands for an OS thread, has a stack of its own, and is resumed and stopped by the
 * library's own context switch. Fibers switch inside of them as on real threads.
 *
 * THREADS-1  One thread runs at a time; it changes only in here.
 * THREADS-2  A thread that spins is skipped until another one has changed something, or none can run. Many steps in a
 *            row count as spinning: the thread probably waits for one that does not run.
 * THREADS-3  The clock stands still while a thread can run, except for the time of spinning. When none can, it jumps to
 *            the next deadline; without one this is a failure, a lost wake.
 * THREADS-4  A run ends when all but daemons have ended and no daemon can run either: what a worker still does when
 *            the last scenario thread has returned belongs to the run, in particular a use of memory that this thread
 *            has freed.
 * THREADS-5  The return from a frame is not visible, so an access to another thread's frame, also a plain one, is a
 *            point: the first one after a visible step. A frame that exists at that access and not at the next one
 *            could as well have returned before the first.
 */
#include "core.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    STEPS_MAX = 40000,
    RELAX_NS = 1000,
    LOOK_NS = 100,
    PATIENCE = 500, /* steps in a row, while others could run, that count as spinning */
};

struct vthread threads[THREADS_MAX];
int current = -1;
uint64_t clock_now, steps;
bool exploring, no_timer;
struct ex_offer offer;
char failure[1024];

static struct context explorer;
static unsigned in_a_row; /* steps of the current thread */
static int settles = -1;  /* set-up: waits until no other thread can run */
static char *stacks;

char *threads_stack(int thread) {
    if (stacks == NULL) {
        stacks = mmap(NULL, (size_t)THREADS_MAX * STACK_SIZE, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (stacks == MAP_FAILED) abort();
    }
    return stacks + (size_t)thread * STACK_SIZE;
}

bool threads_foreign_frame(const volatile void *addr) {
    size_t at = (size_t)((const volatile char *)addr - stacks);
    return stacks != NULL && at < (size_t)THREADS_MAX * STACK_SIZE && (int)(at / STACK_SIZE) != current;
}

/* Another thread's stack, below what it uses: a frame that was left. Of a thread that is on a fiber's stack nothing is
 * known. */
bool threads_left_frame(const volatile void *addr) {
    enum { RED_ZONE = 128 };
    if (!threads_foreign_frame(addr)) return false;
    size_t at = (size_t)((const volatile char *)addr - stacks);
    const struct vthread *t = &threads[at / STACK_SIZE];
    if (t->state == THREAD_FREE || t->state == THREAD_ENDED) return true;
    size_t sp = (size_t)((const char *)t->context.sp - stacks);
    return sp / STACK_SIZE == at / STACK_SIZE && at + RED_ZONE < sp;
}

/* ---- switching ---- */

static void leave(void) {
    if (current < 0) return;
    threads[current].error = errno;
    memcpy(threads[current].tls, offer.tls, offer.tls_size);
}

static void arrive(int thread) {
    current = thread;
    errno = threads[thread].error;
    memcpy(offer.tls, threads[thread].tls, offer.tls_size);
    state_dirty(offer.tls, offer.tls_size);
}

static void go_to(int thread) { /* THREADS-1 */
    if (thread == current) return;
    struct context *from = current < 0 ? &explorer : &threads[current].context;
    leave();
    arrive(thread);
    in_a_row = 0;
    (void)cc__context_switch(from, &threads[thread].context, NULL);
}

static __attribute__((noreturn)) void give_up(void) {
    leave();
    current = -1;
    cc__context_jump(&explorer, NULL);
}

/* The set-up is over. This thread blocks, and continues from here in the runs. */
static void rest(void) {
    struct context *from = &threads[current].context;
    leave();
    current = -1;
    (void)cc__context_switch(from, &explorer, NULL);
}

void ex_fail(const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    vsnprintf(failure, sizeof failure, fmt, args);
    va_end(args);
    if (current < 0) {
        fprintf(stderr, "explore: outside of a run: %s\n", failure);
        exit(2);
    }
    give_up();
}

/* ---- who can run ---- */

static bool can_run(int i) {
    struct vthread *t = &threads[i];
    if (t->state == THREAD_JOINING && threads[t->joins].state == THREAD_ENDED) t->state = THREAD_READY;
    if (t->state == THREAD_BLOCKED && t->until <= clock_now) t->state = THREAD_READY;
    return t->state == THREAD_READY;
}

/* The runnable threads, from the one after `current`; current itself first if it is among them. */
static int list_ready(int *list, bool spinners) { /* THREADS-2 */
    int n = 0, from = current < 0 ? 0 : current;
    for (int k = 0; k < THREADS_MAX; k++) {
        int i = (from + k) % THREADS_MAX;
        if (threads[i].state != THREAD_FREE && can_run(i) && (spinners || !threads[i].spun)) list[n++] = i;
    }
    return n;
}

static bool all_ended(void) {
    for (int i = 0; i < THREADS_MAX; i++) {
        enum thread_state state = threads[i].state;
        if (state != THREAD_FREE && state != THREAD_ENDED && !threads[i].daemon) return false;
    }
    return true;
}

static void unspin(void) {
    for (int i = 0; i < THREADS_MAX; i++)
        if (i != current) threads[i].spun = false;
}

static const char *describe(void) {
    static char text[512];
    size_t n = 0;
    for (int i = 0; i < THREADS_MAX && n < sizeof text - 80; i++)
        if (threads[i].state == THREAD_BLOCKED)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s thread %d%s waits on %p", n > 0 ? "," : "", i,
                                  threads[i].daemon ? " (a worker)" : "", (const void *)threads[i].futex);
    return text;
}

/* No thread can run: the next deadline. -1: there is none. */
static int jump(void) { /* THREADS-3 */
    int next = -1;
    for (int i = 0; i < THREADS_MAX; i++)
        if (threads[i].state == THREAD_BLOCKED && threads[i].until != UINT64_MAX &&
            (next < 0 || threads[i].until < threads[next].until))
            next = i;
    if (next < 0) return -1;
    if (exploring && no_timer) ex_fail("nothing happens any more until a timer rings:%s", describe());
    if (threads[next].until > clock_now) clock_now = threads[next].until;
    threads[next].state = THREAD_READY;
    return next;
}

/* The current thread stops: another one continues, or the run is over. Returns when it is scheduled again. */
static void next(void) {
    int list[THREADS_MAX];
    int n = list_ready(list, false);
    if (n == 0) {
        for (int i = 0; i < THREADS_MAX; i++) threads[i].spun = false;
        n = list_ready(list, true);
    }
    if (n == 0) {
        if (exploring && all_ended()) give_up(); /* THREADS-4 */
        if (!exploring && settles < 0) {
            rest();
            return;
        }
        int woken = exploring ? jump() : settles;
        if (woken < 0)
            ex_fail("nobody can go on, and not all have ended: a wake was lost, or a deadlock:%s", describe());
        list[n++] = woken;
    }
    go_to(list[choose_thread('b', list, n)]);
}

void threads_point(const volatile void *addr, bool writes) {
    if (++steps > STEPS_MAX && exploring)
        ex_fail("more than %d steps: nothing moves, or too big a scenario", STEPS_MAX);
    if (!exploring) return;
    if (++in_a_row > PATIENCE) {
        in_a_row = 0;
        ex_relax();
    }
    bool contended = memory_contended(addr);
    if (!contended && !(threads[current].moved && threads_foreign_frame(addr))) return;
    threads[current].moved = contended; /* THREADS-5 */
    int list[THREADS_MAX];
    int n = list_ready(list, false);
    if (settings.strategy != BY_LEARNING)
        for (int i = 0; i < THREADS_MAX; i++) /* time passes */
            if (threads[i].state == THREAD_BLOCKED && threads[i].until != UINT64_MAX && !no_timer) list[n++] = i;
    if (n > 1) {
        if (list[0] != current) { /* it spins, and polls again: it continues */
            memmove(list + 1, list, (size_t)(n < THREADS_MAX ? n : THREADS_MAX - 1) * sizeof *list);
            if (n < THREADS_MAX) n++;
            list[0] = current;
        }
        int chosen = list[choose_thread('t', list, n)];
        if (threads[chosen].state == THREAD_BLOCKED) {
            if (threads[chosen].until > clock_now) clock_now = threads[chosen].until;
            threads[chosen].state = THREAD_READY;
            note("(time passes)", "", NULL, 0);
        }
        go_to(chosen);
    }
    if (writes) unspin();
}

/* ---- stubs ---- */

void ex_relax(void) {
    clock_now += RELAX_NS;
    if (++steps > STEPS_MAX && exploring) ex_fail("more than %d steps: threads spin, and nothing changes", STEPS_MAX);
    int list[THREADS_MAX], n = 0;
    threads[current].spun = true;
    n = list_ready(list, false);
    if (n == 0) { /* all wait or spin: they take turns, and time passes */
        unspin();
        n = list_ready(list, false);
    }
    if (n == 0) return;
    choice_lower(current);
    go_to(list[choose_thread('b', list, n)]);
}

void ex_futex_wait(const volatile void *word, uint32_t expected, uint64_t until) {
    threads_point(word, false);
    uint32_t value;
    memcpy(&value, (const void *)word, sizeof value);
    note("futex_wait", "", word, value);
    if (value != expected || until <= clock_now) return;
    struct vthread *t = &threads[current];
    t->state = THREAD_BLOCKED;
    t->futex = word;
    t->until = until;
    unspin();
    next();
}

/* A step of its own: it may come so late that it ends the next wait on that word. */
void ex_futex_wake(const volatile void *word, int n) {
    threads_point(word, false);
    note("futex_wake", "", word, 0);
    for (int i = 0; i < THREADS_MAX && n > 0; i++)
        if (threads[i].state == THREAD_BLOCKED && threads[i].futex == word) {
            threads[i].state = THREAD_READY;
            n--;
        }
    unspin();
}

uint64_t ex_clock(void) {
    clock_now += LOOK_NS;
    return clock_now;
}

void ex_nap(uint64_t ns) {
    clock_now += ns;
    ex_relax();
}

void ex_settle(void) {
    settles = current;
    threads[current].state = THREAD_BLOCKED;
    threads[current].futex = NULL;
    threads[current].until = UINT64_MAX;
    next();
    threads[current].state = THREAD_READY;
    settles = -1;
}

static void run(void *value) {
    (void)value;
    struct vthread *t = &threads[current];
    if (t->body != NULL)
        t->body();
    else
        t->fn(t->arg);
    threads[current].state = THREAD_ENDED;
    unspin();
    next();
    abort();
}

/* What the thread did so far can be distinguished from what it does next. */
static void tick(int thread) {
    struct vthread *t = &threads[thread];
    t->ordered.at[thread] = ++t->seen.at[thread];
}

static int add(void) {
    int i = 0;
    while (i < THREADS_MAX && threads[i].state != THREAD_FREE) i++;
    if (i == THREADS_MAX) ex_fail("more than %d threads", THREADS_MAX);
    struct vthread *t = &threads[i];
    memset(t, 0, sizeof *t);
    t->state = THREAD_READY;
    t->until = UINT64_MAX;
    if (current >= 0) { /* it begins after what its maker did */
        tick(current);
        t->ordered = threads[current].ordered;
        t->seen = threads[current].seen;
    }
    cc__context_start(&t->context, threads_stack(i) + STACK_SIZE, run);
    return i;
}

int threads_add(void (*body)(void), bool daemon) {
    int i = add();
    threads[i].body = body;
    threads[i].daemon = daemon;
    return i;
}

int ex_thread_start(void *(*fn)(void *), void *arg) {
    int i = add();
    threads[i].fn = fn;
    threads[i].arg = arg;
    threads[i].daemon = true;
    return i;
}

void ex_thread_join(int thread) {
    struct vthread *t = &threads[current];
    t->joins = thread;
    t->state = THREAD_JOINING;
    next();
    tick(thread);
    clock_join(&t->ordered, &threads[thread].ordered);
    clock_join(&t->seen, &threads[thread].seen);
}

int ex_thread_self(void) {
    return current;
}

void ex_thread_stack(const void **bottom, const void **top) {
    *bottom = threads_stack(current);
    *top = threads_stack(current) + STACK_SIZE;
}

void *ex_self_get(void) {
    return current >= 0 ? threads[current].self : NULL;
}

void ex_self_set(void *self) {
    threads[current].self = self;
}

/* Replaces what the library takes from POSIX. */
unsigned long ex_pthread_self(void) {
    return (unsigned long)(current + 1) * 4096;
}

/* Orders as a mutex does: through an atomic word, the first of the mutex. */
int ex_mutex_lock(void *mutex) {
    uint64_t expected = 0;
    while (!ex_cas(mutex, sizeof(int), &expected, 1, EX_ACQ_REL, false, "mutex")) {
        expected = 0;
        ex_relax();
    }
    return 0;
}

int ex_mutex_unlock(void *mutex) {
    ex_store(mutex, sizeof(int), 0, EX_RELEASE, "mutex");
    return 0;
}

/* ---- a run ---- */

bool threads_run(void) {
    int list[THREADS_MAX];
    failure[0] = '\0';
    int n = list_ready(list, true);
    if (n > 0) go_to(list[choose_thread('b', list, n)]);
    return failure[0] == '\0';
}

void threads_forget(void) {
    memset(threads, 0, sizeof threads);
    clock_now = 1000000000;
    steps = 0;
}
