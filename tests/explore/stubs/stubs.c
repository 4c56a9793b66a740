/* stubs.c - the explorer's stubs for src/os/clock.c, src/os/linux/{clock,fault,futex,membarrier,thread,vm}.c
 * and src/base/{mem,fatal}.c; and what the shared object offers to the explorer.
 */
#include "base/fatal.h"
#include "base/mem.h"
#include "explore.h"
#include "os/clock.h"
#include "os/futex.h"
#include "os/membarrier.h"
#include "os/signals.h"
#include "os/thread.h"
#include "os/vm.h"

#include <ccc/ccc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- base ---- */

void *cc__mem_alloc(size_t size) {
    return ex_alloc(size);
}
void *cc__mem_alloc_stack(size_t size) {
    return cc__mem_alloc(size);
}
void *cc__mem_alloc_small(size_t size) {
    return ex_alloc(size);
}
void cc__mem_free(void *p) {
    ex_free(p);
}
void cc__mem_free_libc(void *p) {
    free(p);
}

void cc__fatal_also(void (*fn)(void)) {
    (void)fn;
}
void cc__fatal(const char *fmt, ...) {
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    ex_fail("the library says: %s", text);
}
void cc__stderr_write(const char *text, size_t size) {
    (void)!write(2, text, size);
}
void cc__stderr_bound(void) {}

void cc__warn(const char *fmt, ...) {
    (void)fmt;
}

/* ---- os ---- */

bool cc__affinity_single(void) {
    return false;
}

uint64_t cc__clock_now(void) {
    return ex_clock();
}
uint64_t cc__clock_look(void) {
    return ex_clock();
}
uint64_t cc__clock_real(void) {
    return ex_clock();
}
/* Nothing is simulated: the explorer does that, and more. */
bool cc__clock_is_simulated(void) {
    return false;
}
bool cc__clock_counts_cycles(void) {
    return false;
}
void cc__clock_simulate(uint64_t start) {
    (void)start;
}
void cc__clock_pass(uint64_t ns) {
    (void)ns;
}
void cc__clock_pass_to(uint64_t moment) {
    (void)moment;
}

void cc__futex_wait(_Atomic uint32_t *word, uint32_t expected, uint64_t until) {
    ex_futex_wait(word, expected, until);
}
void cc__futex_wake(_Atomic uint32_t *word, int n) {
    ex_futex_wake(word, n);
}

bool cc__membarrier_register(void) {
    return ex_membarrier_offered();
}
void cc__membarrier(void) {
    ex_membarrier();
}

/* The numbers of ex_pthread_self. */
enum { THREAD_UNIT = 4096 };
int cc__thread_start(pthread_t *thread, void *(*fn)(void *), void *arg) {
    *thread = (pthread_t)(ex_thread_start(fn, arg) + 1) * THREAD_UNIT;
    return 0;
}
int cc__thread_start_quiet(pthread_t *thread, void *(*fn)(void *), void *arg) {
    return cc__thread_start(thread, fn, arg);
}
/* Sysmon, which would tick among all the others: it is not explored. */
enum { NOBODY = -1 };
int cc__thread_start_deaf(pthread_t *thread, void *(*fn)(void *), void *arg) {
    (void)fn, (void)arg;
    *thread = (pthread_t)NOBODY;
    return 0;
}
void cc__thread_if_ended(void (*fn)(void)) {
    (void)fn;
}
void cc__thread_join(pthread_t thread) {
    if (thread != (pthread_t)NOBODY) ex_thread_join((int)(thread / THREAD_UNIT) - 1);
}
bool cc__thread_join_until(pthread_t thread, uint64_t until) {
    (void)until;
    cc__thread_join(thread);
    return true;
}
void cc__thread_signals_keep(void) {}
void cc__thread_signals_take(void) {}
uint64_t cc__thread_cpu(pthread_t thread) {
    (void)thread;
    return UINT64_MAX;
}
uint64_t cc__thread_cpu_of(int id) {
    (void)id;
    return UINT64_MAX;
}
char cc__thread_state(int id) {
    (void)id;
    return 0;
}
bool cc__thread_file(int id, const char *name, char *text, size_t size) {
    (void)id, (void)name, (void)text, (void)size;
    return false;
}
int cc__thread_on_cpu(void) {
    return ex_thread_self();
}
bool cc__thread_keep_off(int id, int cpu) {
    (void)id, (void)cpu;
    return false;
}
void cc__thread_any_cpu(int cpu) {
    (void)cpu;
}
void cc__thread_keep_off_configure(bool on) {
    (void)on;
}
int cc__thread_may_pin(int cpu) {
    (void)cpu;
    return 0;
}
int cc__thread_pin(int cpu) {
    (void)cpu;
    return 0;
}
void cc__thread_name(const char *name) {
    (void)name;
}
int cc__thread_id(void) {
    return ex_thread_self() + 1;
}
void cc__thread_yield(void) {
    ex_relax();
}
void cc__thread_punctual(void) {}
void cc__thread_count_naps(_Atomic uint32_t *naps) {
    (void)naps;
}
void cc__thread_nap_for_lock(long ns) {
    cc__thread_nap(ns);
}
void cc__thread_nap(long ns) {
    ex_nap((uint64_t)ns);
}
size_t cc__thread_stack_size(void) {
    return 0;
}

