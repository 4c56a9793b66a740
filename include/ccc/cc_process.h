/* cc_process.h - child processes that belong to a scope, as child fibers do.
 *
 *   CCProcess *p;
 *   const char *argv[] = {"sort", "-n", NULL};
 *   int rc = cc_process_start(&p, &(CCProcessOptions){.argv = argv, .in = {.kind = CC_PROCESS_PIPE}});
 *   if (rc != 0) …                                     ENOENT: there is no such program
 *   cc_fd_write(cc_process_stdin(p), numbers, size, NULL);
 *   cc_process_close(p, 0);
 *   CCProcessStatus status;
 *   cc_process_wait(p, &status);
 *   cc_process_free(p);
 *
 * A process that is started inside a nursery belongs to it: the nursery waits for its end, and when it is cancelled the
 * process is stopped. One that is started outside of all nurseries belongs to the runtime as a task does: a shutdown
 * waits for its end, and then stops it.
 *
 * Stopped means: SIGTERM to its group; after a grace period, or when the waits of the runtime's own fiber are cancelled
 * again (the grace period of a nursery is over, the runtime shuts down), SIGKILL to the group. A process that has
 * started no group of its own is signalled alone. What is left of the group when the process itself has ended gets
 * SIGKILL too.
 *
 * Each process has a fiber of the runtime, which waits for its end by a pidfd and collects its status at once: there
 * are no zombies, whether the program waits or not. That needs Linux 5.3; on older kernels cc_process_start returns
 * ENOSYS. SIGCHLD is left alone; a program that ignores it, or collects the status of all its children, takes the
 * status away (ECHILD).
 *
 * The child gets the descriptors that are named here and no others, whatever is close-on-exec or not; default signal
 * actions and an empty signal mask. It shares their modes: a connection, or another one that is adopted, is in
 * non-blocking mode, which few programs expect. Switch that off with fcntl(2) before, and use it no more but to close
 * it.
 *
 * Waits have three forms as everywhere: plain, _try (EAGAIN), _until (ETIMEDOUT). In a simulation cc_process_start
 * returns ENOTSUP.
 */
#ifndef CCC_CC_PROCESS_H
#define CCC_CC_PROCESS_H

#include <ccc/cc_base.h>
#include <ccc/cc_nursery.h>
#include <ccc/cc_select.h>
#include <ccc/cc_time.h>

CC_BEGIN_DECLS

/* CCProcess is declared in cc_select.h. */

/* What descriptor 0, 1 or 2 of the child is. */
typedef enum CCProcessStreamKind {
    CC_PROCESS_INHERIT, /* the caller's */
    CC_PROCESS_NULL,    /* /dev/null */
    CC_PROCESS_PIPE,    /* a pipe, whose other end the caller has: cc_process_stdin … */
    CC_PROCESS_FD,      /* `fd` of the caller, which stays open there */
    CC_PROCESS_STDOUT   /* for stderr only: the same as stdout */
} CCProcessStreamKind;

typedef struct CCProcessStream {
    CCProcessStreamKind kind;
    int fd;
} CCProcessStream;

/* Which group it is in: what signals to the group reach, and what a terminal lets read. */
typedef enum CCProcessGroup {
    CC_PROCESS_GROUP_OWN,    /* a new group, in the background of the caller's terminal: Ctrl-C does not reach it */
    CC_PROCESS_GROUP_SAME,   /* the caller's: for programs that use the terminal */
    CC_PROCESS_GROUP_SESSION /* a new session, without a terminal */
} CCProcessGroup;

/* Descriptor `to` of the child is `from` of the caller. */
typedef struct CCProcessFd {
    int from, to; /* to: 3 … 1023 */
} CCProcessFd;

/* As setrlimit(2). */
typedef struct CCProcessLimit {
    int resource; /* RLIMIT_CPU … of <sys/resource.h> */
    uint64_t soft, hard;
} CCProcessLimit;

/* A field that is 0 or NULL means the default. All that it points to is used during the call only. */
typedef struct CCProcessOptions {
    const char *const *argv; /* ends with NULL, and is not empty */
    const char *program;     /* what to execute; default: argv[0] */
    const char *const *env;  /* "NAME=value" …, ends with NULL; default: the caller's environment */
    const char *dir;         /* its working directory; a program that is named by a relative path is looked for there */
    CCProcessStream in, out, err;
    CCProcessGroup group;
    const CCProcessFd *fds; /* further descriptors */
    size_t fd_count;
    const CCProcessLimit *limits;
    size_t limit_count;
    CCNursery *nursery;   /* whose it is; default: the innermost that the caller is in */
    bool root;            /* of no nursery */
    uint64_t grace_ms;    /* between SIGTERM and SIGKILL; default: CC_PROCESS_GRACE_MS */
    uint64_t reserved[4]; /* 0; see cc_base.h */
} CCProcessOptions;

#define CC_PROCESS_GRACE_MS 5000

/* How a process has ended. */
typedef struct CCProcessStatus {
    int code;   /* what it has returned; -1: a signal has ended it */
    int signal; /* which; 0: none */
    bool core;  /* and it left a core dump */
    uint64_t reserved[2];
} CCProcessStatus;

