/* plugin.c - a shared object that contains the static library, for dlclose.c. */
#include <ccc/ccc.h>
#include <stdatomic.h>

#define EXPORTED __attribute__((visibility("default")))

static void *count_up(void *arg) {
    while (cc_sleep_ms(1) == 0) atomic_fetch_add((_Atomic unsigned *)arg, 1);
    return NULL;
}

/* Starts the runtime, and a fiber that counts for ever. */
EXPORTED int plugin_begin(_Atomic unsigned *count);
int plugin_begin(_Atomic unsigned *count) {
    return cc_spawn(NULL, count_up, count, NULL);
}
