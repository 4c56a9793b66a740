/* reference.h - detects whether the machine runs ready threads in time: a reference thread on each of two CPUs, above
 * the test's own priority, sleeps for short times and records late wake-ups. Measurements while one of them was late
 * (the host descheduled the virtual CPU, the kernel throttled real-time threads) say nothing about the library.
 */
#ifndef CCC_TESTS_UNIT_SCHED_REFERENCE_H
#define CCC_TESTS_UNIT_SCHED_REFERENCE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif

#include "harness.h"

#include <ccc/ccc.h>

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

enum { REFERENCES = 2, REFERENCE_NS = 100 * 1000, REFERENCE_LATE_NS = 150 * 1000 };

static struct reference {
    int cpu;
    pthread_t thread;
    _Atomic uint64_t looked, late; /* when it was last awake, and when last later than it should have been */
} references[REFERENCES];
static atomic_bool references_end;

static void *reference_run(void *arg) {
    struct reference *r = arg;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(r->cpu, &one);
    CHECK_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    for (uint64_t due = cc_now_ns(); !atomic_load(&references_end); due += REFERENCE_NS) {
        struct timespec until = {.tv_sec = (time_t)(due / 1000000000), .tv_nsec = (long)(due % 1000000000)};
        (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
        uint64_t now = cc_now_ns();
        if (now > due + REFERENCE_LATE_NS) atomic_store(&r->late, now);
        atomic_store(&r->looked, now);
        if (now > due) due = now;
    }
    return NULL;
}

/* The calling thread and all that it starts from now on have these two CPUs and this real-time priority. */
static inline void references_begin(int priority) {
    cpu_set_t all, two;
    if (sched_getaffinity(0, sizeof all, &all) != 0 || CPU_COUNT(&all) < REFERENCES) SKIP("two CPUs are needed");
    CPU_ZERO(&two);
    for (int cpu = 0, n = 0; n < REFERENCES; cpu++)
        if (CPU_ISSET(cpu, &all)) {
            CPU_SET(cpu, &two);
            references[n++].cpu = cpu;
        }
    CHECK_EQ(sched_setaffinity(0, sizeof two, &two), 0);
    struct sched_param ours = {.sched_priority = priority}, above = {.sched_priority = priority + 1};
    if (sched_setscheduler(0, SCHED_FIFO, &above) != 0) SKIP("real-time priority is needed, and not permitted here");
    for (int i = 0; i < REFERENCES; i++)
        CHECK_EQ(pthread_create(&references[i].thread, NULL, reference_run, &references[i]), 0);
    CHECK_EQ(sched_setscheduler(0, SCHED_FIFO, &ours), 0);
}

static inline void references_stop(void) {
    atomic_store(&references_end, true);
    for (int i = 0; i < REFERENCES; i++) CHECK_EQ(pthread_join(references[i].thread, NULL), 0);
}

/* Whether each of them was in time, from then until now. Computes until each of them has checked once more. */
static inline bool undisturbed_since(uint64_t begin) {
    bool in_time = true;
    for (uint64_t i = 0, now = cc_now_ns(); i < REFERENCES; i++) {
        while (atomic_load(&references[i].looked) <= now) {
        }
        if (atomic_load(&references[i].late) >= begin) in_time = false;
    }
    return in_time;
}

#endif
