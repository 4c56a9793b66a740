/* fatal.c - fatal errors. Formats into a small buffer on the stack and writes it with one system call. */
#include "base/fatal.h"

#include "base/error.h"

#include <ccc/cc_diag.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

/* Set before there are other threads. */
static CCLogFn log_fn;
static void *log_arg;

static void (*volatile last_act)(void);

void cc_on_log(CCLogFn fn, void *arg) {
    log_arg = arg;
    log_fn = fn;
}

/* stderr may be in non-blocking mode, which it shares with a terminal or a pipe that the program has adopted under
 * another number; and a thread may be bounded. If nobody reads for that many tries, the rest is dropped, and what
 * follows while it is full. The bounded thread has BOUNDED_TRIES for all that it writes within REFILL_S, so that a
 * reader that is slow does not keep it either. */
enum { TRIES = 200, BOUNDED_TRIES = 100, TRY_MS = 10, REFILL_S = 10 };

static _Thread_local bool bounded __attribute__((tls_model("initial-exec")));

void cc__stderr_bound(void) {
    bounded = true;
}

static void await_room(void) {
    struct pollfd one = {.fd = STDERR_FILENO, .events = POLLOUT};
    (void)poll(&one, 1, TRY_MS);
}

/* Where it cannot be opened once more: what a poll says must do. A pipe with room has room for PIPE_BUF bytes; of a
 * terminal's room nothing is known but that there is some. */
static ssize_t write_if_room(const char *text, size_t size, bool pipe) {
    struct pollfd one = {.fd = STDERR_FILENO, .events = POLLOUT};
    size_t most = pipe ? PIPE_BUF : 80;
    if (poll(&one, 1, 0) != 0) return write(STDERR_FILENO, text, size < most ? size : most);
    cc__errno_set(EAGAIN);
    return -1;
}

/* The open file of stderr has a mode that others rely on. A terminal or a pipe is opened once more, for this write: a
 * terminal that is said to have room may have less than there is to write. Elsewhere a write returns at once. Another
 * thread may replace stderr by a file meanwhile: it is appended to. */
static ssize_t write_at_once(const char *text, size_t size) {
    struct stat st;
    if (fstat(STDERR_FILENO, &st) != 0) return -1;
    bool pipe = S_ISFIFO(st.st_mode), master = S_ISCHR(st.st_mode) && st.st_rdev == makedev(5, 2);
    if (S_ISSOCK(st.st_mode)) return send(STDERR_FILENO, text, size, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (!pipe && !isatty(STDERR_FILENO)) return write(STDERR_FILENO, text, size);
    int fd = master ? -1 : open("/proc/self/fd/2", O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0) return write_if_room(text, size, pipe);
    ssize_t n = write(fd, text, size);
    int error = cc__errno_get();
    close(fd);
    cc__errno_set(error);
    return n;
}

/* The tries that the bounded thread has left. */
static int *bounded_tries(void) {
    static int left = BOUNDED_TRIES;
    static time_t refilled;
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    if (now.tv_sec - refilled >= REFILL_S) {
        refilled = now.tv_sec;
        left = BOUNDED_TRIES;
    }
    return &left;
}

void cc__stderr_write(const char *text, size_t size) {
    if (unlikely(log_fn != NULL)) {
        log_fn(text, size, log_arg);
        return;
    }
    static _Atomic bool full[2]; /* the last write of a thread that is not bounded, or is, was cut */
    int own = TRIES, *tries = bounded ? bounded_tries() : &own;
    while (size > 0) {
        ssize_t n = bounded ? write_at_once(text, size) : write(STDERR_FILENO, text, size);
        if (n < 0 && cc__errno_get() == EINTR) continue;
        if (n < 0 && cc__errno_get() == EAGAIN && !full[bounded] && *tries > 0) {
            --*tries;
            await_room();
            continue;
        }
        if (n < 0 && cc__errno_get() == EAGAIN) full[bounded] = true;
        if (n <= 0) return;
        text += n;
        size -= (size_t)n;
        full[bounded] = false;
        if (!bounded) own = TRIES;
    }
}

static void say(const char *head, const char *fmt, va_list args) {
    char line[768];
    int n = snprintf(line, sizeof line, "%s", head);
    int m = vsnprintf(line + n, sizeof line - (size_t)n - 1, fmt, args);
    size_t len = (size_t)n + (m < 0 ? 0 : (size_t)m);
    if (len > sizeof line - 2) len = sizeof line - 2;
    line[len++] = '\n';
    cc__stderr_write(line, len);
}

void cc__fatal(const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    say("ccc: fatal: ", fmt, args);
    va_end(args);
    void (*also)(void) = last_act;
    last_act = NULL; /* it may call this function too */
    if (also != NULL) also();
    abort();
}

void cc__fatal_also(void (*fn)(void)) {
    last_act = fn;
}

void cc__warn(const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    say("ccc: ", fmt, args);
    va_end(args);
}
