/* process.c - starts children by clone(2): the parent's thread waits, and shares its memory with the child, until the
 * child executes its program or ends. So nothing is copied, and the child can report the result in memory.
 *
 * EXEC-1  Between clone and execve the child makes only bare system calls: other threads may hold any lock, and
 *         whatever a function of the C library or of a sanitizer writes would change the parent.
 * EXEC-2  All signals are blocked meanwhile: no handler of the parent runs in the child.
 * EXEC-3  An emulator may copy the memory nevertheless and let both run. The child sets `shared` in the memory that it
 *         sees: if the parent does not find it set, it waits at a pipe that execve closes. Once it was found set, no
 *         more pipes are made.
 */
#include "os/process.h"

#include "base/attr.h"
#include "base/error.h"
#include "base/mem.h"
#include "os/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef CLONE_PIDFD
#define CLONE_PIDFD 0x1000
#endif
#ifndef P_PIDFD
#define P_PIDFD 3
#endif
#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#define RANGE_CLOEXEC 4 /* CLOSE_RANGE_CLOEXEC */

enum { STACK_SIZE = 64 * 1024, MASK_SIZE = 8, SIGNALS = 64 };

/* The thread sanitizer keeps a shadow stack of calls for each thread, and a child that never returns would leave it
 * longer than it was. */
#ifdef CC_TSAN
#define SHARED_MEMORY 0
#else
#define SHARED_MEMORY (CLONE_VM | CLONE_VFORK)
#endif

/* Runs in the child (EXEC-1). */
#define IN_CHILD __attribute__((no_sanitize("address", "undefined"))) CC_NO_TSAN CC_NOINLINE

extern char **environ;

struct launch {
    const struct os_start *start;
    volatile int error;
    volatile bool shared;
    int report; /* the pipe's write end; -1: none */
};

static _Atomic bool sharing; /* memory was found to be shared */

/* ---- in the child ---- */

/* A call's result, or -errno. errno belongs to the waiting thread, which restores it. */
#define BARE(number, ...) (syscall((number), __VA_ARGS__) < 0 ? -errno : 0)

/* An ignored signal stays ignored over execve; a handler must not run once signals are unblocked. Zero bytes mean the
 * default action in every layout of the kernel's struct. */
IN_CHILD static void reset_signals(void) {
    const char zero[64] = {0};
    for (long signal = 1; signal <= SIGNALS; signal++) (void)syscall(SYS_rt_sigaction, signal, zero, NULL, MASK_SIZE);
}

/* For an old kernel that cannot do it in one call. */
IN_CHILD static int close_all_slowly(unsigned from) {
    struct rlimit64 limit;
    int rc = BARE(SYS_prlimit64, 0, RLIMIT_NOFILE, NULL, &limit);
    if (rc < 0) return rc;
    for (rlim64_t fd = from; fd < limit.rlim_cur && fd < 1 << 20; fd++)
        (void)syscall(SYS_fcntl, (int)fd, F_SETFD, FD_CLOEXEC);
    return 0;
}

IN_CHILD static int close_all_on_exec(void) {
    int rc = BARE(SYS_close_range, 3, ~0u, RANGE_CLOEXEC);
    return rc == -ENOSYS || rc == -EINVAL || rc == -EPERM ? close_all_slowly(3) : rc;
}

/* Moves them above all wanted numbers; then moving them down overwrites nothing that is still needed. */
IN_CHILD static int move_above(struct launch *l, int top) {
    const struct os_start *s = l->start;
    if (l->report >= 0) {
        int fd = (int)syscall(SYS_fcntl, l->report, F_DUPFD_CLOEXEC, top);
        if (fd < 0) return -errno;
        l->report = fd;
    }
    int rc = close_all_on_exec();
    if (rc < 0) return rc;
    for (size_t i = 0; i < s->move_count; i++) {
        s->moves[i].moved = (int)syscall(SYS_fcntl, s->moves[i].from, F_DUPFD_CLOEXEC, top);
        if (s->moves[i].moved < 0) return -errno;
    }
    for (size_t i = 0; i < s->move_count && rc == 0; i++) rc = BARE(SYS_dup3, s->moves[i].moved, s->moves[i].to, 0);
    return rc;
}

/* Raises the limit meanwhile, if it leaves too few numbers above them. */
IN_CHILD static int move_descriptors(struct launch *l) {
    const struct os_start *s = l->start;
    struct rlimit64 before, most;
    int top = 3;
    for (size_t i = 0; i < s->move_count; i++)
        if (s->moves[i].to >= top) top = s->moves[i].to + 1;
    bool raised = BARE(SYS_prlimit64, 0, RLIMIT_NOFILE, NULL, &before) == 0 &&
                  before.rlim_cur <= (rlim64_t)top + s->move_count && before.rlim_cur < before.rlim_max;
    if (raised) {
        most.rlim_cur = most.rlim_max = before.rlim_max;
        raised = BARE(SYS_prlimit64, 0, RLIMIT_NOFILE, &most, NULL) == 0;
    }
    int rc = move_above(l, top);
    if (raised) (void)syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, &before, NULL);
    return rc;
}

IN_CHILD static int set_limits(const struct os_start *s) {
    int rc = 0;
    for (size_t i = 0; i < s->limit_count && rc == 0; i++) {
        struct rlimit64 limit = {s->limits[i].soft, s->limits[i].hard};
        rc = BARE(SYS_prlimit64, 0, s->limits[i].resource, &limit, NULL);
    }
    return rc;
}

IN_CHILD static int set_group(enum os_group group) {
    if (group == OS_GROUP_SAME) return 0;
    return group == OS_GROUP_OWN ? BARE(SYS_setpgid, 0, 0) : BARE(SYS_setsid, 0);
}

