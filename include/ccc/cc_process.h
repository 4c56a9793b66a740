/* cc_process.h - child processes that belong to a scope, as child fibers do.
 *
 *   CCProcess *p;
 *   const char *argv[] = {"sort", "-n", NULL};
 *   int rc = cc_process_start(&p, &(CCProcessOptions){.argv = argv, .in = {.kind = CC_PROCESS_PIPE}});
 *   if (rc != 0) …                                     ENOENT: there is no such program
 *   rc = cc_fd_write(cc_process_stdin(p), numbers, size, NULL);
 *   cc_process_close(p, 0);
 *   CCProcessStatus status;
 *   if (rc == 0) rc = cc_process_wait(p, &status);
 *   cc_process_free(p);
 *
 * A process started inside a nursery belongs to it: the nursery waits for its end, and a cancellation of the nursery
 * stops the process. A process started outside all nurseries belongs to the runtime, as a task does: a shutdown waits
 * for its end, and then stops it. A program that ends without a shutdown, by exit(3) or a return from main, leaves its
 * processes running.
 *
 * To stop a process means: SIGTERM to its group; after a grace period, or earlier if the nursery's grace period ends or
 * the runtime shuts down, SIGKILL to the group. A process without its own group is signalled alone. When the process
 * itself has ended, the rest of its group gets SIGKILL too.
 *
 * For each process a runtime fiber waits on a pidfd and reaps the process at once: there are no zombies, whether the
 * program waits or not. That needs Linux 5.3; on older kernels cc_process_start returns ENOSYS. SIGCHLD is not touched;
 * if the program ignores it, or reaps all its children, the status is lost (ECHILD).
 *
 * The child gets only the descriptors named here, whether others are close-on-exec or not, default signal actions and
 * an empty signal mask. It shares the mode of its descriptors: a connection, or any adopted descriptor, is in
 * non-blocking mode, which few programs expect. Clear that mode with fcntl(2) first, and then only close the descriptor
 * in the parent.
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
    CC_PROCESS_PIPE,    /* a pipe; the caller has the other end: cc_process_stdin … … */
    CC_PROCESS_FD,      /* `fd` of the caller, which stays open there */
    CC_PROCESS_STDOUT   /* for stderr only: the same as stdout */
} CCProcessStreamKind;

typedef struct CCProcessStream {
    CCProcessStreamKind kind;
    int fd;
} CCProcessStream;

/* The process group: which signals reach it, and whether it may read from the terminal. */
typedef enum CCProcessGroup {
    CC_PROCESS_GROUP_OWN,    /* a new group, in the background of the caller's terminal: Ctrl-C does not reach it */
    CC_PROCESS_GROUP_SAME,   /* the caller's: for programs that use the terminal */
    CC_PROCESS_GROUP_SESSION /* a new session, without a terminal */
} CCProcessGroup;

/* Descriptor `to` of the child is `from` of the caller. */
typedef struct CCProcessFd {
    int from, to; /* to: 3 … 1023, each at most once */
} CCProcessFd;

/* As setrlimit(2). */
typedef struct CCProcessLimit {
    int resource; /* RLIMIT_CPU … of <sys/resource.h> */
    uint64_t soft, hard;
} CCProcessLimit;

/* A field that is 0 or NULL means the default. Pointers are used only during the call. */
typedef struct CCProcessOptions {
    const char *const *argv; /* ends with NULL, and is not empty */
    const char *program;     /* what to execute; default: argv[0] */
    const char *const *env;  /* "NAME=value" …, ends with NULL; default: the caller's environment */
    const char *dir;         /* its working directory; a relative program path is resolved there */
    CCProcessStream in, out, err;
    CCProcessGroup group;
    const CCProcessFd *fds; /* further descriptors */
    size_t fd_count;
    const CCProcessLimit *limits;
    size_t limit_count;
    CCNursery *nursery;   /* the owner; default: the innermost nursery of the caller */
    bool root;            /* belongs to no nursery */
    uint64_t grace_ms;    /* between SIGTERM and SIGKILL; default: CC_PROCESS_GRACE_MS */
    uint64_t reserved[4]; /* 0; see cc_base.h */
} CCProcessOptions;

#define CC_PROCESS_GRACE_MS 5000

/* How a process has ended. */
typedef struct CCProcessStatus {
    int code;   /* its exit status; -1: terminated by a signal */
    int signal; /* the signal; 0: none */
    bool core;  /* it dumped core */
    uint64_t reserved[2];
} CCProcessStatus;