void cc__thread_stack(const void **bottom, const void **top) {
    ex_thread_stack(bottom, top);
}

size_t cc__vm_page_size = 4096;
void cc__vm_init(void) {}
bool cc__vm_guard_is_free(void) {
    return true;
}
size_t cc__vm_guards_max(void) {
    return SIZE_MAX;
}
void *cc__vm_reserve(size_t size) {
    return ex_reserve(size);
}
void cc__vm_release(void *p, size_t size) {
    ex_release(p, size);
}
bool cc__vm_guard(void *p, size_t size) {
    (void)p, (void)size;
    return true;
}
void cc__vm_populate(void *p, size_t size) {
    (void)p, (void)size;
}
bool cc__vm_guard_all(const struct vm_range *ranges, size_t n) {
    (void)ranges, (void)n;
    return true;
}
void cc__vm_populate_all(const struct vm_range *ranges, size_t n) {
    (void)ranges, (void)n;
}
void cc__vm_discard_all(const struct vm_range *ranges, size_t n) {
    (void)ranges, (void)n;
}
size_t cc__vm_touched(const void *p, size_t size) {
    (void)p, (void)size;
    return 0;
}
void cc__vm_discard(void *p, size_t size) {
    (void)p, (void)size;
}

void cc__fault_install(fault_explain explain, void (*aborts)(void)) {
    (void)aborts;
    (void)explain;
}
void cc__fault_remove(void) {}
size_t cc__fault_stack_size(void) {
    return 64;
}
bool cc__fault_stack_have(void) {
    return true;
}
void cc__fault_stack_set(void *stack, size_t size) {
    (void)stack, (void)size;
}
void cc__fault_stack_clear(void) {}

/* ---- to the explorer ---- */

extern const struct scenario *const __start_scenarios[], *const __stop_scenarios[];
extern char __start_ex_tls[], __stop_ex_tls[];

static void *nothing(void *arg) {
    return arg;
}

/* Fills the worker's caches, so that the runs do not carve and map. */
static void *warm(void *arg) {
    for (int i = 0; i < 2; i++) {
        CCTask child[3];
        for (int k = 0; k < 3; k++) (void)cc_spawn(&child[k], nothing, NULL, NULL);
        for (int k = 0; k < 3; k++) {
            cc_yield();
            (void)cc_task_join(&child[k], NULL);
        }
    }
    return arg;
}

static void start(unsigned workers) {
    CCRuntimeConfig config = {.workers = workers, .stack_size = (size_t)64 * 1024, .queue_slots = 2};
    (void)setenv("CC_MIN_WORKERS", "512", 1); /* all of them have threads, however few CPUs there are */
    int rc = cc_runtime_init(&config);
    if (rc != 0) ex_fail("the runtime does not start: %d", rc);
    for (unsigned i = 0; i < 2 * workers; i++) (void)cc_run(warm, NULL, NULL);
}

__attribute__((visibility("default"))) struct ex_offer ex_offer(void);

struct ex_offer ex_offer(void) {
    return (struct ex_offer){__start_scenarios, (size_t)(__stop_scenarios - __start_scenarios), __start_ex_tls,
                             (size_t)(__stop_ex_tls - __start_ex_tls), start};
}
