/* bounded_work.c - a semaphore lets at most three jobs run at a time; a condition variable reports progress; a wait has
 * a deadline. */
#include <ccc/ccc.h>
#include <errno.h>
#include <stdio.h>

enum { JOBS = 12, AT_ONCE = 3 };

static CCSem slots = CC_SEM_INIT(AT_ONCE);
static CCMutex mutex;
static CCCond changed;
static int running, most, done; /* guarded by mutex */

static void change(int by) {
    cc_mutex_lock_uncancellable(&mutex); /* a job that has started is always counted */
    running += by;
    if (running > most) most = running;
    if (by < 0) done++;
    cc_mutex_unlock(&mutex);
    cc_cond_broadcast(&changed);
}

static void *job(void *unused) {
    if (cc_sem_acquire(&slots) != 0) return NULL;
    change(+1);
    cc_sleep_ms(5);
    change(-1);
    cc_sem_release(&slots, 1);
    return unused;
}

int main(void) {
    CCTask tasks[JOBS];
    for (int i = 0; i < JOBS; i++) tasks[i] = cc_fiber_spawn_task(job, NULL);

    if (cc_mutex_lock(&mutex) != 0) return 1;
    while (done < JOBS) /* a loop: the condition may have changed again */
        if (cc_cond_wait(&changed, &mutex) != 0) break;
    printf("%d jobs done, never more than %d at once: %s\n", done, AT_ONCE, most <= AT_ONCE ? "yes" : "no");
    cc_mutex_unlock(&mutex);
    for (int i = 0; i < JOBS; i++) cc_task_join(&tasks[i], NULL);

    CCEvent never = {0};
    if (cc_event_wait_until(&never, cc_after_ms(10)) == ETIMEDOUT)
        printf("An event that is never set: the wait timed out.\n");
}
