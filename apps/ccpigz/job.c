/* job.c - reads the input. */
#include "job.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

/* How long a cancelled reader may wait for input that does not come; a guess. */
#define PATIENCE_MS 50

size_t job_read_some(struct job *job, void *to, size_t n, int *error) {
    *error = 0;
    for (;;) {
        if (job->in_may_block) {
            struct pollfd wait = {.fd = job->in, .events = POLLIN};
            if (cc_cancelled()) {
                *error = ECANCELED;
                return 0;
            }
            if (poll(&wait, 1, PATIENCE_MS) <= 0) continue;
        }
        ssize_t some = read(job->in, to, n);
        if (some >= 0) return (size_t)some;
        if (errno != EINTR && errno != EAGAIN) {
            *error = errno;
            return 0;
        }
    }
}

size_t job_read(struct job *job, void *to, size_t n, int *error) {
    size_t got = 0, some;
    *error = 0;
    while (got < n && (some = job_read_some(job, (char *)to + got, n - got, error)) > 0) got += some;
    return got;
}
