/* server.h - what the servers of this folder have in common: all descriptors that they may have, and their workers. */
#ifndef CCC_BENCH_IO_SERVER_H
#define CCC_BENCH_IO_SERVER_H

#include <ccc/ccc.h>
#include <stdlib.h>
#include <sys/resource.h>

static inline void server_raise_limit(void) {
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

/* NAME [WORKERS] */
static inline int server_main(int argc, char **argv, CCTaskFn serve) {
    CCRuntimeConfig config = {.workers = argc > 1 ? (unsigned)atoi(argv[1]) : 0};
    server_raise_limit();
    return cc_runtime_init(&config) != 0 || cc_run(serve, NULL, NULL) != 0;
}

#endif
