/* main.c - ccpigz: gzip on several processors. Reads the command line and processes the names; the runtime is started
 * by the first job that needs it (crew.h). */
#include "list.h"
#include "operand.h"
#include "options.h"
#include "say.h"
#include "signals.h"

#include <fcntl.h>
#include <stdbool.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <stdio.h>

static void run_all(const struct options *options) {
    if (options->names[0] == NULL) operand_run(options, "-");
    for (char **name = options->names; *name != NULL; name++) operand_run(options, *name);
    if (options->action == ACTION_LIST) list_end(options);
    (void)say_flush();
}

/* The number of a closed standard descriptor would soon be reused for an input or an output, and messages would end up
 * in it. The descriptor that is opened in its place fails like a closed one: it is open in the wrong direction. */
static bool fill_standard_descriptors(void) {
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) >= 0) continue;
        if (open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd) return false;
    }
    return true;
}

int main(int argc, char **argv) {
    if (!fill_standard_descriptors()) return 1; /* no descriptor for a message */
    static struct options options;
    int status = options_parse(&options, argc, argv);
    if (status >= 0) return status;
    signals_install();
#ifdef __GLIBC__
    /* One file's buffers are the next one's, with their pages: to get new ones takes longer than to compress a small
     * file. */
    mallopt(M_MMAP_THRESHOLD, 8 << 20);
    mallopt(M_TRIM_THRESHOLD, 4 << 20);
    mallopt(M_ARENA_MAX, 1); /* Allocations are rare: a heap for each worker would be a waste. */
#endif
    run_all(&options);
    return say_status();
}
