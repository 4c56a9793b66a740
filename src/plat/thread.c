/* thread.c - OS threads. */
#include "plat/thread.h"

#include "base/fatal.h"

#include <sched.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int cc__thread_start(pthread_t *thread, void *(*fn)(void *), void *arg) {
    return pthread_create(thread, NULL, fn, arg);
}

void cc__thread_join(pthread_t thread) {
    int rc = pthread_join(thread, NULL);
    if (rc != 0) cc__fatal("pthread_join of a worker failed with error %d", rc);
}

void cc__thread_name(const char *name) {
    char short_name[16];
    snprintf(short_name, sizeof short_name, "%s", name);
    pthread_setname_np(pthread_self(), short_name);
}

int cc__thread_id(void) {
    return (int)syscall(SYS_gettid);
}

void cc__thread_yield(void) {
    sched_yield();
}

void cc__thread_nap(long ns) {
    struct timespec nap = {.tv_nsec = ns};
    (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL); /* a signal may end it early */
}

void cc__thread_stack(const void **bottom, const void **top) {
    static _Thread_local const char *low __attribute__((tls_model("initial-exec")));
    static _Thread_local size_t size __attribute__((tls_model("initial-exec")));
    if (low == NULL) { /* asked once: for the main thread it means reading /proc/self/maps */
        pthread_attr_t attr;
        void *at = NULL;
        if (pthread_getattr_np(pthread_self(), &attr) == 0) {
            (void)pthread_attr_getstack(&attr, &at, &size);
            pthread_attr_destroy(&attr);
        }
        low = at;
    }
    *bottom = low;
    *top = low != NULL ? low + size : NULL;
}
