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

static void *run_all(void *arg) {
    const struct options *options = arg;
    if (options->names[0] == NULL) operand_run(options, "-");
    for (char **name = options->names; *name != NULL; name++) operand_run(options, *name);
    if (options->action == ACTION_LIST) list_end(options);
    if (fflush(stdout) != 0) say_error("standard output", "cannot write: %s", strerror(errno));
    return NULL;
}

int main(int argc, char **argv) {
    static struct options options;
    int status = options_parse(&options, argc, argv);
    if (status >= 0) return status;
    signals_install();
#ifdef __GLIBC__
    mallopt(M_MMAP_THRESHOLD, 65536); /* Buffers lie apart, and their pages go back when they are freed. */
#endif
    /* Reading and writing block their workers now and then; so there are two more than blocks worked on. */
    int rc = cc_runtime_init(&(CCRuntimeConfig){.workers = options.workers + 2});
    if (rc == 0) rc = cc_run(run_all, &options, NULL);
    if (rc != 0) say_error(NULL, "cannot start: %s", strerror(rc));
    return say_status();
}
