/* constructor.c - a shared object whose constructor waits for a thread that starts the runtime, for dlclose.c. */
#include <ccc/ccc.h>
#include <pthread.h>

static int ran = -1;

static void *same(void *arg) {
    return arg;
}

static void *start(void *arg) {
    ran = cc_run(same, NULL, NULL);
    return arg;
}

static __attribute__((constructor)) void begin(void) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, start, NULL) == 0) (void)pthread_join(thread, NULL);
}

/* What the run has returned. */
__attribute__((visibility("default"))) int constructor_ran(void);
int constructor_ran(void) {
    return ran;
}
