/* worker_pool.c - a fixed number of workers share the jobs of one channel and a pool of buffers. */
#include <ccc/ccc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORKERS = 4, JOBS = 1000, BUFFERS = 2, SIZE = 4096 };

static int buffers_made;

static int make_buffer(void *item, void *context) {
    (void)context;
    void *buffer = malloc(SIZE);
    if (buffer == NULL) return 1;
    memcpy(item, &buffer, sizeof buffer);
    __atomic_fetch_add(&buffers_made, 1, __ATOMIC_RELAXED);
    return 0;
}

static void clear_buffer(void *item, void *context) {
    (void)context;
    memset(*(void **)item, 0, SIZE);
}

static void free_buffer(void *item, void *context) {
    (void)context;
    free(*(void **)item);
}

struct office {
    CCChan *jobs, *results, *buffers;
};

static void *work(void *arg) {
    struct office *o = arg;
    int job;
    while (cc_chan_recv(o->jobs, &job, sizeof job) == 0) {
        char *buffer;
        if (cc_chan_recv(o->buffers, &buffer, sizeof buffer) != 0) break; /* waits while all are in use */
        int length = snprintf(buffer, SIZE, "%d", job);
        cc_chan_send(o->buffers, &buffer, sizeof buffer); /* back to the pool, which clears it */
        cc_chan_send(o->results, &length, sizeof length);
    }
    return NULL;
}

static void *hand_out(void *arg) {
    struct office *o = arg;
    for (int job = 1; job <= JOBS; job++) cc_chan_send(o->jobs, &job, sizeof job);
    cc_chan_close(o->jobs);
    return NULL;
}

int main(void) {
    struct office o = {cc_chan_create(sizeof(int), 16), cc_chan_create(sizeof(int), 16), NULL};
    CCChanConfig pool = {.elem_size = sizeof(void *),
                         .capacity = BUFFERS,
                         .on_create = make_buffer,
                         .on_reset = clear_buffer,
                         .on_destroy = free_buffer};
    o.buffers = cc_chan_create_ex(&pool);
    CCTask tasks[WORKERS + 1];
    for (int i = 0; i < WORKERS; i++) tasks[i] = cc_fiber_spawn_task(work, &o);
    tasks[WORKERS] = cc_fiber_spawn_task(hand_out, &o);
    int digits = 0;
    for (int i = 0; i < JOBS; i++) {
        int length;
        if (cc_chan_recv(o.results, &length, sizeof length) != 0) return 1;
        digits += length;
    }
    for (int i = 0; i <= WORKERS; i++) cc_task_join(&tasks[i], NULL);
    printf("The numbers from 1 to %d have %d digits.\n", JOBS, digits);
    printf("Never more than %d buffers: %s.\n", BUFFERS, buffers_made <= BUFFERS ? "yes" : "no");
    cc_chan_free(o.buffers);
    cc_chan_free(o.jobs);
    cc_chan_free(o.results);
}
