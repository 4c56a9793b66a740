/* cc_parallel.h - several tasks: join all, join any, race; parallel loops and reductions over a range.
 */
#ifndef CCC_CC_PARALLEL_H
#define CCC_CC_PARALLEL_H

#include <ccc/cc_base.h>
#include <ccc/cc_task.h>
#include <ccc/cc_time.h>

CC_BEGIN_DECLS

/* ---- several tasks ----
 *
 * Any number of handles; {0} handles are skipped. */

/* Joins all tasks. results: NULL, or an array for n results; that of a task which has panicked is NULL. Returns 0, or
 * the join error of the first failed task in the array: ENOTRECOVERABLE, ENOMEM, ESRCH, EDEADLK; the others are joined
 * nevertheless. ETIMEDOUT: the deadline passed first; ECANCELED: the caller was cancelled. After these two, tasks not
 * yet joined keep their handles, and another call joins the rest; joined tasks have stored their results, but their
 * join errors are lost. Results of skipped handles are not touched. EINVAL: tasks is NULL and n is not 0. Any context;
 * switches. */
CC_API int cc_join_all(CCTask *tasks, size_t n, void **results, CCDeadline deadline);

/* Waits for the first task to end, and joins it: *which is its index, *result its result (either may be NULL). Returns
 * the result of the join. ETIMEDOUT, ECANCELED: none was joined. EINVAL: NULL, or no task at all; ENOMEM. Any context;
 * switches. */
CC_API int cc_join_any(CCTask *tasks, size_t n, CCDeadline deadline, size_t *which, void **result);

/* The same; then cancels the others, as by cc_task_cancel, and waits until all have ended. It does so also when the
 * deadline passes first (ETIMEDOUT), when the caller is cancelled (ECANCELED), and on ENOMEM. Consumes all handles,
 * except on EINVAL and EDEADLK (the caller is one of the tasks). Any context; switches. */
CC_API int cc_race(CCTask *tasks, size_t n, CCDeadline deadline, size_t *winner, void **result);

/* ---- ranges ----
 *
 * The range is split in halves while workers are idle: pieces that take long are split again, and without idle workers
 * nothing is split. So there is no grain size to choose, and no piece takes less than some microseconds if more work is
 * left. The pieces are tasks of a nursery: a function may wait, start tasks and check cc_cancelled, and it sees the
 * deadline and the values of the scopes around the caller (cc_nursery.h).
 *
 * The first error that a function returns, or a panic, stops the rest: no further piece starts, and the waits in the
 * others are cancelled. Both calls return when every piece has ended. */

/* Processes begin <= i < end. Returns 0, or an errno value from 1 to CC_ERROR_MAX that stops the rest; any other value
 * stops it with EINVAL. */
typedef int (*CCRangeFn)(size_t begin, size_t end, void *arg);

/* Calls fn for pieces that make up the range, several concurrently. Returns 0, or the error of a piece;
 * ENOTRECOVERABLE: one has panicked (a panic or C++ exception in a piece that the caller itself runs propagates; an OS
 * thread, and a caller in a shield, runs none); ECANCELED: the caller was cancelled. After an error parts of the range
 * were not processed. EINVAL: fn is NULL; ENOMEM, EAGAIN. An empty range: 0. Any context; switches. */
CC_API int cc_parallel_for(size_t begin, size_t end, CCRangeFn fn, void *arg);

/* How to reduce a range to one value. The bytes of `identity` are the value of an empty range. `range` accumulates
 * begin <= i < end into *value. `combine` accumulates *right into *value; it must be associative, and pieces are
 * combined in order. *right is not used afterwards: `combine`, also if it panics, moves what it owns to *value or frees
 * it. `drop` frees what a value owns that is neither combined nor returned, because of an error, a cancellation or a
 * panic; also a value that is still the identity, or whose `range` has failed or panicked. It is called after all
 * pieces have ended, and must not panic.
 */
typedef struct CCReduction {
    size_t size; /* of a value */
    const void *identity;
    int (*range)(size_t begin, size_t end, void *value, void *arg); /* as CCRangeFn */
    void (*combine)(void *value, const void *right, void *arg);
    void (*drop)(void *value, void *arg); /* NULL: nothing to free */
    uint64_t reserved[3];                 /* 0; see cc_base.h */
} CCReduction;

/* Reduces the range to *value. Errors as above; *value is then not set. EINVAL: NULL, a size of 0, or a nonzero
 * reserved word. Any context; switches. */
CC_API int cc_parallel_reduce(size_t begin, size_t end, const CCReduction *how, void *arg, void *value);

CC_END_DECLS

#endif
