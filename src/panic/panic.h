/* panic.h - what the files of this room share, and what rt and diag use. */
#ifndef CC_PANIC_PANIC_H
#define CC_PANIC_PANIC_H

#include "fiber/stack.h"

#include <ccc/cc_panic.h>

/* ---- defer.c ---- */

/* The list of the running fiber or the calling OS thread. The address is valid as long as that exists. */
CCDefer **cc__defer_list(void);

CC_INLINE bool cc__defer_is_boundary(const CCDefer *d) {
    return d->fn == MARK_FIBER || d->fn == MARK_TRY;
}

/* The newest MARK_TRY or MARK_PANIC on that list; NULL: there is none (DEFER-3). */
CCDefer **cc__defer_mark(void);

/* Whether the caller is in a protected call: a fiber always is. */
bool cc__defer_protected(void);

/* Runs an entry that was taken off its list, and frees it if it was allocated. */
void cc__defer_run(CCDefer *d);

/* Ends a protected call without a panic: runs everything above its boundary. */
void cc__defer_run_all(CCDefer **list, CCDefer *boundary);

/* ---- panic.c ---- */

/* Calls fn(arg) as a protected call. 0 or ENOTRECOVERABLE; result and info may be NULL. */
int cc__panic_try(CCTaskFn fn, void *arg, void **result, CCPanic *info);

/* Panics with `text`, the message of a C++ exception that has left the function of a protected call. */
CC_NORETURN void cc__panic_exception(const char *text);

/* ---- report.c ---- */

/* Fills in who and where; `back`: where the public call returns to, NULL: no frames. */
void cc__report_describe(CCPanic *info, const void *back);

/* For an unrecovered panic that ends a fiber: prints it, keeps it for cc_panic_find; aborts if configured. */
void cc__report_unstopped(const CCPanic *info);

/* In a forked child: resets the locks, whose holders no longer exist. */
void cc__report_forget(void);

/* Prints it, with a reason why it is fatal (may be ""), and aborts. */
CC_NORETURN void cc__report_fatal(const CCPanic *info, const char *why);

/* For rt: whether an unrecovered panic aborts the program. */
void cc__panic_aborts(bool abort_too);

/* ---- hosted.c ---- */

/* The stack of the hosted call that the calling thread is in, or NULL. Signal-safe. */
const struct stack *cc__hosted_stack(void);

#endif
