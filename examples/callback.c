/* callback.c - a library that calls back on a thread of its own, and a fiber that waits for it by a wake key. */
#include <ccc/ccc.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- a third-party library ---- */

struct request {
    int number;
    void (*done)(int result, void *context);
    CCWakeKey context; /* the caller's argument: here a copy of a key */
};

static void *work(void *arg) {
    struct request *r = arg;
    r->done(r->number * r->number, &r->context);
    free(r);
    return NULL;
}

static pthread_t square_later(int number, void (*done)(int result, void *context), CCWakeKey context) {
    pthread_t thread;
    struct request *r = malloc(sizeof *r);
    if (r == NULL) abort();
    *r = (struct request){number, done, context};
    if (pthread_create(&thread, NULL, work, r) != 0) abort();
    return thread;
}

/* ---- the program ---- */

static void done(int result, void *context) { /* on a thread of the library */
    (void)cc_wake(*(CCWakeKey *)context, (uint64_t)result);
}

CC_ASYNC(uint64_t, square, { int number; }) {
    CCWakeKey key;
    uint64_t result = 0;
    if (cc_wake_key_open(&key) != 0) abort();
    pthread_t thread = square_later(self->number, done, key);
    CC_SET_ERROR(cc_wake_key_wait(key, &result)); /* the fiber waits; its worker does not */
    pthread_join(thread, NULL);
    return result;
}

int main(void) {
    CC_FUTURE(square, a);
    CC_FUTURE(square, b);
    CC_START(&a, square, .number = 3);
    CC_START(&b, square, .number = 4);
    printf("%d\n", (int)(CC_AWAIT(&a) + CC_AWAIT(&b)));

    CCWakeKey late;
    if (cc_wake_key_open(&late) != 0) return 1;
    if (cc_wake_key_wait_until(late, NULL, cc_after_ms(1)) == ETIMEDOUT) puts("no callback");
    if (cc_wake(late, 1) == ESRCH) puts("a call that comes late finds nobody");
}
