/* process.h - child processes: start one, signal it, collect its status. */
#ifndef CC_OS_PROCESS_H
#define CC_OS_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Descriptor `to` of the child is `from` of the parent. */
struct os_fd_move {
    int from, to;
    int moved; /* used by the child: where `from` is meanwhile */
};

struct os_limit {
    int resource; /* RLIMIT_* */
    uint64_t soft, hard;
};

enum os_group { OS_GROUP_SAME, OS_GROUP_OWN, OS_GROUP_SESSION };

struct os_start {
    const char *const *paths; /* the first of these that exists is executed; ends with NULL */
    char *const *argv, *const *envp;
    const char *dir; /* NULL: the parent's */
    struct os_fd_move *moves;
    size_t move_count;
    const struct os_limit *limits;
    size_t limit_count;
    enum os_group group;
};

struct os_process {
    int pid;
    int pidfd;
};

struct os_status {
    bool exited; /* otherwise a signal has ended it */
    int code;    /* its exit status, or the signal's number */
    bool core;   /* it left a core dump */
};

/* Starts a child with exactly the descriptors 0, 1 and 2 and those of `moves`, default signal actions, and an empty
 * signal mask. 0: the program is being executed. Otherwise the error, also of a call that failed in the child, and
 * there is no child. Returns only when the result is known. */
int cc__process_start(const struct os_start *start, struct os_process *process);

/* 0: it has ended, and its status was collected, once. EAGAIN: it has not ended. ECHILD: its status was collected
 * elsewhere, or the program ignores SIGCHLD. */
int cc__process_reap(const struct os_process *process, struct os_status *status);

/* 0 or an errno value. The child has not been reaped: its number, and that of its group, are not reused. */
int cc__process_signal(const struct os_process *process, int signal);
int cc__process_signal_group(const struct os_process *process, int signal);

/* Blocks the thread until it has ended, at most that long. */
void cc__process_block(const struct os_process *process, int ms);

/* The two ends of a pipe, close-on-exec; /dev/null for both directions. 0 or an errno value. */
int cc__process_pipe(int ends[2]);
int cc__process_null(int *fd);

/* The environment of this process. */
char *const *cc__process_environment(void);

#endif
