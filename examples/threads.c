/* threads.c - OS threads and fibers use the same calls: both can start tasks and wait for them, also for the same one.
 */
#include <ccc/ccc.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

enum { THREADS = 4, FIBERS = 4, TASKS = 250 };

static _Atomic long total;
static atomic_int received;

static void *add(void *arg) {
    atomic_fetch_add(&total, (long)(intptr_t)arg);
    return NULL;
}

/* An OS thread that starts tasks and waits for them; it blocks, and the workers go on. */
static void *start_tasks(void *arg) {
    CCTask tasks[TASKS];
    for (int i = 0; i < TASKS; i++) tasks[i] = cc_fiber_spawn_task(add, (void *)(intptr_t)1);
    for (int i = 0; i < TASKS; i++) cc_task_join(&tasks[i], NULL);
    return arg;
}

static void *announce(void *arg) {
    cc_sleep_ms(20);
    return arg;
}

/* Runs on OS threads and on fibers: each has its own handle of the same task. */
static void *listen(void *handle) {
    void *word;
    if (cc_task_join(handle, &word) == 0 && word == &received) atomic_fetch_add(&received, 1);
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, start_tasks, NULL);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    printf("%d OS threads ran %ld tasks.\n", THREADS, atomic_load(&total));

    CCTask announcement = cc_fiber_spawn_task(announce, &received), handles[THREADS + FIBERS], fibers[FIBERS];
    for (int i = 0; i < THREADS + FIBERS; i++) cc_task_dup(&announcement, &handles[i]);
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, listen, &handles[i]);
    for (int i = 0; i < FIBERS; i++) fibers[i] = cc_fiber_spawn_task(listen, &handles[THREADS + i]);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < FIBERS; i++) cc_task_join(&fibers[i], NULL);
    cc_task_detach(&announcement);
    printf("%d OS threads and %d fibers waited for one task; %d got its result.\n", THREADS, FIBERS,
           atomic_load(&received));
    return 0;
}
