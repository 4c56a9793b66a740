/* report.c - describes a panic, prints it, and keeps the last ones. */
#include "base/error.h"
#include "base/fatal.h"
#include "base/inspect.h"
#include "os/signals.h"
#include "os/thread.h"
#include "panic/panic.h"
#include "sched/upcalls.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Atomic uint64_t generations;
static _Atomic uint32_t aborts;

void cc__panic_aborts(bool abort_too) {
    cc__set(&aborts, abort_too);
}

/* ---- description ---- */

static void find_stack(const void **bottom, const void **top) {
    struct fiber *self = cc__sched_current(cc__worker());
    const struct stack *s = self != NULL ? cc__get(&self->stack) : cc__hosted_stack();
    if (s == NULL) {
        cc__thread_stack(bottom, top);
        return;
    }
    *bottom = s->base + cc__stack_guard_size(s);
    *top = s->base + cc__stack_size(s);
}

void cc__report_describe(CCPanic *info, const void *back) {
    const void *bottom, *top;
    struct doubt doubt;
    CC_KEEP_ERRNO;
    info->generation = cc__add_relaxed(&generations, 1) + 1;
    info->fiber = cc_fiber_id();
    memcpy(info->name, cc_fiber_name(), strlen(cc_fiber_name()) + 1);
    find_stack(&bottom, &top);
    info->frame_count = info->frames_guessed = 0;
    if (back != NULL) {
        info->frame_count = cc__unwind_here(bottom, top, back, info->frames, CC_PANIC_FRAMES_MAX, &doubt);
        info->frames_guessed = (unsigned)doubt.guessed;
    }
}

/* ---- printing ---- */

static struct lock printing; /* keeps the lines of two panics apart */

static void print(const CCPanic *info, const char *head, const char *why) {
    char who[48], name[CC_FIBER_NAME_MAX + 3] = "";
    unsigned slot = (uint32_t)info->fiber - 1, generation = (uint32_t)(info->fiber >> 32);
    if (info->fiber == 0)
        snprintf(who, sizeof who, "on an OS thread");
    else if (info->fiber >> 63)
        snprintf(who, sizeof who, "in hosted call %llu", (unsigned long long)(info->fiber << 1 >> 1));
    else
        snprintf(who, sizeof who, "in fiber %u.%u", slot, generation);
    if (info->name[0] != '\0') snprintf(name, sizeof name, " '%s'", info->name);
    cc__lock_take_long(&printing);
    cc__warn("%spanic %s%s%s%s: %s", head, who, name, why[0] != '\0' ? ", " : "", why,
             info->message[0] != '\0' ? info->message : "(no message)");
    unsigned frames = info->frame_count < CC_PANIC_FRAMES_MAX ? info->frame_count : CC_PANIC_FRAMES_MAX;
    if (frames > 0) frames = cc__symbol_without_own(info->frames, frames);
    for (unsigned i = 0; i < frames; i++) {
        char text[256];
        cc__symbol_text(info->frames[i], text, sizeof text);
        cc__warn("  %p %s%s", info->frames[i], info->frames_guessed >> i & 1 ? "? " : "", text);
    }
    if (cc__inspect_missing() != NULL) cc__warn("%s", cc__inspect_missing());
    cc__lock_release(&printing);
}

void cc_panic_print(const CCPanic *info) {
    if (info == NULL) return;
    CC_KEEP_ERRNO;
    print(info, "", "");
}

void cc__report_fatal(const CCPanic *info, const char *why) {
    print(info, "fatal: ", why);
    cc__upcall_dies();
    abort();
}

/* ---- the last panics ---- */

static struct {
    struct lock lock;
    unsigned next;
    CCPanic panics[CC_PANICS_KEPT];
} kept;

/* In a forked child: the holders of the locks no longer exist. */
void cc__report_forget(void) {
    printing = (struct lock){0};
    kept.lock = (struct lock){0};
}

void cc__report_unstopped(const CCPanic *info) {
    if (cc__get(&aborts)) cc__report_fatal(info, "not recovered (CC_PANIC_ABORT)");
    cc_panic_print(info);
    cc__upcall_panicked();
    cc__exit_message_write();
    cc__lock_take(&kept.lock);
    kept.panics[kept.next++ % CC_PANICS_KEPT] = *info;
    cc__lock_release(&kept.lock);
}

int cc_panic_find(CCFiberId id, CCPanic *info) {
    if (id == 0 || info == NULL) return EINVAL;
    cc__lock_take(&kept.lock);
    unsigned i = 0;
    while (i < CC_PANICS_KEPT && kept.panics[i].fiber != id) i++;
    if (i < CC_PANICS_KEPT) *info = kept.panics[i];
    cc__lock_release(&kept.lock);
    return i < CC_PANICS_KEPT ? 0 : ESRCH;
}
