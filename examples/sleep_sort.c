/* sleep_sort.c - a joke that shows timers: each number sleeps as long as it is large, and then gets in line. It needs a
 * machine that wakes everybody in time: a simulation is one, and its time costs nothing. */
#include <ccc/ccc.h>

#include <stdatomic.h>
#include <stdio.h>

enum { COUNT = 8, UNIT_MS = 100 };

static int line[COUNT];
static atomic_int length;

CC_TASK(wait_and_line_up, {
    int number;
    CCDeadline start;
}) {
    CCDeadline mine = {self->start.ns + (uint64_t)self->number * UNIT_MS * 1000000};
    cc_sleep_until(mine);
    line[atomic_fetch_add(&length, 1)] = self->number;
    return NULL;
}

static void *sort(void *arg) {
    static const int numbers[COUNT] = {3, 1, 4, 1, 5, 9, 2, 6};
    CCTask tasks[COUNT];
    CCDeadline start = cc_after_ms(0);
    for (int i = 0; i < COUNT; i++) tasks[i] = CC_GO(wait_and_line_up, .number = numbers[i], .start = start);
    for (int i = 0; i < COUNT; i++) cc_task_join(&tasks[i], NULL);
    for (int i = 0; i < COUNT; i++) printf("%d ", line[i]);
    printf("and it took %s.\n",
           cc_now_ns() - start.ns >= UINT64_C(9) * UNIT_MS * 1000000 ? "no less than the largest" : "too little");
    return arg;
}

int main(void) {
    return cc_sim_run(1, sort, NULL, NULL);
}
