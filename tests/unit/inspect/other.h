/* other.h - a thread that publishes its id, then does something until it is released. */
#ifndef CCC_TESTS_UNIT_INSPECT_OTHER_H
#define CCC_TESTS_UNIT_INSPECT_OTHER_H

#include "harness.h"

#include "os/futex.h"
#include "os/thread.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

struct other {
    pthread_t thread;
    void (*rest)(struct other *o);
    const void *bottom, *top; /* of its stack */
    _Atomic int tid, go;
    _Atomic uint32_t word; /* where it may wait; or it reads from the pipe */
    int ends[2];
    _Atomic int result;
    int error;
    unsigned long rounds;
};

static void *other_main(void *arg) {
    struct other *o = arg;
    cc__thread_stack(&o->bottom, &o->top);
    o->tid = cc__thread_id();
    o->rest(o);
    return NULL;
}

static void start(struct other *o, void (*rest)(struct other *o)) {
    memset(o, 0, sizeof *o);
    o->rest = rest;
    CHECK_EQ(pipe(o->ends), 0);
    CHECK_EQ(pthread_create(&o->thread, NULL, other_main, o), 0);
    while (o->tid == 0) cc__thread_yield();
}

static void end(struct other *o) {
    o->go = 1;
    o->word = 1;
    cc__futex_wake(&o->word, 1);
    CHECK_EQ(write(o->ends[1], "x", 1), 1);
    CHECK_EQ(pthread_join(o->thread, NULL), 0);
    close(o->ends[0]);
    close(o->ends[1]);
}

#endif
