/* ordered_map.c - tasks run concurrently and end in any order; their results come out in the order of sending. */
#include <ccc/ccc.h>
#include <stdint.h>
#include <stdio.h>

static void *cube(void *arg) {
    intptr_t n = (intptr_t)arg;
    cc_sleep_ms((uint64_t)(n * 7 % 5)); /* some take longer than the ones after them */
    return (void *)(n * n * n);
}

static void *start_all(void *arg) {
    for (intptr_t n = 1; n <= 12; n++) {
        CCTask task = cc_fiber_spawn_task(cube, (void *)n);
        if (cc_chan_send_task(arg, &task) != 0) break; /* waits while eight are in progress */
    }
    cc_chan_close(arg);
    return NULL;
}

int main(void) {
    CCChan *results = cc_chan_create_ex(&(CCChanConfig){.ordered = true, .capacity = 8});
    CCTask starter = cc_fiber_spawn_task(start_all, results);
    void *result;
    for (int n = 1; cc_chan_recv_task(results, &result) == 0; n++)
        printf("%d cubed is %ld\n", n, (long)(intptr_t)result);
    cc_task_join(&starter, NULL);
    cc_chan_free(results);
}
