/* capture.h - the runtime's output on stderr, and its dumps, as strings. */
#ifndef CCC_TESTS_UNIT_CAPTURE_H
#define CCC_TESTS_UNIT_CAPTURE_H

#include "harness.h"

#include <ccc/ccc.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct capture {
    int file, stderr_before;
    char text[16384];
};

static inline void capture_start(struct capture *capture) {
    capture->file = memfd_create("capture", MFD_CLOEXEC);
    capture->stderr_before = dup(STDERR_FILENO);
    CHECK(capture->file >= 0 && capture->stderr_before >= 0);
    CHECK_EQ(fcntl(capture->file, F_SETFL, O_APPEND), 0); /* or the writes of two threads may overlap */
    CHECK_EQ(dup2(capture->file, STDERR_FILENO), STDERR_FILENO);
}

/* Ends the capture; the text is also printed, so that the output of a failed case has it. */
static inline const char *capture_end(struct capture *capture) {
    CHECK_EQ(dup2(capture->stderr_before, STDERR_FILENO), STDERR_FILENO);
    ssize_t length = pread(capture->file, capture->text, sizeof capture->text - 1, 0);
    CHECK(length >= 0);
    capture->text[length] = '\0';
    CHECK_EQ(write(STDERR_FILENO, capture->text, (size_t)length), length);
    close(capture->file);
    close(capture->stderr_before);
    return capture->text;
}

static inline bool contains(const char *text, const char *wanted) {
    return strstr(text, wanted) != NULL;
}

/* The dump as text and as JSON; the caller frees it. */
static inline char *capture_dumps(void) {
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);
    CHECK_EQ(cc_dump(file), 0);
    CHECK_EQ(cc_dump_json(file), 0);
    fclose(file);
    return text;
}

#endif
