/* main.c - ccpigz: gzip on several processors. Reads the command line, starts the runtime, goes through the names. */
#include "list.h"
#include "operand.h"
#include "options.h"
#include "say.h"
#include "signals.h"

#include <ccc/ccc.h>
#include <errno.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void *run_all(void *arg) {
    const struct options *options = arg;
    if (options->names[0] == NULL) operand_run(options, "-");
    for (char **name = options->names; *name != NULL; name++) operand_run(options, *name);
    if (options->action == ACTION_LIST) list_end(options);
    if (fflush(stdout) != 0) say_error("standard output", "cannot write: %s", strerror(errno));
    return NULL;
}

static bool may_block(int fd) {
    struct stat info;
    return fstat(fd, &info) == 0 && (S_ISFIFO(info.st_mode) || S_ISSOCK(info.st_mode) || isatty(fd));
}

/* A worker that reads or writes works on no block meanwhile. Files do not hold it up for long, pipes do; and the walk through
 * compressed input wants to be spared. More than that would only look for work: each costs 2 % of the CPU time when
 * compressing with zlib. */
static unsigned workers_for(const struct options *options) {
    bool from_pipe = options->names[0] == NULL && may_block(STDIN_FILENO);
    bool to_pipe = (options->to_stdout || options->names[0] == NULL) && may_block(STDOUT_FILENO);
    unsigned more = (from_pipe ? 1u : 0u) + (to_pipe ? 1u : 0u);
    if (more == 0 && options->action != ACTION_COMPRESS) more = 1;
    return options->workers + more;
}

int main(int argc, char **argv) {
    static struct options options;
    int status = options_parse(&options, argc, argv);
    if (status >= 0) return status;
    signals_install();
#ifdef __GLIBC__
    mallopt(M_MMAP_THRESHOLD, 65536); /* Buffers lie apart, and their pages go back when they are freed. */
    mallopt(M_ARENA_MAX, 1);          /* Nobody allocates often: a heap for each worker would be wasted. */
#endif
    /* The walk through a split stream has two windows of 32 KiB on its stack. */
    int rc = cc_runtime_init(&(CCRuntimeConfig){.workers = workers_for(&options), .stack_size = 256 * 1024});
    if (rc == 0) rc = cc_run(run_all, &options, NULL);
    if (rc != 0) say_error(NULL, "cannot start: %s", strerror(rc));
    return say_status();
}