/* Starts a program. A name without a slash is searched in PATH of the child's environment. When this returns 0,
 * execve(2) has succeeded; earlier errors are returned here, and there is no process. ENOENT: no such program or
 * directory; EACCES, ENOEXEC, ELOOP, ETXTBSY …: as execve(2); E2BIG: arguments and environment are too long; EAGAIN:
 * too many processes; EMFILE, ENFILE: no more descriptors; EBADF: a descriptor is not open; EPERM: a limit above the
 * hard one. EINVAL: NULL, an empty argv, a kind or number out of range, two descriptors for one number of the child, a
 * nonzero reserved word; ENOMEM; ENOSYS: the kernel has no pidfd; ENOTSUP: a simulation; ECANCELED: the caller or the
 * nursery is cancelled, or the runtime shuts down. On an error *process is NULL. Starts the runtime if necessary. Any
 * context; switches. Cannot be cancelled, and takes as long as execve does. */
CC_API CC_MUST_CHECK int cc_process_start(CCProcess **process, const CCProcessOptions *options);

/* Stops the process if it is running, as above, waits for its end, closes its pipes and frees it. NULL is allowed. No
 * call may start afterwards; callers that already wait get its status. Cannot be cancelled. Any context; switches. */
CC_API void cc_process_free(CCProcess *process);

/* Waits for its end and stores how it ended in *status (may be NULL). Any number of callers may wait, repeatedly.
 * EAGAIN: _try, it is running; ETIMEDOUT, ECANCELED: the process continues; ECHILD: it has ended, and its status was
 * reaped elsewhere; EINVAL: NULL; ENOMEM: no memory for a timer. Any context; switches, _try does not. */
CC_API CC_MUST_CHECK int cc_process_wait(CCProcess *process, CCProcessStatus *status);
CC_API CC_MUST_CHECK int cc_process_wait_try(CCProcess *process, CCProcessStatus *status);
CC_API CC_MUST_CHECK int cc_process_wait_until(CCProcess *process, CCProcessStatus *status, CCDeadline deadline);

/* Sends a signal; 0 only checks whether that would be possible. _group: to its whole group or, if it is in the caller's
 * group, to the process alone. Never signals another process. ESRCH: it has ended. EINVAL: NULL, or an invalid signal;
 * EPERM. Any context; does not switch. */
CC_API int cc_process_signal(CCProcess *process, int signal);
CC_API int cc_process_signal_group(CCProcess *process, int signal);

/* Its process id, which may be reused once it has ended; 0 for NULL. Any context; does not switch. */
CC_API int cc_process_pid(const CCProcess *process);

/* The caller's ends of the pipes, adopted (cc_fd.h), for writing or reading; -1: there is none. Close them only by
 * cc_process_close or cc_process_free. To read lines (cc_buf.h), make a connection of a duplicate:
 * cc_conn_from_fd(&conn, dup(fd)). Any context; does not switch. */
CC_API int cc_process_stdin(const CCProcess *process);
CC_API int cc_process_stdout(const CCProcess *process);
CC_API int cc_process_stderr(const CCProcess *process);

/* Closes the caller's end of the pipe to stdin (0), stdout (1) or stderr (2): for 0 the child then reads the end of its
 * input. EBADF: there is none, or it is already closed. EINVAL: NULL, or another number. Any context; does not
 * switch. */
CC_API int cc_process_close(CCProcess *process, int stream);

/* Runs a program to completion and collects its output. */
typedef struct CCProcessRun {
    const void *input; /* its stdin; NULL: as in the options, but /dev/null for CC_PROCESS_INHERIT */
    size_t input_size;
    size_t limit;        /* maximum bytes of stdout, and of stderr, up to SIZE_MAX / 4; default: CC_PROCESS_RUN_LIMIT */
    CCDeadline deadline; /* default: none */
    /* Its output, also if the call fails: bytes, followed by a 0; NULL: not collected. */
    char *out, *err;
    size_t out_size, err_size;
    CCProcessStatus status; /* valid if the call returns 0 */
    uint64_t reserved[4];   /* 0 */
} CCProcessRun;

#define CC_PROCESS_RUN_LIMIT ((size_t)16 * 1024 * 1024)

/* Starts the program, writes `input` to it, collects stdout and stderr (those that are CC_PROCESS_INHERIT in the
 * options), and waits until both are at their end and the process has ended. Whatever it returns, no process is left:
 * unless it ended by itself, its group was killed. 0: run->status says how it ended. ETIMEDOUT: the deadline;
 * ECANCELED: the caller was cancelled; EFBIG: more than `limit` bytes; the errors of cc_process_start; ENOMEM. A
 * grandchild that keeps stdout open keeps the call waiting. options->nursery must be NULL, options->root is ignored.
 * Any context; switches. */
CC_API CC_MUST_CHECK int cc_process_run(const CCProcessOptions *options, CCProcessRun *run);
/* Frees what was collected. NULL is allowed. Any context; does not switch. */
CC_API void cc_process_run_free(CCProcessRun *run);

/* The arms of a select: CC_EXITED(process, status_pointer, where) in cc_select.h, CC_ON_EXITED in cc_when.h. */

CC_END_DECLS

#endif