/* Starts a program. A name without a slash is looked for in the folders of PATH, that of the child's environment. When
 * this returns 0 the program is being executed: what goes wrong before is returned here, and there is no process.
 * ENOENT: no such program or directory; EACCES, ENOEXEC, ELOOP, ETXTBSY …: as execve(2); E2BIG: arguments and
 * environment are too long; EAGAIN: too many processes; EMFILE, ENFILE: no more descriptors; EBADF: a descriptor is not
 * open; EPERM: a limit above the hard one. EINVAL: NULL, an empty argv, a kind or number out of range, a reserved word
 * not 0; ENOMEM; ENOSYS: the kernel has no pidfd; ENOTSUP: a simulation; ECANCELED: the caller or the nursery is
 * cancelled, or the runtime shuts down. On an error *process is NULL.
 * Starts the runtime if need be. Any context; switches. Cannot be cancelled, and takes as long as execve does. */
CC_API CC_MUST_CHECK int cc_process_start(CCProcess **process, const CCProcessOptions *options);

/* Gives the process up: stops it if it runs, as above, and waits for its end; closes the descriptors of its pipes.
 * NULL is allowed. Nobody else may use it any more; those who wait for it already get its status. Cannot be cancelled.
 * Any context; switches. */
CC_API void cc_process_free(CCProcess *process);

/* Waits for its end. *status (may be NULL) says how it ended; as often and by as many as like. EAGAIN: _try, it runs;
 * ETIMEDOUT, ECANCELED: the wait is over, the process goes on; ECHILD: it has ended, and somebody else has its status;
 * EINVAL: NULL; ENOMEM: no memory for a timer. Any context; switches, _try does not. */
CC_API CC_MUST_CHECK int cc_process_wait(CCProcess *process, CCProcessStatus *status);
CC_API CC_MUST_CHECK int cc_process_wait_try(CCProcess *process, CCProcessStatus *status);
CC_API CC_MUST_CHECK int cc_process_wait_until(CCProcess *process, CCProcessStatus *status, CCDeadline deadline);

/* Sends a signal; 0: only looks whether that would be possible. _group: to all of its group, or, if it is in the
 * caller's, to the process alone. Never to another process: ESRCH: it has ended. EINVAL: NULL, or no signal; EPERM. Any
 * context; does not switch. */
CC_API int cc_process_signal(CCProcess *process, int signal);
CC_API int cc_process_signal_group(CCProcess *process, int signal);

/* Its number, which another process may have once it has ended; 0 for NULL. Any context; does not switch. */
CC_API int cc_process_pid(const CCProcess *process);

/* The caller's ends of the pipes, adopted (cc_fd.h): to be written to, or read from; -1: there is none. They are the
 * process's: cc_process_close and cc_process_free close them, nothing else may. Any context; does not switch. */
CC_API int cc_process_stdin(const CCProcess *process);
CC_API int cc_process_stdout(const CCProcess *process);
CC_API int cc_process_stderr(const CCProcess *process);

/* Closes the caller's end of the pipe to stdin (0), stdout (1) or stderr (2): for 0 the child then finds the end of its
 * input. EBADF: there is none, or it was closed. EINVAL: NULL, or another number. Any context; does not switch. */
CC_API int cc_process_close(CCProcess *process, int stream);

/* Runs a program to its end and collects what it writes. */
typedef struct CCProcessRun {
    const void *input; /* what it reads; NULL: as the options say, and /dev/null instead of CC_PROCESS_INHERIT */
    size_t input_size;
    size_t limit;        /* the most bytes of stdout, and of stderr; default: CC_PROCESS_RUN_LIMIT */
    CCDeadline deadline; /* default: none */
    /* What has come out of it, also when the call fails: bytes, with a 0 behind them; NULL: not collected. */
    char *out, *err;
    size_t out_size, err_size;
    CCProcessStatus status; /* valid if the call returns 0 */
    uint64_t reserved[4];   /* 0 */
} CCProcessRun;

#define CC_PROCESS_RUN_LIMIT ((size_t)16 * 1024 * 1024)

/* Starts it, feeds it `input`, collects stdout and stderr, unless the options say anything but CC_PROCESS_INHERIT of
 * them, and waits until both are at their end and the process has ended. Whatever it returns, no process is left, and
 * its group was killed unless it ended by itself. 0: run->status says how. ETIMEDOUT: the deadline; ECANCELED: the
 * caller was cancelled; EFBIG: more than `limit` bytes; the errors of cc_process_start; ENOMEM. A program that a child
 * of it has left behind with its stdout keeps the call waiting. options->nursery must be NULL, options->root is
 * ignored. Any context; switches. */
CC_API CC_MUST_CHECK int cc_process_run(const CCProcessOptions *options, CCProcessRun *run);
/* Frees what was collected. NULL is allowed. Any context; does not switch. */
CC_API void cc_process_run_free(CCProcessRun *run);

/* The arm of a select, CC_EXITED(process, status_pointer, where), is in cc_select.h. */

CC_END_DECLS

#endif
