/* crew.c - how many workers there are, and when they are started. */
#include "crew.h"
#include "say.h"

#include <ccc/ccc.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The walk through a split stream has two windows of 32 KiB on its stack. */
#define STACK_SIZE ((size_t)256 * 1024)
/* Tasks that wait for their turn are bounded by the pools, so that a short queue will do; it is cleared at the
 * start. */
#define QUEUE_SLOTS 256

bool crew_may_block(int fd) {
    struct stat info;
    return fstat(fd, &info) == 0 && (S_ISFIFO(info.st_mode) || S_ISSOCK(info.st_mode) || isatty(fd));
}

/* A worker that reads or writes works on no block meanwhile. Files do not hold it up for long, pipes do; and the walk
 * through compressed input wants to be spared. More than that would only look for work: each costs 2 % of the CPU time
 * when compressing with zlib. */
static unsigned workers_for(const struct options *options) {
    bool from_pipe = options->names[0] == NULL && crew_may_block(STDIN_FILENO);
    bool to_pipe = (options->to_stdout || options->names[0] == NULL) && crew_may_block(STDOUT_FILENO);
    unsigned more = (from_pipe ? 1u : 0u) + (to_pipe ? 1u : 0u);
    if (more == 0 && options->action != ACTION_COMPRESS) more = 1;
    return options->workers + more;
}

int crew_start(const struct options *options) {
    static bool started;
    if (started) return 0;
    /* No more than two are ever stuck in a call: one that reads and one that writes. */
    int rc = cc_runtime_init(&(CCRuntimeConfig){.workers = workers_for(options),
                                                .max_workers = options->workers + 2,
                                                .stack_size = STACK_SIZE,
                                                .queue_slots = QUEUE_SLOTS});
    started = rc == 0;
    if (rc != 0) say_error(NULL, "cannot start: %s", strerror(rc));
    return rc == 0 ? 0 : -1;
}

int crew_run(const struct options *options, void *(*fn)(void *arg), void *arg) { /* CREW-1 */
    if (crew_start(options) != 0) return -1;
    int rc = cc_run(fn, arg, NULL);
    if (rc != 0) say_error(NULL, "cannot start: %s", strerror(rc));
    return rc == 0 ? 0 : -1;
}
