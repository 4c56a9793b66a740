/* counters.c - the runtime's counters: tasks, waits by reason, wakes; and how much stack was used. */
#include <ccc/ccc.h>

#include <inttypes.h>
#include <stdio.h>

enum { TASKS = 100 };

static void *nap(void *arg) {
    cc_sleep_ms(1);
    return arg;
}

int main(void) {
    CCTask tasks[TASKS];
    for (int i = 0; i < TASKS; i++) tasks[i] = cc_fiber_spawn_task(nap, NULL);
    for (int i = 0; i < TASKS; i++) cc_task_join(&tasks[i], NULL);

    CCStats stats;
    CCStackStats stacks;
    if (cc_stats(&stats, sizeof stats) != 0 || cc_stats_stacks(&stacks, sizeof stacks) != 0) return 1;
    printf("%" PRIu64 " tasks were started, %" PRIu64 " have ended\n", stats.spawned, stats.finished);
    for (unsigned i = 1; cc_stats_reason(i) != NULL; i++)
        if (stats.parks_by[i] != 0) printf("%" PRIu64 " waits for: %s\n", stats.parks_by[i], cc_stats_reason(i));
    printf("%" PRIu64 " timers fired\n", stats.timers_fired);
    printf("no stack was used by more than %s\n", stacks.most <= 64 * 1024 ? "64 KiB" : "a lot");
    return 0;
}
