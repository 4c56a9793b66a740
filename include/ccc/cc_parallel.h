/* cc_parallel.h - several tasks at once: all of them, any of them, a race; loops and sums over a range, on all workers.
 */
#ifndef CCC_CC_PARALLEL_H
#define CCC_CC_PARALLEL_H

#include <ccc/cc_base.h>
#include <ccc/cc_task.h>
#include <ccc/cc_time.h>

CC_BEGIN_DECLS

/* ---- several tasks ----
 *
 * Any number of handles; those that are {0} are left out. */

/* Joins all of them. results: NULL, or room for n results; that of a task which has panicked is NULL.
 * 0; else how the first task of the array that did not end well has ended, as cc_task_join returns it: ENOTRECOVERABLE,
 * ENOMEM, ESRCH, EDEADLK; the others were joined all the same. ETIMEDOUT: the deadline came first; ECANCELED: the
 * caller was cancelled: the handles that are not {0} stay, with their tasks, and the results of the others are there,
 * but not how they have ended; another call joins the rest. Results of what is left out are not touched. EINVAL: tasks
 * is NULL and n is not 0. Any context; switches. */
CC_API int cc_join_all(CCTask *tasks, size_t n, void **results, CCDeadline deadline);

/* Waits for the first that ends, and joins it: *which is its index, *result its result (either may be NULL). Returns
 * what its join returned. ETIMEDOUT, ECANCELED: none was joined. EINVAL: NULL, or no task at all; ENOMEM. Any context;
 * switches. */
CC_API int cc_join_any(CCTask *tasks, size_t n, CCDeadline deadline, size_t *which, void **result);

/* The same; then cancels the others, as by cc_task_cancel, and waits until all have ended. So it does when the deadline
 * comes first (ETIMEDOUT), when the caller is cancelled (ECANCELED), and on ENOMEM. No handle is left, but
 * on EINVAL, and on EDEADLK: the caller is one of them.
 * Any context; switches. */
CC_API int cc_race(CCTask *tasks, size_t n, CCDeadline deadline, size_t *winner, void **result);

/* ---- ranges ----
 *
 * The range is split while workers have nothing to do, in halves, as far as it takes: pieces that take long are split
 * again, and where nobody is idle nothing is. So there is no grain to choose, and no piece takes less than some
 * microseconds if there is more to do. The pieces are tasks of a nursery: a function may wait, start tasks, and ask
 * cc_cancelled, and it sees the deadline and the values of the scopes around the caller (cc_nursery.h).
 *
 * The first error that a function returns stops the rest: no further piece begins, and the waits in the others are
 * cancelled. So does a panic. Both calls return when every piece has ended. */

/* Does what there is to do for begin <= i < end. 0, or an errno value from 1 to CC_ERROR_MAX that stops the rest;
 * anything else stops it with EINVAL. */
typedef int (*CCRangeFn)(size_t begin, size_t end, void *arg);

/* Calls fn for pieces that make up the range, several at the same time. 0; what a piece has returned; ENOTRECOVERABLE:
 * one has panicked (the caller's own panic passes through); ECANCELED: the caller was cancelled; parts of the
 * range were then not done. EINVAL: fn is NULL; ENOMEM, EAGAIN. An empty range: 0. Any
 * context; switches. */
CC_API int cc_parallel_for(size_t begin, size_t end, CCRangeFn fn, void *arg);

/* How a range becomes one value. The bytes of `identity` are the value of an empty range. `range` adds what is in
 * begin <= i < end to *value. `combine` adds *right to *value; it is associative: the pieces keep their order. *right
 * is not used any more then: if it owns something, that is *value's now, or freed by `combine`. `drop` frees what a
 * value owns that is neither combined nor returned, because of an error, a cancellation or a panic: also one that is
 * still the identity, or whose `range` has failed or panicked. It is called when no piece is left, and must not panic.
 */
typedef struct CCReduction {
    size_t size; /* of a value */
    const void *identity;
    int (*range)(size_t begin, size_t end, void *value, void *arg); /* as CCRangeFn */
    void (*combine)(void *value, const void *right, void *arg);
    void (*drop)(void *value, void *arg); /* NULL: there is nothing to free */
    uint64_t reserved[3];                 /* 0; see cc_base.h */
} CCReduction;

/* Reduces the range to *value. The same errors, and *value is then not set. EINVAL: NULL, a size of 0, or a reserved
 * word that is not 0. Any context; switches. */
CC_API int cc_parallel_reduce(size_t begin, size_t end, const CCReduction *how, void *arg, void *value);

CC_END_DECLS

#endif
