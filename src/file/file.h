/* file.h - internals of this room: calls on the pool.
 *
 * FILE-1  The arguments of a call, memory and descriptors, are used only while its caller waits: the caller waits for a
 *         call that has started, and a call that was withdrawn has done nothing.
 */
#ifndef CC_FILE_FILE_H
#define CC_FILE_FILE_H

#include "base/attr.h"

#include <ccc/cc_file.h>

/* Makes one or more system calls: their result, or -errno. */
typedef long (*file_fn)(void *args);

/* Runs fn on a pool thread, or on the caller's if none can be created. Returns its result; -ECANCELED: it was not
 * called. what: for the trace. */
long cc__file_call(const char *what, file_fn fn, void *args);
/* The same, but fn is always called: for clean-up. */
long cc__file_call_always(const char *what, file_fn fn, void *args);

/* Whether `result`, of an attempt without the disk, means that the pool is needed. Otherwise counts the call: the fiber
 * yields from time to time. */
bool cc__file_missed(const char *what, long result);

#endif
