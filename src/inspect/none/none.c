/* none.c - stubs of inspect/, for -DCCC_INSPECT=OFF and for systems without a folder beside this one.
 *
 * Every function returns "unknown", which all callers handle.
 */
#include "inspect/plt_hook.h"
#include "inspect/reach.h"
#include "inspect/sample.h"
#include "inspect/symbol.h"
#include "inspect/threads.h"

#include <stdio.h>
#include <string.h>

#pragma GCC diagnostic ignored "-Wunused-parameter"

const char *cc__inspect_missing(void) {
    return "this build of the library has no backtraces, no names of functions and no search for deadlocks and "
           "unreachable fibers: configure it with -DCCC_INSPECT=ON";
}

/* ---- stacks ---- */

unsigned cc__unwind(const struct picture *p, const void **frames, unsigned max, struct doubt *doubt) {
    *doubt = (struct doubt){0};
    return 0;
}

unsigned cc__unwind_here(const void *low, const void *top, const void *back, const void **frames, unsigned max,
                         struct doubt *doubt) {
    *doubt = (struct doubt){0};
    if (back == NULL || max == 0) return 0;
    frames[0] = back; /* the one frame that is known */
    return 1;
}

struct unwind_memo *cc__unwind_memo(void) {
    return NULL;
}

unsigned cc__unwind_number(struct unwind_memo *memo, const void *low, const void *top, const void *back, unsigned max,
                           unsigned (*number_of)(const void *const *frames, unsigned count)) {
    return back != NULL && max > 0 ? number_of(&back, 1) : 0;
}

struct picture cc__picture_parked(const struct place *place, uintptr_t low, uintptr_t top) {
    return (struct picture){.low = low, .top = top};
}

unsigned cc__sample_thread(int tid, const void *bottom, const void *top, const void **frames, unsigned max,
                           struct doubt *doubt) {
    *doubt = (struct doubt){0};
    return 0;
}

bool cc__sample_is_alone(void) {
    return false;
}

void cc__sample_remove(void) {}

void cc__sample_forget(void) {}

/* ---- names ---- */

void cc__symbol_find(const void *return_address, struct symbol *out) {
    memset(out, 0, sizeof *out);
}

void cc__symbol_text(const void *return_address, char *text, size_t size) {
    snprintf(text, size, "%p", return_address);
}

unsigned cc__symbol_without_own(const void *const *frames, unsigned count) {
    return count;
}

/* ---- threads and memory ---- */

int cc__threads_list(int *tids, unsigned max) {
    return -1;
}

uint64_t cc__threads_caught(void) {
    return UINT64_MAX;
}

bool cc__threads_call(int tid, struct thread_call *call) {
    return false;
}

bool cc__threads_blocks(int tid, int sig) {
    return true;
}

bool cc__memory_each(uint64_t limit, void (*fn)(void *arg, uintptr_t low, uintptr_t high), void *arg) {
    return false;
}

int cc__plt_hook_install(struct plt_hook *hooks, unsigned count) {
    return -1;
}
