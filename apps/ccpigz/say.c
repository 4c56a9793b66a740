/* say.c - messages and the exit status; the rules are in say.h. */
#include "say.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static bool quiet, failed, warned;

void say_quiet(bool wanted) {
    quiet = wanted;
}

static void say(const char *name, const char *format, va_list args) { /* SAY-1 */
    flockfile(stderr);
    fputs("ccpigz: ", stderr);
    if (name != NULL) fprintf(stderr, "%s: ", name);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    funlockfile(stderr);
}

void say_error(const char *name, const char *format, ...) {
    va_list args;
    failed = true;
    va_start(args, format);
    say(name, format, args);
    va_end(args);
}

void say_warning(const char *name, const char *format, ...) {
    va_list args;
    warned = true;
    if (quiet) return;
    va_start(args, format);
    say(name, format, args);
    va_end(args);
}

void say_line(const char *format, ...) {
    va_list args;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
}

int say_flush(void) {
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout)) return 0;
    say_error("standard output", "cannot write: %s", strerror(errno != 0 ? errno : EIO));
    return 1;
}

int say_status(void) { /* SAY-2 */
    return failed ? 1 : warned ? 2 : 0;
}
