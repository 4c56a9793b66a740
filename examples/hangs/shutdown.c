/* shutdown.c - a shutdown that cannot end, because a fiber ignores the results of its waits. */
#include <ccc/ccc.h>
#include <stdio.h>
#include <string.h>

_Noreturn static void *beat(void *unused) {
    (void)unused;
    for (;;) cc_sleep_ms(10); /* ECANCELED, again and again */
}

int main(void) {
    CCTask task;
    if (cc_spawn(&task, beat, NULL, &(CCSpawnOptions){.name = "heart"}) != 0) return 1;
    cc_task_detach(&task);
    cc_sleep_ms(1);
    printf("shutdown: %s\n", strerror(cc_runtime_shutdown(200)));
}
