/* main.c - ccpigz: gzip on several processors. Reads the command line and goes through the names; the runtime is started by the
 * first job that wants it (crew.h). */
#include "list.h"
#include "operand.h"
#include "options.h"
#include "say.h"
#include "signals.h"

#include <errno.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <stdio.h>
#include <string.h>

static void run_all(const struct options *options) {
    if (options->names[0] == NULL) operand_run(options, "-");
    for (char **name = options->names; *name != NULL; name++) operand_run(options, *name);
    if (options->action == ACTION_LIST) list_end(options);
    if (fflush(stdout) != 0) say_error("standard output", "cannot write: %s", strerror(errno));
}

int main(int argc, char **argv) {
    static struct options options;
    int status = options_parse(&options, argc, argv);
    if (status >= 0) return status;
    signals_install();
#ifdef __GLIBC__
    /* One file's buffers are the next one's, with their pages: to get new ones takes longer than to compress a small file. */
    mallopt(M_MMAP_THRESHOLD, 8 << 20);
    mallopt(M_TRIM_THRESHOLD, 4 << 20);
    mallopt(M_ARENA_MAX, 1); /* Nobody allocates often: a heap for each worker would be wasted. */
#endif
    run_all(&options);
    return say_status();
}
