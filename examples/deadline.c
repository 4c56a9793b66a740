/* deadline.c - joins with a deadline. A deadline is a point in time, so several waits can share one. */
#include <ccc/ccc.h>

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>

static atomic_bool may_end;

static void *stubborn(void *arg) {
    while (!atomic_load(&may_end)) cc_sleep_ms(1);
    return arg;
}

static const char *meaning(int error) {
    return error == 0           ? "joined"
           : error == EAGAIN    ? "EAGAIN"
           : error == ETIMEDOUT ? "ETIMEDOUT"
           : error == EINVAL    ? "EINVAL"
                                : "?";
}

int main(void) {
    CCTask task = cc_fiber_spawn_task(stubborn, "done"), other = cc_fiber_spawn_task(stubborn, "done too");
    void *result;

    printf("without waiting:         %s\n", meaning(cc_task_join_try(&task, &result)));

    CCDeadline both = cc_after_ms(50); /* 50 ms for the two waits together */
    printf("first wait, 50 ms:       %s\n", meaning(cc_task_join_until(&task, &result, both)));
    printf("second, same deadline:   %s\n", meaning(cc_task_join_until(&other, &result, both)));

    atomic_store(&may_end, true); /* a join that failed leaves its handle valid */
    printf("again, without one:      %s", meaning(cc_task_join_until(&task, &result, CC_FOREVER)));
    printf(", %s\n", (const char *)result);
    printf("the other:               %s", meaning(cc_task_join(&other, &result)));
    printf(", %s\n", (const char *)result);
    printf("the same handle again:   %s\n", meaning(cc_task_join(&task, &result)));
    return 0;
}
