/* fatal.c - fatal errors. Formats into a small buffer on the stack and writes it with one system call. */
#include "base/fatal.h"

#include "base/error.h"

#include <ccc/cc_diag.h>
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
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
 * another number. If nobody reads for two seconds, the rest is dropped, and what follows while it is full. */
enum { TRIES = 200, FEW_TRIES = 20, TRY_MS = 10 };
static _Atomic bool full;

static bool await_room(int *tries) {
    struct pollfd one = {.fd = STDERR_FILENO, .events = POLLOUT};
    (void)poll(&one, 1, full ? 0 : TRY_MS);
    full = --*tries == 0;
    return !full;
}

/* Whether a write of less than PIPE_BUF bytes returns at once, as far as others do not write meanwhile. */
static bool has_room(void) {
    struct pollfd one = {.fd = STDERR_FILENO, .events = POLLOUT};
    return poll(&one, 1, 0) != 0;
}

static void write_stderr(const char *text, size_t size, int most, bool blocks) {
    if (unlikely(log_fn != NULL)) {
        log_fn(text, size, log_arg);
        return;
    }
    for (int tries = full ? 1 : most; size > 0;) {
        if (!blocks && !has_room()) {
            if (await_room(&tries)) continue;
            return;
        }
        ssize_t n = write(STDERR_FILENO, text, size);
        if (n < 0 && cc__errno_get() == EINTR) continue;
        if (n < 0 && cc__errno_get() == EAGAIN && await_room(&tries)) continue;
        if (n <= 0) return;
        text += n;
        size -= (size_t)n;
    }
    full = false;
}

void cc__stderr_write(const char *text, size_t size) {
    write_stderr(text, size, TRIES, true);
}

void cc__stderr_try(const char *text, size_t size) {
    write_stderr(text, size, FEW_TRIES, false);
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
