/* log.h - deferred functions append a letter each, so that the order of events is a string. */
#ifndef CCC_TESTS_UNIT_PANIC_LOG_H
#define CCC_TESTS_UNIT_PANIC_LOG_H

#include "harness.h"

#include <ccc/ccc.h>

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

static char log_text[256];
static atomic_uint log_length; /* fibers of one case write one after another */

__attribute__((unused)) static void log_clear(void) {
    memset(log_text, 0, sizeof log_text);
    atomic_store(&log_length, 0);
}

__attribute__((unused)) static void note(char c) {
    unsigned at = atomic_fetch_add(&log_length, 1);
    CHECK(at < sizeof log_text - 1);
    log_text[at] = c;
}

/* A deferred function: its argument is a string, of which it notes the first letter. */
__attribute__((unused)) static void note_first(void *text) {
    note(*(const char *)text);
}

#define CHECK_LOG(wanted)                                                                                           \
    do {                                                                                                            \
        if (strcmp(log_text, (wanted)) != 0) test_fail(__FILE__, __LINE__, "log '%s', not '%s'", log_text, wanted); \
    } while (0)

#define CHECK_TEXT(text, wanted)                                                                                       \
    do {                                                                                                               \
        if (strcmp((text), (wanted)) != 0) test_fail(__FILE__, __LINE__, "%s is '%s', not '%s'", #text, text, wanted); \
    } while (0)

#endif
