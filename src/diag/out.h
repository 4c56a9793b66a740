/* out.h - where a report goes: a stream of the user's, or stderr, unbuffered by anybody else. */
#ifndef CC_DIAG_OUT_H
#define CC_DIAG_OUT_H

#include "base/attr.h"

#include <stdio.h>

struct out {
    FILE *file; /* NULL: stderr, by the system call */
    size_t len;
    char text[1024];
};

void cc__out(struct out *out, const char *fmt, ...) CC_PRINTF(2, 3);
void cc__out_flush(struct out *out);

/* For "%s" behind a noun: 1 fiber, 2 fibers. */
CC_INLINE const char *cc__out_s(unsigned long long n) {
    return n == 1 ? "" : "s";
}

/* A string of JSON, with its quotes. */
void cc__out_quoted(struct out *out, const char *text);

#endif
