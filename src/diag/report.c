/* report.c - who has not ended. */
#include "base/fatal.h"
#include "diag/diag.h"
#include "plat/trace.h"
#include "sched/sched.h"

#include <stdio.h>

/* The name as far as it can be read from outside: the fiber may be running, or gone by the time we look. */
CC_NOINLINE CC_NO_TSAN void cc__diag_name(struct fiber *f, char *name) {
    struct stack *s = cc__get(&f->stack);
    name[0] = '\0';
    struct fiber_cold *cold = s != NULL ? cc__get(&s->cold) : NULL;
    if (cold == NULL) return;
    const volatile char *from = cold->name;
    size_t n = 0;
    for (char c; n < CC_FIBER_NAME_MAX - 1 && (c = from[n]) >= ' ' && c <= '~'; n++) name[n] = c;
    name[n] = '\0';
}

/* What it was started as; the record may be filled in anew while we look. */
static CC_NOINLINE CC_NO_TSAN const char *function_of(struct fiber *f) {
    CCTaskFn volatile *fn = &f->fn;
    return (const char *)(uintptr_t)*fn;
}

static void say(struct fiber *f, uint64_t word) {
    char name[CC_FIBER_NAME_MAX] = "", function[200], doing[48] = "";
    enum fiber_state state = cc__word_state(word);
    unsigned reason = cc__word_reason(word);
    if (state != FIBER_PARKED || reason != PARK_RUN) cc__diag_name(f, name); /* who lends its stack shows its guest's */
    cc__trace_name(function_of(f) + 1, function, sizeof function);
    if (state == FIBER_RUNNING)
        snprintf(doing, sizeof doing, " on worker %u", cc__word_owner(word) - 1);
    else if (state == FIBER_PARKED)
        snprintf(doing, sizeof doing, ", waits for: %s", cc__park_name(reason));
    cc__warn("  fiber %u.%u %s%s%s: %s%s; started as %s", f->slot, cc__get(&f->generation), name[0] ? "'" : "",
             name[0] ? name : "(no name)", name[0] ? "'" : "", cc__state_name(state), doing, function);
}

/* Those that run come first: they are the ones that no cancelling reaches. */
void cc__diag_unfinished(unsigned max) {
    static const enum fiber_state order[] = {FIBER_RUNNING, FIBER_RUNNABLE, FIBER_PARKING, FIBER_PARKED};
    unsigned shown = 0, left_out = 0;
    for (size_t i = 0; i < array_len(order); i++)
        for (uint32_t slot = 0; slot < cc__pool_size(); slot++) {
            struct fiber *f = cc__pool_at(slot);
            uint64_t word = cc__get(&f->word);
            if (cc__word_state(word) != order[i]) continue;
            if (shown < max)
                say(f, word), shown++;
            else
                left_out++;
        }
    if (left_out > 0) cc__warn("  and %u more", left_out);
}
