/* file.h - what the files of this room share: calls that are handed to the pool.
 *
 * FILE-1  What a call is given, memory and descriptors, is in use while its caller waits, and not after that: calls
 *         that have begun are waited for, and calls that were withdrawn have done nothing.
 */
#ifndef CC_FILE_FILE_H
#define CC_FILE_FILE_H

#include "base/attr.h"

#include <ccc/cc_file.h>

/* A system call, or several: what it returns, or -errno. */
typedef long (*file_fn)(void *args);

/* On a thread of the pool; on the caller's if the system gives none. What fn returns; -ECANCELED: it was not called.
 * what: for the trace. */
long cc__file_call(const char *what, file_fn fn, void *args);
/* The same; it is called in any case, for what has to be cleaned up. */
long cc__file_call_always(const char *what, file_fn fn, void *args);

/* An attempt that does without the disk has returned `result`: whether the pool has to be asked. Counts the call
 * otherwise: the fiber lets others run now and then. */
bool cc__file_missed(const char *what, long result);

#endif
