/* describe.h - fibers and what they wait for, in the words of the library's own dump (src/diag/describe.c). */
#ifndef CCPS_DESCRIBE_H
#define CCPS_DESCRIBE_H

#include "runtime.h"

enum { DESCRIBED_MAX = 512 };

/* The fibers to search in, until the next call; the array must stay valid. */
void describe_among(const struct fiber_seen *fibers, size_t count);

/* "fiber 12.3 'name'" */
void describe_fiber(const struct fiber_seen *fiber, char *text, size_t size);
/* The same of a record; "a fiber that has ended". */
void describe_record(uint64_t at, char *text, size_t size);
/* "to receive from channel 'jobs' (0x55d0c0, capacity 16, 0 buffered)" */
void describe_wait(unsigned reason, uint64_t object, char *text, size_t size);
/* "for 1.25 s", "for 2 to 5 s"; "": it is not known. */
void describe_since(uint64_t from, uint64_t to, uint64_t now, char *text, size_t size);

const char *describe_reason(unsigned reason);
const char *describe_state(enum fiber_is state);

/* A timer will start it: it has not begun. */
bool is_timed(const struct fiber_seen *fiber);
/* Waits for the children of a nursery, which is the object. */
bool waits_for_nursery(const struct fiber_seen *fiber);

#endif
