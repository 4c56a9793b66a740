/* no_sender.c - a pool of fibers receives jobs from a channel that nobody closes. */
#include <ccc/ccc.h>
#include <stdio.h>

static void *serve(void *jobs) {
    int job;
    while (cc_chan_recv(jobs, &job, sizeof job) == 0) printf("job %d is done\n", job);
    return NULL;
}

int main(void) {
    CCChan *jobs = cc_chan_create_ex(&(CCChanConfig){.elem_size = sizeof(int), .capacity = 16, .name = "jobs"});
    CCTask server;
    if (cc_spawn(&server, serve, jobs, &(CCSpawnOptions){.name = "server"}) != 0) return 1;
    for (int job = 1; job <= 3; job++) cc_chan_send(jobs, &job, sizeof job);
    /* cc_chan_close(jobs) is missing. */
    cc_block_on(server);
    cc_chan_free(jobs);
}
