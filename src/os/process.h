/* process.h - child processes: start one, signal it, collect its status. */
#ifndef CC_OS_PROCESS_H
#define CC_OS_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In the child descriptor `to` is what `from` is in the parent. */
struct os_fd_move {
    int from, to;
    int moved; /* the child's: where `from` is meanwhile */
};

struct os_limit {
    int resource; /* RLIMIT_* */
    uint64_t soft, hard;
};

enum os_group { OS_GROUP_SAME, OS_GROUP_OWN, OS_GROUP_SESSION };

struct os_start {
    const char *const *paths; /* what to execute: the first that there is; ends with NULL */
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
    bool exited; /* else a signal has ended it */
    int code;    /* what it returned, or the signal's number */
    bool core;   /* it left a core dump */
};

/* Starts a child with exactly the descriptors 0, 1 and 2 and those of `moves`, default signal actions, and an empty
 * signal mask. 0: the program is being executed. Else why not: the errno value of whatever failed in the child
 * included, and there is no child. Does not return before that is known. */
int cc__process_start(const struct os_start *start, struct os_process *process);

/* 0: it has ended, and its status was collected, once. EAGAIN: it has not. ECHILD: somebody else has collected it, or
 * the program ignores SIGCHLD. */
int cc__process_reap(const struct os_process *process, struct os_status *status);

/* 0 or an errno value. The child was not reaped: its number, and that of its group, are its own. */
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
