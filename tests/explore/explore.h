/* explore.h - the interface between the explored code and the explorer.
 *
 * The library's real sources and the scenarios are compiled with the stubs in stubs/ before src/ in the include
 * path, into one shared object; the explorer (core/) loads that object and implements the functions below. Names
 * with ex_ are the explorer's.
 */
#ifndef EXPLORE_H
#define EXPLORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- stubs ---- */

enum ex_order { EX_RELAXED, EX_ACQUIRE, EX_RELEASE, EX_ACQ_REL, EX_SEQ };
enum ex_rmw { EX_SWAP, EX_ADD, EX_SUB, EX_OR, EX_AND };

/* Each is one step: the explorer may switch to another thread before it. `at` is its place in the source. */
uint64_t ex_load(const volatile void *addr, unsigned size, enum ex_order order, const char *at);
void ex_store(volatile void *addr, unsigned size, uint64_t value, enum ex_order order, const char *at);
/* Return the old value. */
uint64_t ex_rmw(volatile void *addr, unsigned size, enum ex_rmw op, uint64_t operand, enum ex_order order,
                const char *at);
/* weak: may fail without cause. */
bool ex_cas(volatile void *addr, unsigned size, uint64_t *expected, uint64_t value, enum ex_order order, bool weak,
            const char *at);
void ex_fence(void);
void ex_membarrier(void);
/* False: the system has no membarrier, and both sides of sync/barrier.h are fences. */
bool ex_membarrier_offered(void);

void ex_relax(void); /* a spinning thread lets others go first */
void ex_futex_wait(const volatile void *word, uint32_t expected, uint64_t until);
void ex_futex_wake(const volatile void *word, int n);
uint64_t ex_clock(void);
void ex_nap(uint64_t ns);

/* A thread of its own, on the explorer's stack and clock; worker: it may sleep for ever when a scenario ends. */
int ex_thread_start(void *(*fn)(void *), void *arg);
void ex_thread_join(int thread);
int ex_thread_self(void);
void ex_thread_stack(const void **bottom, const void **top);
/* Set-up: all other threads run until they block. */
void ex_settle(void);
void *ex_self_get(void);
void ex_self_set(void *self);

/* Replace pthread_self, pthread_mutex_lock and pthread_mutex_unlock. */
unsigned long ex_pthread_self(void);
int ex_mutex_lock(void *mutex);
int ex_mutex_unlock(void *mutex);

/* That memory is about to be written by something that is not instrumented. */
void ex_touch(const volatile void *addr, size_t size);

void *ex_alloc(size_t size);
void ex_free(void *p);
void *ex_reserve(size_t size);
void ex_release(void *p, size_t size);

/* The scenario has failed; the explorer prints how to replay it. Does not return. */
__attribute__((noreturn)) void ex_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* ---- scenarios ---- */

enum { EX_THREADS = 4 };

enum ex_fails { EX_HOLDS, EX_FAILS_WEAK, EX_FAILS_TSO, EX_FAILS_SC }; /* each includes those before */

struct scenario {
    const char *name;
    const char *about;
    unsigned workers;    /* the runtime runs, with that many workers; 0: it does not */
    void (*setup)(void); /* once, alone, before the state is saved; on a thread that is no worker */
    void (*threads[EX_THREADS])(void);
    void (*check)(void); /* after each run, alone: the workers are idle */
    bool no_timer;       /* it fails if the clock has to move for anything to happen */
    bool membarrier;     /* it is about membarrier itself: left out where there is none */
    enum ex_fails fails; /* it must fail in these modes, and no others */
};

#define SCENARIO(NAME, ABOUT, ...)                                                               \
    static const struct scenario scenario_##NAME = {.name = #NAME, .about = ABOUT, __VA_ARGS__}; \
    static const struct scenario *const at_##NAME __attribute__((used, section("scenarios"))) = &scenario_##NAME

/* What the shared object offers; found by name. */
struct ex_offer {
    const struct scenario *const *scenarios;
    size_t count;
    char *tls; /* what is thread-local, in one section: the explorer keeps a copy for each thread */
    size_t tls_size;
    void (*start)(unsigned workers); /* starts the runtime and warms its caches */
};

#define EX_CHECK(cond)                                                              \
    do {                                                                            \
        if (!(cond)) ex_fail("%s:%d: %s does not hold", __FILE__, __LINE__, #cond); \
    } while (0)
#define EX_EQ(a, b)                                                                                                 \
    do {                                                                                                            \
        long long ex_a = (long long)(a), ex_b = (long long)(b);                                                     \
        if (ex_a != ex_b) ex_fail("%s:%d: %s is %lld, should be %s, %lld", __FILE__, __LINE__, #a, ex_a, #b, ex_b); \
    } while (0)

#endif