/* As execvp: skips a directory where the file does not exist or may not be executed; the latter is remembered. */
IN_CHILD static int execute(const struct os_start *s) {
    int rc = -ENOENT;
    bool forbidden = false;
    for (const char *const *path = s->paths; *path != NULL; path++) {
        rc = BARE(SYS_execve, *path, s->argv, s->envp);
        forbidden |= rc == -EACCES;
        if (rc != -ENOENT && rc != -ENOTDIR && rc != -EACCES) return rc;
    }
    return forbidden ? -EACCES : rc;
}

IN_CHILD static int child(void *arg) {
    struct launch *l = arg;
    const struct os_start *s = l->start;
    uint64_t none = 0;
    l->shared = true;
    reset_signals();
    int rc = set_group(s->group);
    if (rc == 0 && s->dir != NULL) rc = BARE(SYS_chdir, s->dir);
    if (rc == 0) rc = move_descriptors(l);
    if (rc == 0) rc = set_limits(s);
    if (rc == 0) rc = BARE(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, MASK_SIZE);
    if (rc == 0) rc = execute(s);
    int error = -rc;
    l->error = error;
    if (l->report >= 0) (void)syscall(SYS_write, l->report, &error, sizeof error);
    (void)syscall(SYS_exit_group, 127);
    return 0;
}

/* ---- in the parent ---- */

static int open_pidfd(int pid) {
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    return fd < 0 ? -errno : fd;
}

/* The child's number, or -errno. */
static int clone_child(struct launch *l, int *pidfd) {
    char *stack = cc__mem_alloc_stack(STACK_SIZE);
    if (stack == NULL) return -ENOMEM;
    uint64_t all = ~UINT64_C(0), before;
    (void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, MASK_SIZE); /* EXEC-2 */
    int pid = clone(child, stack + STACK_SIZE, SHARED_MEMORY | CLONE_PIDFD | SIGCHLD, l, pidfd);
    if (pid < 0 && errno == EINVAL) /* an emulator that does not know the flag */
        pid = clone(child, stack + STACK_SIZE, SHARED_MEMORY | SIGCHLD, l);
    int error = errno;
    (void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, MASK_SIZE);
    cc__mem_free(stack);
    return pid < 0 ? -error : pid;
}

/* EXEC-3. The child's report about its start. */
static int outcome(struct launch *l, int read_end) {
    if (l->shared) {
        sharing = true;
        return l->error;
    }
    int error = 0;
    ssize_t n;
    do n = read(read_end, &error, sizeof error);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)sizeof error ? error : 0;
}

static void wait_for_end(int pid) {
    siginfo_t info;
    while (waitid(P_PID, (id_t)pid, &info, WEXITED) != 0 && errno == EINTR) {
    }
}

int cc__process_start(const struct os_start *start, struct os_process *process) {
    CC_KEEP_ERRNO;
    struct launch l = {.start = start, .report = -1};
    int ends[2] = {-1, -1}, pidfd = -1, error = 0;
    int self = open_pidfd(getpid()); /* check this before there is a child that could not be waited for */
    if (self < 0) return -self;
    (void)close(self);
    if (!sharing) error = cc__process_pipe(ends);
    if (error != 0) return error;
    l.report = ends[1];
    int pid = clone_child(&l, &pidfd);
    if (ends[1] >= 0) (void)close(ends[1]);
    error = pid < 0 ? -pid : outcome(&l, ends[0]);
    if (ends[0] >= 0) (void)close(ends[0]);
    if (pid > 0 && error == 0 && pidfd < 0) {
        pidfd = open_pidfd(pid);
        if (pidfd < 0) error = -pidfd;
        if (error != 0) (void)kill(pid, SIGKILL);
    }
    if (error != 0) {
        if (pid > 0) wait_for_end(pid);
        if (pidfd >= 0) (void)close(pidfd);
        return error;
    }
    *process = (struct os_process){.pid = pid, .pidfd = pidfd};
    return 0;
}

int cc__process_reap(const struct os_process *process, struct os_status *status) {
    CC_KEEP_ERRNO;
    siginfo_t info = {0};
    int rc;
    do {
        rc = waitid((idtype_t)P_PIDFD, (id_t)process->pidfd, &info, WEXITED | WNOHANG);
        if (rc != 0 && errno == EINVAL) rc = waitid(P_PID, (id_t)process->pid, &info, WEXITED | WNOHANG);
    } while (rc != 0 && errno == EINTR);
    if (rc != 0) return errno;
    if (info.si_pid == 0) return EAGAIN;
    *status = (struct os_status){
        .exited = info.si_code == CLD_EXITED, .code = info.si_status, .core = info.si_code == CLD_DUMPED};
    return 0;
}

int cc__process_signal(const struct os_process *process, int signal) {
    CC_KEEP_ERRNO;
    return syscall(SYS_pidfd_send_signal, process->pidfd, signal, NULL, 0) != 0 ? errno : 0;
}

int cc__process_signal_group(const struct os_process *process, int signal) {
    CC_KEEP_ERRNO;
    return kill(-process->pid, signal) != 0 ? errno : 0;
}

void cc__process_block(const struct os_process *process, int ms) {
    CC_KEEP_ERRNO;
    struct pollfd one = {.fd = process->pidfd, .events = POLLIN};
    (void)poll(&one, 1, ms);
}

int cc__process_pipe(int ends[2]) {
    CC_KEEP_ERRNO;
    return pipe2(ends, O_CLOEXEC) != 0 ? errno : 0;
}

int cc__process_null(int *fd) {
    CC_KEEP_ERRNO;
    *fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    return *fd < 0 ? errno : 0;
}

char *const *cc__process_environment(void) {
    return environ;
}
