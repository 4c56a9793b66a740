/* sleep_sort.c - a joke that shows timers: each number sleeps in proportion to its value, and is then appended. It
 * relies on precise timers: a simulation has them, and its time passes without waiting. */
#include <ccc/ccc.h>

#include <stdatomic.h>
#include <stdio.h>

enum { COUNT = 8, UNIT_MS = 100 };

static int line[COUNT];
static atomic_int length;

CC_TASK(sleep_and_append, {
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
    for (int i = 0; i < COUNT; i++) tasks[i] = CC_GO(sleep_and_append, .number = numbers[i], .start = start);
    for (int i = 0; i < COUNT; i++) cc_task_join(&tasks[i], NULL);
    for (int i = 0; i < COUNT; i++) printf("%d ", line[i]);
    printf("and it took %s.\n",
           cc_now_ns() - start.ns >= UINT64_C(9) * UNIT_MS * 1000000 ? "no less than the largest" : "too little");
    return arg;
}

int main(void) {
    return cc_sim_run(1, sort, NULL, NULL);
}
