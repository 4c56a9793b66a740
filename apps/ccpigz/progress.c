/* progress.c - a fiber that reads the job's counters five times a second, until it is stopped. */
#include "progress.h"
#include "crew.h"

#include <stdio.h>
#include <unistd.h>

#define EVERY_MS 200

static void show(const struct job *job, double seconds) {
    double in = (double)atomic_load(&job->bytes_in), out = (double)atomic_load(&job->bytes_out);
    double plain = job->options->action == ACTION_COMPRESS ? in : out;
    if (job->in_size > 0)
        fprintf(stderr, "\r\033[K%s: %5.1f %%", job->name, 100 * in / (double)job->in_size);
    else
        fprintf(stderr, "\r\033[K%s: %.1f MB", job->name, in / 1e6);
    fprintf(stderr, ", %.0f MB/s", seconds > 0 ? plain / 1e6 / seconds : 0.0);
    fflush(stderr);
}

static void *watch(void *arg) {
    struct progress *p = arg;
    uint64_t begin = cc_now_ns();
    bool shown = false;
    for (;;) {
        char none;
        CC_MATCH(CC_RECV(p->done, &none, NULL), CC_AFTER_MS(EVERY_MS)) {
        case 1:
            show(p->job, (double)(cc_now_ns() - begin) / 1e9);
            shown = true;
            break;
        default:
            if (shown) fputs("\r\033[K", stderr);
            return NULL;
        }
    }
}

void progress_start(struct progress *p, struct job *job) {
    *p = (struct progress){.job = job};
    int verbose = job->options->verbose;
    if (verbose == 0 || (verbose == 1 && !isatty(STDERR_FILENO))) return;
    if (crew_start(job->options) != 0) return;
    p->done = cc_chan_create(1, 1);
    if (p->done != NULL) p->task = cc_fiber_spawn_task(watch, p);
}

void progress_stop(struct progress *p) {
    if (p->done == NULL) return;
    cc_chan_close(p->done);
    cc_task_join(&p->task, NULL);
    cc_chan_free(p->done);
    p->done = NULL;
}
