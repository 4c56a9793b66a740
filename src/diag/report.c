/* report.c - who has not ended. */
#include "base/fatal.h"
#include "diag/diag.h"
#include "sched/sched.h"

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

void cc__diag_unfinished(unsigned max) {
    unsigned shown = 0, left_out = 0;
    for (uint32_t slot = 0; slot < cc__pool_size(); slot++) {
        struct fiber *f = cc__pool_at(slot);
        uint64_t word = cc__get(&f->word);
        enum fiber_state state = cc__word_state(word);
        if (state == FIBER_IDLE || state == FIBER_DONE) continue;
        if (shown == max) {
            left_out++;
            continue;
        }
        char name[CC_FIBER_NAME_MAX];
        cc__diag_name(f, name);
        const char *reason = state == FIBER_PARKED ? cc__park_name(cc__word_reason(word)) : "";
        cc__warn("  fiber %u.%u %s%s%s: %s%s%s", f->slot, cc__get(&f->generation), name[0] ? "'" : "",
                 name[0] ? name : "(no name)", name[0] ? "'" : "", cc__state_name(state),
                 reason[0] ? ", waits for: " : "", reason);
        shown++;
    }
    if (left_out > 0) cc__warn("  and %u more", left_out);
}
