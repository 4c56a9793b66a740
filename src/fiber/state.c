/* state.c - the edges that can race, and the report of an illegal one. */
#include "fiber/pool.h"
#include "fiber/spec.h"

#include "base/fatal.h"
#include "trace/recorder.h"

const char *cc__state_name(enum fiber_state state) {
    static const char *const names[] = {"IDLE", "RUNNABLE", "RUNNING", "PARKING", "PARKED", "DONE"};
    return state < array_len(names) ? names[state] : "?";
}

const char *cc__park_name(unsigned reason) {
    static const char *const names[] = {
#define REASON(id, name, object) name,
#include "fiber/reasons.def"
    };
    return reason < PARK_REASONS ? names[reason] : "";
}

enum wait_object cc__park_object(unsigned reason) {
    static const uint8_t objects[] = {
#define REASON(id, name, object) OBJECT_##object,
#include "fiber/reasons.def"
    };
    return reason < PARK_REASONS ? (enum wait_object)objects[reason] : OBJECT_OTHER;
}

const char *cc__wake_name(unsigned reason) {
    static const char *const names[] = {"its object", "its timer", "cancellation"};
    return reason >= WAKE_OBJECT && reason - WAKE_OBJECT < array_len(names) ? names[reason - WAKE_OBJECT] : "";
}

void cc__state_illegal(const struct fiber *f, uint64_t word, const char *edge) {
    cc__fatal(
        "STATE-2: the edge '%s' is illegal for fiber %u.%u, which is %s%s (owner %u, reason %u, ticket %llu); caller %p",
        edge, f->slot, cc__get(&f->generation), cc__state_name(cc__word_state(word)),
        word & WORD_LATCH ? " and latched" : "", cc__word_owner(word), cc__word_reason(word),
        (unsigned long long)(word / WORD_TICKET_ONE), __builtin_return_address(0));
}

unsigned cc__state_abort(struct fiber *f) {
    uint64_t word = cc__get(&f->word);
    for (;;) {
        state_from(f, word, FIBER_PARKING, "abort");
        unsigned woken_by = word & WORD_LATCH ? cc__word_reason(word) : 0;
        uint64_t to = cc__word_make(word, cc__word_owner(word), woken_by, FIBER_RUNNING);
        /* Pairs with the claim that latched. */
        if (cc__cas(&f->word, &word, to)) return woken_by;
    }
}

bool cc__state_commit(struct fiber *f) {
    uint64_t word = cc__get(&f->word);
    for (;;) {
        state_from(f, word, FIBER_PARKING, "commit");
        bool latched = (word & WORD_LATCH) != 0;
        uint64_t to =
            cc__word_make(word, cc__word_owner(word), cc__word_reason(word), latched ? FIBER_RUNNABLE : FIBER_PARKED);
        /* Releases the quiet stack to the claimant that will see PARKED. */
        if (cc__cas(&f->word, &word, to)) return latched;
    }
}

/* The claim is won and the caller enqueues the fiber, so the fiber cannot go away. */
static CC_COLD CC_NOINLINE enum claim watch_claim(struct fiber *f, uint64_t before, enum wake_reason reason) {
    bool parked = cc__word_state(before) == FIBER_PARKED;
    if (cc__spec_on()) cc__spec_claim(f, before, reason);
    if (cc__trace_on(TRACE_RECORD)) cc__record_wake(f, reason);
    cc__event(wake, cc__pool_id(f), parked, cc__word_reason(before), reason);
    return parked ? CLAIM_WON : CLAIM_LATCHED;
}

enum claim cc__state_claim(struct fiber *f, uint64_t ticket, enum wake_reason reason) {
    uint64_t word = cc__get_acquire(&f->word);
    for (;;) {
        if ((word & WORD_TICKET) != ticket) return CLAIM_LOST;
        enum fiber_state state = cc__word_state(word);
        uint64_t to;
        if (state == FIBER_PARKED)
            to = cc__word_make(word, cc__word_owner(word), reason, FIBER_RUNNABLE);
        else if (state == FIBER_PARKING && !(word & WORD_LATCH))
            to = cc__word_make(word, cc__word_owner(word), reason, FIBER_PARKING | WORD_LATCH);
        else
            return CLAIM_LOST;
        /* Acquires the quiet stack from the park; releases what the claimant wrote to the wait that returns. */
        if (!cc__cas(&f->word, &word, to)) continue;
        cc__probe2(wake, f, reason);
        if (cc__trace_on(TRACE_WAKE | TRACE_SPEC | TRACE_RECORD)) return watch_claim(f, word, reason);
        return state == FIBER_PARKED ? CLAIM_WON : CLAIM_LATCHED;
    }
}
