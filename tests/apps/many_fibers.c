/* many_fibers.c FIBERS - a program for ccps.sh: that many fibers wait, in groups of three. One waits for a mutex, in a
 * nursery that the second waits for; the third joins the second. Prints "ready" when all have been started, and stays.
 */
#include <ccc/ccc.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static CCMutex mutex;
static CCEvent held, never;

static void check(int error) {
    if (error == 0) return;
    fprintf(stderr, "error %d\n", error);
    exit(1);
}

static void *hold(void *arg) {
    cc_fiber_set_name("holder");
    check(cc_mutex_lock(&mutex));
    cc_event_set(&held);
    check(cc_event_wait(&never));
    return arg;
}

static void *want(void *arg) {
    check(cc_mutex_lock(&mutex));
    return arg;
}

static void *own(void *arg) {
    CC_NURSERY(nursery) {
        check(cc_nursery_spawn(nursery, want, NULL));
    }
    return arg;
}

static void *follow(void *task) {
    check(cc_task_join(task, NULL));
    return NULL;
}

int main(int argc, char **argv) {
    size_t count = argc > 1 ? strtoul(argv[1], NULL, 10) / 3 : 1;
    CCTask *tasks = calloc(count, sizeof *tasks);
    if (tasks == NULL || setvbuf(stdout, NULL, _IOLBF, 0) != 0) return 1;
    check(cc_spawn(NULL, hold, NULL, NULL));
    check(cc_event_wait(&held));
    for (size_t i = 0; i < count; i++) {
        check(cc_spawn(&tasks[i], own, NULL, NULL));
        check(cc_spawn(NULL, follow, &tasks[i], NULL));
    }
    printf("ready\n");
    for (;;) pause();
}
