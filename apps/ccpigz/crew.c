/* crew.c - how many workers there are, and when they are started. */
#include "crew.h"
#include "say.h"

#include <ccc/ccc.h>
#include <string.h>

/* The walk through a split stream has two windows of 32 KiB on its stack. */
#define STACK_SIZE ((size_t)256 * 1024)
/* The pools bound the number of queued tasks, so a short queue is enough; it is cleared at the start. */
#define QUEUE_SLOTS 256

int crew_start(const struct options *options) {
    static bool started;
    if (started) return 0;
    /* Pipes block no worker; one more worker takes over while a disk blocks one. */
    int rc = cc_runtime_init(&(CCRuntimeConfig){.workers = options->workers,
                                                .max_workers = options->workers + 1,
                                                .stack_size = STACK_SIZE,
                                                .queue_slots = QUEUE_SLOTS});
    started = rc == 0;
    if (rc != 0) say_error(NULL, "cannot start: %s", strerror(rc));
    return rc == 0 ? 0 : -1;
}

int crew_run(const struct options *options, void *(*fn)(void *arg), void *arg) { /* CREW-1 */
    if (crew_start(options) != 0) return -1;
    int rc = cc_run(fn, arg, NULL);
    if (rc != 0) say_error(NULL, "cannot start: %s", strerror(rc));
    return rc == 0 ? 0 : -1;
}
