/* spec.c - the assertions of spec.h. A violation names the rule and the fiber, and aborts. */
#include "fiber/spec.h"

#include "base/fatal.h"
#include "fiber/stack.h"

static CC_NORETURN CC_COLD void broken(const char *rule, const struct fiber *f, uint64_t word, unsigned owner) {
    cc__fatal("%s: fiber %u.%u is %s%s%s (owner %u, reason %u, ticket %llu); worker %d", rule, f->slot,
              cc__get(&f->generation), cc__state_name(cc__word_state(word)), word & WORD_LATCH ? " and latched" : "",
              word & WORD_FRESH ? " and fresh" : "", cc__word_owner(word), cc__word_reason(word),
              (unsigned long long)(word / WORD_TICKET_ONE), (int)owner - 1);
}

void cc__spec_enqueue(struct fiber *f) {
    uint64_t word = cc__get(&f->word);
    if (cc__word_state(word) != FIBER_RUNNABLE || (word & WORD_LATCH) != 0)
        broken("SPEC-1: only a RUNNABLE fiber is put into a queue", f, word, 0);
}

void cc__spec_run(struct fiber *f, unsigned owner) {
    uint64_t word = cc__get(&f->word);
    bool stray = (word & WORD_FRESH) != 0 && cc__word_owner(word) != owner;
    if (cc__word_state(word) != FIBER_RUNNABLE || (word & WORD_LATCH) != 0 || stray)
        broken("SPEC-2: a worker runs what it took from a queue", f, word, owner);
}

void cc__spec_claim(struct fiber *f, uint64_t before, unsigned by) {
    unsigned reason = cc__word_reason(before);
    if (reason == PARK_NONE || reason >= PARK_REASONS || cc__wake_name(by)[0] == '\0')
        broken("SPEC-3: a claim ends a wait that has a reason", f, before, cc__word_owner(before));
}

void cc__spec_parked(struct fiber *f, uint64_t word, unsigned owner) {
    const char *here = __builtin_frame_address(0);
    const struct stack *s = cc__get(&f->stack);
    bool own_stack = s != NULL && here >= s->base && here < s->base + cc__stack_size(s);
    if (own_stack || cc__word_owner(word) != owner)
        broken("SPEC-4: a fiber is parked by its worker, from another stack", f, word, owner);
}
