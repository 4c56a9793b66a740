/* shared_counter.c - many tasks, one table: a mutex guards it, and a wait group waits for all of them. */
#include <ccc/ccc.h>
#include <stdio.h>

enum { TASKS = 100, WORDS = 4 };

static CCMutex mutex; /* the zero value is valid: nothing to initialise, nothing to destroy */
static CCWaitGroup all;
static int count[WORDS];

static void *tally(void *arg) {
    int number = (int)(long)arg;
    for (int i = 0; i < 1000; i++) {
        if (cc_mutex_lock(&mutex) != 0) break; /* cancelled: not locked */
        count[(number + i) % WORDS]++;
        if (i % 100 == 0) cc_yield(); /* a lock may be held across anything that waits */
        cc_mutex_unlock(&mutex);
    }
    cc_wait_group_done(&all);
    return NULL;
}

int main(void) {
    cc_wait_group_add(&all, TASKS);
    for (long i = 0; i < TASKS; i++) {
        CCTask task = cc_fiber_spawn_task(tally, (void *)i);
        cc_task_detach(&task);
    }
    if (cc_wait_group_wait(&all) != 0) return 1;
    for (int i = 0; i < WORDS; i++) printf("%d: %d\n", i, count[i]);
}
