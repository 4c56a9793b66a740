/* busy.c - every worker spins on a flag that a fiber would set, if a worker were free to run it. */
#include <ccc/ccc.h>
#include <stdatomic.h>
#include <stdio.h>

static atomic_bool ready;
static atomic_int polling;

static void *wait_until_ready(void *unused) {
    (void)unused;
    atomic_fetch_add(&polling, 1);
    while (!atomic_load(&ready)) {
    }
    return NULL;
}

static void *make_ready(void *unused) {
    (void)unused;
    atomic_store(&ready, true);
    return NULL;
}

int main(void) {
    cc_runtime_init(&(CCRuntimeConfig){.workers = 2, .max_workers = 2});
    CCTask pollers[2], maker;
    for (int i = 0; i < 2; i++) cc_spawn(&pollers[i], wait_until_ready, NULL, &(CCSpawnOptions){.name = "poller"});
    while (atomic_load(&polling) < 2) cc_sleep_ms(1);
    cc_spawn(&maker, make_ready, NULL, &(CCSpawnOptions){.name = "maker"});
    puts("waiting");
    fflush(stdout);
    for (int i = 0; i < 2; i++) cc_block_on(pollers[i]);
    cc_block_on(maker);
}
